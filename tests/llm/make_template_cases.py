#!/usr/bin/env python3
"""Compares chat templates with jinja2, under the settings of the transformers package.

    make_template_cases.py PROGRAM [COUNT [SEED]]   compares the cases of template_cases.py and COUNT random templates, which
                                                    PROGRAM (tests/llm/templates.c) renders, and the recorded cases
    make_template_cases.py PROGRAM --files FOLDER   compares the folder's templates (*.jinja), such as those that models are published
                                                    with, over conversations of many kinds
    make_template_cases.py --write                  records what jinja2 makes of the cases in template_cases.json

Exits with 77 where there is no jinja2."""

import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    print("skipped: no jinja2")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_templates
import template_cases

ADDRESS = re.compile(r" at 0x[0-9a-f]+>|^<Macro ")
RECORDED = pathlib.Path(__file__).with_name("template_cases.json")


class Generation(jinja2.ext.Extension):
    """{% generation %}: its text, where nobody asks which characters are the model's."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("text"), [], [], body).set_lineno(line)

    def text(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    result = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    result.filters["tojson"] = to_json
    result.globals["raise_exception"] = refuse
    result.globals["strftime_now"] = datetime.datetime(2031, 7, 4, 8, 5, 9).strftime
    return result


def render(environment, template, variables):
    """The text, or None where jinja2 fails, or writes an address, which is never the same."""
    given = {"tools": None, "documents": None, "add_generation_prompt": False, **json.loads(json.dumps(variables))}
    try:
        text = environment.from_string(template).render(**given)
        return None if ADDRESS.search(text) else text
    except Exception:  # whatever Python raises in a template's name
        return None


def ask(program, cases):
    lines = "".join(json.dumps({"template": template, "variables": variables}) + "\n" for template, variables in cases)
    output = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    return [json.loads(line) for line in output]


def judge(wanted, got):
    """A word for what came of a case; "differs" and "accepted" are faults."""
    if "text" in got:
        return "accepted" if wanted is None else "equal" if wanted == got["text"] else "differs"
    if wanted is None:
        return "refused by both"
    return "not understood" if got["status"] in ("unsupported", "limit") else "differs"


def compare(program, cases):
    words = collections.Counter()
    templates = environment()
    for (template, variables), got in zip(cases, ask(program, cases), strict=True):
        wanted = render(templates, template, variables)
        word = judge(wanted, got)
        words[word] += 1
        if word in ("differs", "accepted") and words[word] <= 5:
            print(f"{word}:\n{template!r}\nwith {json.dumps(variables)}\njinja2:  {wanted!r}\nSamebit: {got}")
    print(", ".join(f"{count} {word}" for word, count in sorted(words.items())))
    return words


def conversations():
    """Messages and what is given beside them, as templates of the families expect it, or not."""
    talk, calls = template_cases.TALK, template_cases.CALLS
    parts = [{"role": "user", "content": [{"type": "text", "text": " What is\n this? "}, {"type": "image"}, {"type": "text", "text": "é"}]}]
    thought = [{"role": "user", "content": "2 + 2?"},
               {"role": "assistant", "content": "4", "reasoning_content": "Two and two.", "thinking": "Two and two."},
               {"role": "user", "content": " And 3 + 3? "}]
    written = [dict(message, tool_calls=[{"id": "abcdefghi", "type": "function", "function": dict(
        call["function"], arguments=json.dumps(call["function"]["arguments"]))} for call in message["tool_calls"]], content="Let me see.")
        if "tool_calls" in message else message for message in calls]
    named = [dict(message, tool_call_id="abcdefghi", name="get_weather") if message["role"] == "tool" else message for message in written]
    texts = [talk, talk[1:], talk[:2], talk[1:2], calls, written, named, parts, thought, thought[:2], parts + thought[1:], [],
             [dict(talk[0], content=[{"type": "text", "text": "Be brief."}])] + talk[1:], [dict(talk[0], role="developer")] + talk[1:],
             [talk[1], talk[1]], talk + [{"role": "critic", "content": "?"}]]
    for messages in texts:
        for more in ({}, {"add_generation_prompt": True}, {"tools": [template_cases.TOOL], "add_generation_prompt": True},
                     {"tools": [template_cases.TOOL] * 2}, {"add_generation_prompt": True, "enable_thinking": False},
                     {"add_generation_prompt": True, "enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
                     {"documents": [{"title": "a", "text": "b <c>"}], "add_generation_prompt": True, "date_string": "26 Jul 2024"}):
            yield {"messages": messages, **template_cases.TOKENS, **more}


def compare_files(program, folder):
    """Each file over all conversations; what Samebit has no word for is told by its reason."""
    files, faults, refused = sorted(pathlib.Path(folder).glob("*.jinja")), 0, []
    templates, all_words = environment(), collections.Counter()
    for file in files:
        cases = [(file.read_text(), variables) for variables in conversations()]
        words, why = collections.Counter(), collections.Counter()
        for (template, variables), got in zip(cases, ask(program, cases), strict=True):
            wanted = render(templates, template, variables)
            word = judge(wanted, got)
            words[word] += 1
            if word == "not understood":
                why[got.get("message", "")[:150]] += 1
            if word in ("differs", "accepted"):
                faults += 1
                if words[word] <= 2:
                    print(f"{word}: {file.name} with {json.dumps(variables)}\njinja2:  {wanted!r}\nSamebit: {got}")
        all_words += words
        if words["not understood"]:
            refused.append(file.name)
            print(f"{file.name}: {words['not understood']} of {len(cases)} not understood: {dict(why)}")
    print(f"{len(files)} templates, of which {len(refused)} are not understood whole: "
          + ", ".join(f"{count} {word}" for word, count in sorted(all_words.items())))
    return 1 if faults else 0


def main():
    if len(sys.argv) == 4 and sys.argv[2] == "--files":
        return compare_files(sys.argv[1], sys.argv[3])
    made = [(case.template, case.variables) for case in template_cases.CASES]
    templates = environment()
    recorded = [{"template": template, "variables": variables, "text": render(templates, template, variables)}
                for template, variables in made]
    if sys.argv[1] == "--write":
        RECORDED.write_text("[\n" + ",\n".join(json.dumps(case) for case in recorded) + "\n]\n")
        return 0
    if json.loads(RECORDED.read_text()) != recorded:
        print("template_cases.json is not what jinja2 makes of template_cases.py: run me with --write")
        return 1
    words = compare(sys.argv[1], made)
    if words["not understood"]:
        print("cases are there to be understood")
        return 1
    count, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2000, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    renders = lambda template, variables: render(templates, template, variables) is not None
    random_words = compare(sys.argv[1], random_templates.make(count, seed, renders))
    if random_words["equal"] < count * 0.6 or random_words["not understood"] > count * 0.05:
        print("random templates say too little")
        return 1
    return 1 if sum(both[word] for both in (words, random_words) for word in ("differs", "accepted")) else 0


if __name__ == "__main__":
    sys.exit(main())
