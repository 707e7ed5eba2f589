"""Every item of the reference package has a row in the table of include/stella/README.md, its C names are declared in a
header, and the test that the row names uses them. check-reference.py ITEMS README INCLUDE_DIR TESTS_DIR"""
import pathlib
import re
import sys

items_file, readme, include_dir, tests_dir = map(pathlib.Path, sys.argv[1:])
items = [line for line in items_file.read_text().split('\n') if line and not line.startswith('#')]
headers = '\n'.join(re.sub(r'/\*.*?\*/', ' ', path.read_text(), flags=re.S)
                    for path in include_dir.glob('stella/*.h'))
failures = []
rows = {}
for line in readme.read_text().splitlines():
    cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
    name = re.fullmatch(r'`(\w+(?:\.\w+)?)`', cells[0])
    if line.startswith('|') and name and len(cells) == 3:
        if name.group(1) in rows:
            failures.append(f'{name.group(1)}: two rows')
        rows[name.group(1)] = cells[1:]

for item in items:
    if item not in rows:
        failures.append(f'{item}: no row')
        continue
    here, test = rows[item]
    names = re.findall(r'`(\w+)(?:\(\))?`', here)
    programs = re.findall(r'`([\w-]+\.(?:c|sh|py))`', test)
    if not names or not programs:
        failures.append(f'{item}: an empty cell')
    for name in names:
        # GLib's own
        if name not in ('GError', 'message') and not re.search(rf'\b{name}\b', headers):
            failures.append(f'{item}: no header declares {name}')
    for program in programs:
        found = list(tests_dir.rglob(program))
        if not found:
            failures.append(f'{item}: there is no test {program}')
            continue
        text = found[0].read_text()
        for name in names:
            # a type is used by what makes it, too
            if not re.search(rf'\b{name}\b', text):
                failures.append(f'{item}: {program} does not use {name}')
for item in sorted(set(rows) - set(items)):
    failures.append(f'{item}: no such item')

print('\n'.join('FAIL: ' + failure for failure in failures))
print(f'{len(items)} items, {len(failures)} failures')
sys.exit(bool(failures) or len(items) < 100)
