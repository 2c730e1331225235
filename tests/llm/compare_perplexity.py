"""Perplexity of the model of examples/austen over its text, by Samebit and by PyTorch.

    compare_perplexity.py SAMEBIT WORK [PACKAGE]

PACKAGE is r-cran-janeaustenr_1.0.0-1_all.deb or the file Rdata.rdb in it; else the installed package's, or WORK's, into which apt-get
downloads it; where that fails, the test is skipped. Samebit's tokens of the text have to be those that the model was trained on. The
first 100,000 are cut into windows of 512 that know nothing of each other, and each but a window's first counts. Both perplexities, in
f32, may differ by 0.1 %, a log-probability by 1e-3; over the first 5 windows Samebit's in bf16, which computes with less, by 1 %. Then a
byte of the weights is changed, and they have to differ.
"""

import hashlib
import json
import math
import pathlib
import shutil
import subprocess
import sys

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

AUSTEN = pathlib.Path(__file__).resolve().parents[2] / "examples" / "austen"
sys.dont_write_bytecode = True
sys.path.insert(0, str(AUSTEN))
import novels
import train

PACKAGE = "r-cran-janeaustenr_1.0.0-1_all.deb"
TOKENS = 100000
# Of the ids as u16, the low byte first: what the package tokenizers makes of the text (examples/austen/tokenize_novels.py).
TOKENS_SHA256 = "da1c6e1392509fef15608a7ac54f0ecdac0c18d3074271fb3bdb63748b2a382a"
WINDOW = train.WINDOW
FEW = 5 * WINDOW


def find_package(work):
    installed = pathlib.Path("/") / novels.MEMBER
    if installed.exists():
        return installed
    package = work / PACKAGE
    if not package.exists():
        try:
            subprocess.run(["apt-get", "download", "-qq", PACKAGE.split("_")[0]], cwd=work, check=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as failure:
            print(f"skipped: {installed} is not there, and {failure}; install r-cran-janeaustenr or name its .deb")
            sys.exit(77)
    if not package.exists():
        print(f"skipped: apt-get downloads another version than {PACKAGE}")
        sys.exit(77)
    return package


def output(*command, text=None):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, input=text, text=True).stdout


def tokens_of(samebit, text):
    ids = output(samebit, "tokenize", AUSTEN / "model", "-", text=text).replace(",", " ").split()
    tokens = numpy.array(ids[:TOKENS], dtype="<u2")
    if hashlib.sha256(tokens.tobytes()).hexdigest() != TOKENS_SHA256:
        sys.exit("the text's tokens are not those that the model was trained on")
    return tokens


def by_samebit(samebit, model, tokens, dtype):
    logs = []
    for first in range(0, len(tokens), WINDOW):
        window = ",".join(map(str, tokens[first : first + WINDOW]))
        told = json.loads(output(samebit, "generate", model, "--tokens", window, "--score-prompt", "--count", 0, "--logprobs",
                                 "--json", "--dtype", dtype, "--threads", 1))
        # (Null is a logarithm that is not finite.)
        found = [token["logp"] for token in told["tokens"] if "logp" in token]
        logs += [-math.inf if logp is None else logp for logp in found]
    return numpy.array(logs)


def by_torch(model, tokens):
    settings = json.loads((model / "config.json").read_text())
    shape = train.argparse.Namespace(
        vocabulary=settings["vocab_size"], width=settings["hidden_size"], layers=settings["num_hidden_layers"],
        heads=settings["num_attention_heads"], key_heads=settings["num_key_value_heads"], head_width=settings["head_dim"],
        inner=settings["intermediate_size"], dropout=0.0)
    network = train.Model(shape).eval()
    weights = train.load_safetensors(model / "model.safetensors")
    network.load_state_dict({name.removeprefix("model."): weight.float() for name, weight in weights.items()})
    return train.log_probabilities(network, torch.from_numpy(tokens.astype(numpy.int64))).numpy()


def perplexity(logs):
    return math.exp(-logs.mean())


def damage(copy):
    """A copy of the model with one wrong byte: an exponent's of the last norm."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(AUSTEN / "model", copy)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 16
    (copy / "model.safetensors").write_bytes(weights)
    return copy


def main():
    samebit, work = sys.argv[1], pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    package = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else find_package(work)
    tokens = tokens_of(samebit, "".join(novels.novels(package)))
    torch.set_num_threads(1)
    ours, theirs = by_samebit(samebit, AUSTEN / "model", tokens, "f32"), by_torch(AUSTEN / "model", tokens)
    if len(ours) != len(theirs):
        sys.exit(f"{len(ours)} log-probabilities by Samebit and {len(theirs)} by PyTorch")
    apart = abs(perplexity(ours) / perplexity(theirs) - 1)
    print(f"{len(ours)} tokens: perplexity {perplexity(ours):.6f} by Samebit in f32, {perplexity(theirs):.6f} by PyTorch: "
          f"{apart:.1e} apart, log-probabilities by at most {abs(ours - theirs).max():.1e}")
    wrong = []
    if apart > 1e-3 or abs(ours - theirs).max() > 1e-3:
        wrong.append("the perplexities in f32 differ")
    if f"{perplexity(theirs):.3f}" not in (AUSTEN / "README.md").read_text():
        wrong.append("examples/austen/README.md has another perplexity")

    exact = perplexity(theirs[: FEW - FEW // WINDOW])
    rounded = perplexity(by_samebit(samebit, AUSTEN / "model", tokens[:FEW], "bf16"))
    damaged = perplexity(by_samebit(samebit, damage(work / "damaged"), tokens[:FEW], "f32"))
    print(f"first {FEW}: {exact:.6f} by PyTorch, {rounded:.6f} in bf16, {damaged:.6f} with a wrong byte")
    if abs(rounded / exact - 1) > 1e-2:
        wrong.append("the perplexity in bf16 is another")
    if abs(damaged / exact - 1) <= 1e-3:
        wrong.append("a wrong byte among the weights changes nothing")
    for line in wrong:
        print(f"FAILED: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
