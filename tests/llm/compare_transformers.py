"""Logits of small random models of every family, by Samebit and by transformers.

    compare_transformers.py LLM_LOGITS WORK [--device DRIVER] [--wide] [FAMILY…]

For each family and each of its settings that change what is computed, a model with random weights is made and saved by
transformers. The logits of one prompt, in f32, are compared with PyTorch's own in f64: Samebit's largest error may be at most
twice PyTorch's in f32, plus what both positions' tables, in f32, may differ by; in bf16 its root mean square at most 1.1 times
and its largest at most 1.5 times PyTorch's. Where a token's margin exceeds the errors, the likeliest token has to be the same.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

parser = argparse.ArgumentParser()
parser.add_argument("tool")
parser.add_argument("work", type=pathlib.Path)
parser.add_argument("names", nargs="*", metavar="FAMILY")
parser.add_argument("--device", metavar="DRIVER", help="the driver's library, such as libcuda.so.1; by default the CPU")
parser.add_argument("--wide", action="store_true")
parser.add_argument("--bits", metavar="LLM_DEVICE", help="with --device: also compare each model's bits there with the CPU's, by that tool")
parser.add_argument("--keep", action="store_true", help="leave wide models where they are")
options = parser.parse_intermixed_args()
# transformers asks CUDA, which the tests' PyTorch has not (tools/python-environment), whether it is recording.
if options.device is None:
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.set_num_threads(1)
else:
    torch.set_default_device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
torch.manual_seed(7)
PROMPT = 150
COMMON = dict(vocab_size=211, hidden_size=64, intermediate_size=112, num_hidden_layers=3, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, rope_theta=10000.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, rope_theta=10000.0, original_max_position_embeddings=128)
LINEAR = dict(rope_type="linear", factor=2.0, rope_theta=10000.0)
LONG = [1.0 + 0.3 * i for i in range(8)]
SHORT = [1.0 + 0.01 * i for i in range(8)]


def longrope(original):
    return dict(rope_type="longrope", long_factor=LONG, short_factor=SHORT, rope_theta=10000.0,
                original_max_position_embeddings=original)


# name -> (class, settings)
T = transformers
CASES = {
    "llama": (T.LlamaConfig, dict(COMMON)),
    "llama-bias": (T.LlamaConfig, dict(COMMON, attention_bias=True, mlp_bias=True, head_dim=32, tie_word_embeddings=True)),
    "llama3": (T.LlamaConfig, dict(COMMON, rope_parameters=LLAMA3)),
    "llama-linear": (T.LlamaConfig, dict(COMMON, rope_parameters=LINEAR)),
    "mistral": (T.MistralConfig, dict(COMMON, sliding_window=17)),
    "qwen2": (T.Qwen2Config, dict(COMMON, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "qwen2-yarn": (T.Qwen2Config, dict(COMMON, rope_parameters=YARN)),
    "qwen3": (T.Qwen3Config, dict(COMMON, head_dim=32)),
    "gemma2": (T.Gemma2Config, dict(COMMON, head_dim=32, sliding_window=20, query_pre_attn_scalar=24)),
    "gemma3": (T.Gemma3TextConfig, dict(COMMON, num_hidden_layers=7, head_dim=32, sliding_window=20)),
    "phi3": (T.Phi3Config, dict(COMMON, pad_token_id=0)),
    "phi3-long": (T.Phi3Config, dict(COMMON, pad_token_id=0, rope_parameters=longrope(64),
                                     original_max_position_embeddings=64)),
    "phi3-short": (T.Phi3Config, dict(COMMON, pad_token_id=0, rope_parameters=longrope(256),
                                      original_max_position_embeddings=256)),
    "gpt2": (T.GPT2Config, dict(vocab_size=211, n_embd=64, n_layer=3, n_head=4, n_positions=512, bos_token_id=1,
                                eos_token_id=2)),
}


def wide(vocabulary=32000, layers=2, positions=4096, **more):
    return dict(vocab_size=vocabulary, num_hidden_layers=layers, max_position_embeddings=positions, bos_token_id=1, eos_token_id=2, **more)


def shape(hidden, middle, heads, key_heads, width=None):
    sizes = dict(hidden_size=hidden, intermediate_size=middle, num_attention_heads=heads, num_key_value_heads=key_heads)
    return dict(sizes, head_dim=width) if width else sizes


def turning(base, **scaling):
    """A rotation's settings, as this version of transformers spells them."""
    if int(T.__version__.split(".")[0]) >= 5:
        return dict(rope_parameters={"rope_type": "default", "rope_theta": base, **scaling})
    return dict(rope_theta=base, **({"rope_scaling": scaling} if scaling else {}))


