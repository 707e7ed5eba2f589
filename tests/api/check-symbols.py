"""The shared library exports exactly what the headers declare, the version script names exactly that, and the static
library shows a linker nothing else. check-symbols.py INCLUDE_DIR VERSION_SCRIPT SHARED_LIBRARY STATIC_LIBRARY"""
import importlib.util
import pathlib
import re
import subprocess
import sys

include_dir, script, shared, static = sys.argv[1:]
spec = importlib.util.spec_from_file_location('symbols', pathlib.Path(__file__).with_name('list-symbols.py'))
listing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(listing)


def defined(*arguments):
    output = subprocess.run(['nm', '--defined-only', '--format=posix', *arguments], check=True, capture_output=True,
                            text=True).stdout
    rows = [line.split() for line in output.splitlines() if ' ' in line]
    # the version's own name is an absolute symbol; what sanitizers add begins with two underscores
    return {row[0].split('@')[0] for row in rows if row[1] != 'A' and row[1].isupper() and not row[0].startswith('__')}


declared = set(listing.symbols(include_dir))
text = re.sub(r'/\*.*?\*/', ' ', pathlib.Path(script).read_text(), flags=re.S)
listed = set(re.findall(r'\b(stella_\w+);', text))
failed = False
for what, names in (('the version script', listed), ('the shared library', defined('--dynamic', shared)),
                    ('the static library', defined('--extern-only', static))):
    for name in sorted(declared - names):
        print(f'FAIL: {name}: declared in a header, and not in {what}')
        failed = True
    for name in sorted(names - declared):
        print(f'FAIL: {name}: in {what}, and declared in no header')
        failed = True
print(f'{len(declared)} functions compared')
sys.exit(failed or not declared)
