"""check-codes.py EXECUTOR_DIR: the codes that errors are given in the sources are those of the published list
(error.c), each of which is given somewhere, and the README says what each means."""

import pathlib
import re
import sys

executor = pathlib.Path(sys.argv[1])
failures = []
listed = re.search(r"exr_error_codes\[\] = \{(.*?)\};", (executor / "error.c").read_text(), re.S).group(1)
codes = re.findall(r'"([^"]+)"', listed)
given = {}
for source in sorted(executor.glob("*.c")):
    text = source.read_text()
    defined = dict(re.findall(r'^#define (\w*CODE\w*)\s+"([^"]+)"', text, re.M))
    # the words in the second argument of exr_error_set(), in what is assigned to a "code" or returned by a function
    # that makes one, and in the second column of the stages
    places = re.findall(r"exr_error_set\(\s*[^,]+,([^,]+),", text)
    places += re.findall(r"\bcode = ([^;]+);", text)
    places += re.findall(r"_code\(int r\)\n\{(.*?)^\}", text, re.M | re.S)
    if source.name == "stage.c":
        places += re.findall(r'\{\s*"[^"]+",\s*("[^"]+")', text)
    for place in places:
        for literal, name in re.findall(r'"([^"]+)"|\b([A-Z_]+)\b', place):
            if literal or name in defined:
                given[literal or defined[name]] = source.name
for code in sorted(set(given) - set(codes)):
    failures.append(f"{given[code]}: {code} is not in the list of error.c")
for code in sorted(set(codes) - set(given)):
    failures.append(f"{code} is never given")
table = re.findall(r"^\| `([a-z-]+)` \|", (executor / "README.md").read_text().split("## Error codes")[1], re.M)
if sorted(table) != sorted(codes):
    failures.append(f"README.md and error.c differ in {sorted(set(table) ^ set(codes))}")
print("\n".join(f"FAIL: {failure}" for failure in failures) or f"{len(codes)} codes, all of them known")
sys.exit(1 if failures else 0)
