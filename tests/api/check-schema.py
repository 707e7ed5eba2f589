"""check-schema.py SCHEMA FILE...: the documents in the files fit the schema, and no mutation of them does.

A file is JSON, one document or one a line; or a text with examples in it: Markdown with ```json, or a manual
page with .nf. Every document has to fit. Then each is spoilt in every place, one at a time: a key too many, a key
missing that is required, a value of another type or out of its list or range; each of these has to be refused. A
schema that refuses everything fails by the first, one that takes everything by the second.
"""

import copy
import json
import os
import re
import sys

try:
    import jsonschema
except ImportError:
    # The first python3 of PATH need not be the one that packages are for.
    system = "/usr/bin/python3"
    if os.access(system, os.X_OK) and not os.path.samefile(sys.executable, system):
        os.execv(system, [system, *sys.argv])
    print("python3 has no jsonschema (Debian: python3-jsonschema)")
    sys.exit(1 if os.environ.get("STELLA_TESTS_MUST_RUN") == "1" else 77)


def documents(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".md"):
        return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", text, re.M | re.S)]
    if re.search(r"\.[0-9]$", path):
        blocks = re.findall(r"^\.nf\n(\{.*?)^\.fi$", text, re.M | re.S)
        return [json.loads(block.replace("\\-", "-")) for block in blocks]
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def places(value, path=()):
    """Every place in a document, as the keys that lead to it."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def replaced(document, path, value):
    if not path:
        return value
    document = copy.deepcopy(document)
    at(document, path[:-1])[path[-1]] = value
    return document


def is_free(path):
    """Where any key or any text is right."""
    return path[:1] == ("env",)


def spoilt(document, requires_all):
    """(what was done, the spoilt document)"""
    for path in places(document):
        value = at(document, path)
        name = ".".join(map(str, path)) or "the document"
        yield f"{name} is a list of a list", replaced(document, path, [[]])
        yield f"{name} is a fraction", replaced(document, path, 0.5)
        if isinstance(value, dict):
            if not is_free(path):
                yield f"{name} has another key", replaced(document, path, {**value, "another": "x"})
            for key in value:
                if (requires_all or key in REQUIRED) and not is_free(path):
                    rest = {other: value[other] for other in value if other != key}
                    yield f"{name} lacks {key}", replaced(document, path, rest)
        elif isinstance(value, bool):
            yield f"{name} is a number", replaced(document, path, int(value))
        elif isinstance(value, int):
            yield f"{name} is negative", replaced(document, path, -1)
            yield f"{name} is a text", replaced(document, path, str(value))
        elif isinstance(value, str):
            yield f"{name} is a number", replaced(document, path, -5)
            if not is_free(path) and path[-1] not in FREE_TEXT:
                yield f"{name} is another word", replaced(document, path, "\x00" + value)


# Texts that may be anything.
FREE_TEXT = ("stdout", "stderr", "message", "hint", "key")
# What a policy cannot do without; a result needs all of its keys.
REQUIRED = ("version", "filesystem", "working_dir", "host_path", "view_path", "access")


def contradictions(document):
    """Results whose keys do not go together."""
    if "ended" not in document:
        return
    for ended in ("exited", "signaled", "timed_out", "start_failed"):
        if ended == document["ended"] or {ended, document["ended"]} == {"timed_out", "canceled"}:
            continue
        yield f"ended is {ended}", {**document, "ended": ended}
    for stream in ("stdout", "stderr"):
        if document[f"{stream}_encoding"] != "base64":
            text = {stream: "no base64!", f"{stream}_encoding": "base64"}
            yield f"{stream} is no base64", {**document, **text}
        if not document[f"{stream}_truncated"]:
            spill = {f"{stream}_spill": f"/tmp/stella-{stream}-0123456789abcdef.txt"}
            yield f"{stream} is whole and has a file", {**document, **spill}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    check = validator(schema)
    is_result = schema["title"].startswith("Result")
    failed = fitted = refused = 0
    for path in sys.argv[2:]:
        found = documents(path)
        if not found:
            failed += 1
            print(f"FAIL: {path}: no document in it")
        for document in found:
            errors = [f"{'.'.join(map(str, e.absolute_path))}: {e.message}" for e in check.iter_errors(document)]
            if errors:
                failed += 1
                print(f"FAIL: {path}: {'; '.join(errors)[:2000]}")
                continue
            fitted += 1
            mutations = list(spoilt(document, is_result)) + list(contradictions(document))
            for what, bad in mutations:
                if check.is_valid(bad):
                    failed += 1
                    print(f"FAIL: {path}: taken although {what}")
                refused += 1
    print(f"{fitted} documents fit, {refused} spoilt ones, {failed} failures")
    return 1 if failed or not fitted or not refused else 0


sys.exit(main())
