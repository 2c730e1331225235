#!/usr/bin/env python3
"""Checks texts that were written at random under schemas by the package jsonschema: each is JSON, and right by its schema.

    check_constraints.py LLM_CONSTRAINTS CASES.json COUNT              exit status 1, with a line for each that is wrong; 77
                                                                       where jsonschema is missing
    check_constraints.py LLM_CONSTRAINTS CASES.json COUNT --planted    exit status 1 unless texts under schemas that were
                                                                       loosened in secret are found
"""

import copy
import json
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: jsonschema is not installed (pip install jsonschema)")
    sys.exit(77)


def is_right(schema, text):
    """None, or what is wrong with the text."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"is no JSON: {error}"
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    error = next(validator.iter_errors(value), None)
    return None if error is None else f"is wrong by the schema: {error.message[:200]}"


def written(program, cases, count):
    """(name, text) of the texts that the program writes under the schemas."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(cases, file)
        file.flush()
        out = subprocess.run([program, file.name, str(count)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(line["case"], line["text"]) for line in map(json.loads, out.rstrip("\n").split("\n"))]


def loosened(schema):
    """The schema without its bounds, at any depth."""
    if isinstance(schema, list):
        return [loosened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
              "pattern", "minProperties", "maxProperties",
              "multipleOf")
    return {key: loosened(value) for key, value in schema.items() if key not in bounds or isinstance(value, dict)}


def main():
    program, path, count = sys.argv[1:4]
    with open(path, encoding="utf-8") as file:
        cases = [case for case in json.load(file) if "dialect" not in case]  # of patterns, which jsonschema reads as Python does
    schemas = {case["name"]: case["schema"] for case in cases}
    planted = "--planted" in sys.argv
    if planted:
        cases = [{"name": case["name"], "schema": loosened(copy.deepcopy(case["schema"]))} for case in cases
                 if case["name"] in ("small range", "lengths", "counted array", "probability", "counted properties",
                                      "multiples")]
    found = set()
    texts = written(program, cases, count)
    for name, text in texts:
        problem = is_right(schemas[name], text)
        if problem is not None:
            found.add(name)
            if not planted:
                print(f"{name}: {text[:300]!r} {problem}")
    if planted:
        missed = {case["name"] for case in cases} - found
        print(f"planted: {len(found)} of {len(cases)} found")
        return 1 if missed else 0
    wrong = [case["name"] for case in cases for text in case["valid"] if is_right(schemas[case["name"]], text) is not None]
    for name in wrong:
        print(f"{name}: a text that is called right is wrong by jsonschema")
    print(f"{len(texts)} texts under {len(cases)} schemas: {len(found)} schemas with wrong ones")
    return 1 if found or wrong else 0


sys.exit(main())
