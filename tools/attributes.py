#!/usr/bin/env python3
"""Writes src/onnx/attribute_names.c: which attributes each operator of the standard has, version by version.

    tools/attributes.py            writes the source
    tools/attributes.py --check    exit status 1 when it is not what would be written

The names come from the package onnx, those of operators that docs/operators.md does not list are left out. Exit status 77,
which CTest counts as skipped, where onnx is not installed or not the version that the source was written with.
"""

import pathlib
import re
import sys

try:
    import onnx
    import onnx.defs
except ImportError:
    print("SKIPPED: onnx is not installed")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "onnx" / "attribute_names.c"
NEWEST = 28  # operator set

HEAD = """/* Which attributes each operator has, in the versions in which that changed: written by tools/attributes.py from the
 * operators of onnx %s; edit that instead. */
#include "onnx/attribute_names.h"

#include <stddef.h>

/* Sorted by name, then by version. */
const sb_attribute_names sb_attribute_table[] = {
"""
TAIL = """};

const size_t sb_attribute_table_rows = sizeof sb_attribute_table / sizeof *sb_attribute_table;
"""


def ours():
    """The operators of docs/operators.md: those of other domains than the standard's own with theirs before the name."""
    listed = re.findall(r"^\| ([\w.]+) \|", (ROOT / "docs" / "operators.md").read_text(), re.M)
    return {*listed, "Constant"}  # which the importer takes for itself


def rows():
    known, found = ours(), {}
    for schema in onnx.defs.get_all_schemas_with_history():
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        if name in known and (schema.domain or schema.since_version <= NEWEST):
            found.setdefault(name, {})[schema.since_version] = " ".join(sorted(schema.attributes))
    for name, versions in sorted(found.items()):
        before = None
        for version, attributes in sorted(versions.items()):
            if attributes != before:
                yield name, version, attributes
            before = attributes


def source():
    """As clang-format leaves it."""
    lines = []
    for name, version, attributes in rows():
        line = f'    {{"{name}", {version}, "{attributes}"}},'
        if len(line) <= 120:
            lines.append(line)
            continue
        lines.append(f'    {{"{name}", {version},')
        words = f'     "{attributes}"}},'
        cut = words.rindex(" ", 0, 119) + 1 if len(words) > 120 else 0
        lines += [words[:cut] + '"', '     "' + words[cut:]] if cut else [words]
    return HEAD % onnx.__version__ + "\n".join(lines) + "\n" + TAIL


def main():
    if sys.argv[1:] == ["--check"]:
        text = SOURCE.read_text()
        if f"onnx {onnx.__version__};" not in text:
            print(f"SKIPPED: the source was written with another onnx than {onnx.__version__}")
            return 77
        if text != source():
            print(f"{SOURCE} is not what tools/attributes.py writes: run it")
            return 1
        return 0
    SOURCE.write_text(source())
    return 0


if __name__ == "__main__":
    sys.exit(main())