THREE = dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
PHI = dict(rope_type="longrope", long_factor=[1.0 + 0.5 * i for i in range(48)], short_factor=[1.0 + 0.01 * i for i in range(48)])
# Widths of the families' models; windows are short, so that the prompt sees their ends.
WIDE_CASES = {
    "llama-2-7b": (T.LlamaConfig, wide(**shape(4096, 11008, 32, 32))),
    "llama-3-8b": (T.LlamaConfig, wide(**shape(4096, 14336, 32, 8), **turning(500000.0))),
    "llama-3.2-3b": (T.LlamaConfig, wide(positions=131072, **shape(3072, 8192, 24, 8, 128), tie_word_embeddings=True, **turning(500000.0, **THREE))),
    "mistral-7b": (T.MistralConfig, wide(**shape(4096, 14336, 32, 8), sliding_window=100)),
    "qwen2-7b": (T.Qwen2Config, wide(**shape(3584, 18944, 28, 4), **turning(1000000.0))),
    "qwen3-8b": (T.Qwen3Config, wide(**shape(4096, 12288, 32, 8, 128), **turning(1000000.0))),
    "gemma-2-2b": (T.Gemma2Config, wide(**shape(2304, 9216, 8, 4, 256), sliding_window=100, query_pre_attn_scalar=256)),
    "gemma-3-1b": (T.Gemma3TextConfig, wide(layers=7, **shape(1152, 6912, 4, 1, 256), sliding_window=100, query_pre_attn_scalar=256)),
    "phi-3-mini": (T.Phi3Config, wide(vocabulary=32064, **shape(3072, 8192, 32, 32), pad_token_id=0, original_max_position_embeddings=4096,
                                      **turning(10000.0, **PHI))),
    "gpt2-xl": (T.GPT2Config, dict(vocab_size=50257, n_embd=1600, n_layer=3, n_head=25, n_positions=1024)),
    "llama-3.2-1b-whole": (T.LlamaConfig, wide(128256, 16, 131072, **shape(2048, 8192, 32, 8, 64), tie_word_embeddings=True,
                                               **turning(500000.0, **THREE))),
    "llama-3-8b-whole": (T.LlamaConfig, wide(128256, 32, 8192, **shape(4096, 14336, 32, 8), **turning(500000.0))),
}
if options.wide:
    CASES = WIDE_CASES


def make_model(name, folder):
    config_class, settings = CASES[name]
    config = config_class(**settings)
    config._attn_implementation = "eager"
    model = T.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # (biases and norms begin as zeros and ones, which would hide what is done with them)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
            elif not options.wide:
                parameter.add_(0.1 * torch.randn_like(parameter))
            parameter.copy_(parameter.bfloat16())
    model.eval()
    if options.wide:
        convert(model, torch.bfloat16)
    model.save_pretrained(folder)
    return model


def convert(model, dtype):
    """Parameters alone: the frequencies of rotations stay f32, as they are in a model that transformers loads in bf16."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)


def logits_of(model, tokens, dtype):
    convert(model, dtype)
    with torch.no_grad():
        return model(tokens[None], use_cache=False).logits[0].double().cpu().numpy()


def own_logits(tool, folder, dtype, tokens):
    file = folder / f"{dtype}.npy"
    context = 256 if folder.name == "phi3-short" else 512  # (which factors of longrope there are depends on it)
    driver = [options.device] if options.device else []
    subprocess.run([tool, folder, dtype, str(context), "64", ",".join(map(str, tokens.tolist())), file, *driver], check=True)
    return numpy.load(file).astype(numpy.float64)


def rms(x):
    return float(numpy.sqrt(numpy.mean(x * x)))


def compare(name, tool, work):
    folder = work / name
    start = time.time()
    model = make_model(name, folder)
    tokens = torch.randint(0, model.config.vocab_size, (PROMPT,))
    exact = logits_of(model, tokens, torch.float32 if options.wide else torch.float64)
    failures = []
    kinds = [("f32", torch.float32, 2.0, 2.0)] if not options.wide else []
    for dtype, kind, most, square in kinds + [("bf16", torch.bfloat16, 1.5, 1.1)]:
        theirs, ours = logits_of(model, tokens, kind) - exact, own_logits(tool, folder, dtype, tokens) - exact
        scale = rms(exact)
        largest, largest_theirs = abs(ours).max(), abs(theirs).max()
        slack = 2e-5 * scale if dtype == "f32" else 0
        top = numpy.partition(exact, (-2, -1), axis=1)
        decided = top[:, -1] - top[:, -2] > 2 * largest
        same = ((ours + exact).argmax(1) == exact.argmax(1))[decided]
        print(f"{name:18} {dtype:4}  largest {largest:9.2e} (PyTorch {largest_theirs:9.2e})  rms {rms(ours):9.2e} "
              f"({rms(theirs):9.2e}) of {scale:6.3f}  decided {decided.mean():4.0%}, equal {same.mean():4.0%}  {time.time() - start:.1f} s", flush=True)
        if not (largest <= most * largest_theirs + slack and rms(ours) <= square * rms(theirs) + slack and same.all()):
            failures.append(dtype)
    failures += [f"bits: {how}" for how in ways_of(name) if options.bits and not has_bits_of_cpu(folder, how)]
    if options.wide and not options.keep:  # (up to 16 GB)
        shutil.rmtree(folder)
    return failures


def ways_of(name):
    """What the tool is to compare: a prompt with the CPU's, and pieces of one with each other. A whole model's steps."""
    if name.endswith("8b-whole"):
        return ["cpu tokens=4 chunks=2,1"]
    if name.endswith("whole"):
        return ["cpu tokens=40 chunks=8,1"]
    return ["cpu tokens=20", "cpu tokens=20 dtype=f16", "pieces tokens=300 chunks=1,16,17,512 graphs=build"]


def has_bits_of_cpu(folder, how):
    part, *rest = how.split()
    run = subprocess.run([options.bits, part, folder, f"driver={options.device}", *rest], stdout=subprocess.PIPE, text=True)
    print("    " + run.stdout.strip().splitlines()[-1] if run.stdout.strip() else f"    {how}: nothing said", flush=True)
    return run.returncode == 0


if __name__ == "__main__":
    options.work.mkdir(parents=True, exist_ok=True)
    print(f"transformers {T.__version__}, PyTorch {torch.__version__}", flush=True)
    wrong = {name: failures for name in options.names or list(CASES) if (failures := compare(name, options.tool, options.work))}
    sys.exit(f"too far from transformers: {wrong}" if wrong else 0)
