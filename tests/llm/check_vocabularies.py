"""check_vocabularies.py SAMEBIT FOLDER: GGUF files of vocabularies give the tokens that were recorded beside them.

FOLDER has NAME.gguf with NAME.gguf.inp, texts with lines `__ggml_vocab_test__` between, and NAME.gguf.out, a line of ids for each:
the folder models of llama.cpp's source is such a one. Files whose tokenizer is refused are named with the reason.
"""

import pathlib
import subprocess
import sys

samebit, folder = sys.argv[1], pathlib.Path(sys.argv[2])
compared = differing = 0
for vocabulary in sorted(folder.glob("*.gguf")):
    texts, ids = vocabulary.with_suffix(".gguf.inp"), vocabulary.with_suffix(".gguf.out")
    if not texts.exists():
        continue
    different, first = 0, ""
    cases = list(zip(texts.read_bytes().decode().split("\n__ggml_vocab_test__\n"), ids.read_text().splitlines()))
    for text, wanted in cases:
        run = subprocess.run([samebit, "tokenize", str(vocabulary), "-", "--bare"], input=text.encode(), capture_output=True)
        if run.returncode != 0:
            first = run.stderr.decode().strip()
            break
        found = run.stdout.decode().strip().split(",")
        if found == [""]:
            found = []
        if found != wanted.split():
            different += 1
            first = first or f"{text[:60]!r}: {' '.join(found[:12])} instead of {' '.join(wanted.split()[:12])}"
    else:
        compared += len(cases)
        differing += different
        print(f"{vocabulary.name:32} {different} of {len(cases)} texts differ  {first}", flush=True)
        continue
    print(f"{vocabulary.name:32} {first}", flush=True)
print(f"{differing} of {compared} texts differ")
sys.exit(differing != 0 or compared == 0)
