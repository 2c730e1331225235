#!/usr/bin/env python3
"""Writes docs/operators.md from the tables of operators in src/ops.

    tools/operators.py            writes the page
    tools/operators.py --check    exit status 1 when the page is not what would be written
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPS = ROOT / "src" / "ops"
PAGE = ROOT / "docs" / "operators.md"

HEAD = """# Operators

This page is written by `tools/operators.py` from the tables in `src/ops`; edit those instead. What
each operator computes, to the bit, is in [numerics.md](numerics.md), and the comment at the head of
each source says more.

An operator that is not listed is an error when a model is loaded, and that error lists every missing
one. Operators belong to ONNX's own domain, unless theirs stands before the name. Element types that an
operator accepts are checked when the model is loaded; the message names the type and the node.

"""


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def macro_list(text, name):
    """The words of `#define name(X) X(a) X(b) ...`."""
    match = re.search(r"#define %s\(X\)((?:.*\\\n)*.*)" % name, text)
    return re.findall(r"X\((\w+)\)", match.group(1)) if match else []


def table(text, family):
    match = re.search(r"const sb_op sb_ops_%s\[\]\s*=\s*\{(.*?)\n\};" % family, text, re.S)
    return match.group(1) if match else None


def names(body, headers):
    """Operators in the order of the table: literal names, macros, and lists of macros."""
    found = []
    pattern = r'\.domain = "([\w.]+)"|\.name = "(\w+)"|\w+_OP\(\s*"?(\w+)"?|(\w+_OPS)\((?:\w+)\)'
    for domain, literal, argument, expansion in re.findall(pattern, body):
        if domain == "samebit" and found[-1] == "Fused":
            found.pop()  # made by passes, never read from a file
        elif domain:
            found[-1] = f"{domain}.{found[-1]}"
        elif expansion:
            found += macro_list(headers, expansion)
        else:
            found.append(literal or argument)
    return found


def families():
    text = (OPS / "families.h").read_text()
    return re.findall(r"F\((\w+),\s*ops,", text)


def rows():
    sources = {path: without_comments(path.read_text()) for path in sorted(OPS.glob("*.c"))}
    headers = without_comments("".join(path.read_text() for path in sorted(OPS.glob("*.h"))))
    for family in families():
        holder = [(path, table(text, family)) for path, text in sources.items()]
        holder = [(path, body) for path, body in holder if body is not None]
        if len(holder) != 1:
            sys.exit(f"the table sb_ops_{family} is in {len(holder)} sources")
        path, body = holder[0]
        found = names(body, headers)
        if not found and family != "fused":
            sys.exit(f"no operator found in the table sb_ops_{family} of {path.name}")
        for name in found:
            yield name, path.name


def page():
    listed = sorted(set(rows()), key=lambda row: row[0].lower())
    lines = [f"| {name} | [src/ops/{source}](../src/ops/{source}) |" for name, source in listed]
    count = f"{len(listed)} operators:\n\n| operator | definition |\n|---|---|\n"
    return HEAD + count + "\n".join(lines) + "\n"


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/operators.md is out of date: run tools/operators.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
