"""Logits of small random models of every family, by Samebit and by transformers.

    compare_transformers.py LLM_LOGITS WORK [FAMILY…]

For each family and each of its settings that change what is computed, a model with random weights is made and saved by
transformers. The logits of one prompt, in f32, are compared with PyTorch's own in f64: Samebit's largest error may be at most
twice PyTorch's in f32, plus what both positions' tables, in f32, may differ by; in bf16 its root mean square at most 1.1 times
and its largest at most 1.5 times PyTorch's. Where a token's margin exceeds the errors, the likeliest token has to be the same.
"""

import os
import pathlib
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

# transformers asks CUDA, which the tests' PyTorch has not (tools/python-environment), whether it is recording.
torch.cuda.is_current_stream_capturing = lambda: False
torch.manual_seed(7)
torch.set_num_threads(1)
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


def make_model(name, folder):
    config_class, settings = CASES[name]
    config = config_class(**settings)
    config._attn_implementation = "eager"
    model = T.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # (biases and norms begin as zeros and ones, which would hide what is done with them)
        for parameter in model.parameters():
            parameter.copy_((parameter + 0.1 * torch.randn_like(parameter)) if parameter.dim() > 1
                            else parameter + 0.3 * torch.randn_like(parameter))
            parameter.copy_(parameter.bfloat16())
    model.eval()
    model.save_pretrained(folder)
    return model


def logits_of(model, tokens, dtype):
    with torch.no_grad():
        return model.to(dtype)(tokens[None], use_cache=False).logits[0].double().numpy()


def own_logits(tool, folder, dtype, tokens):
    file = folder / f"{dtype}.npy"
    context = 256 if folder.name == "phi3-short" else 512  # (which factors of longrope there are depends on it)
    subprocess.run([tool, folder, dtype, str(context), "64", ",".join(map(str, tokens.tolist())), file], check=True)
    return numpy.load(file).astype(numpy.float64)


def rms(x):
    return float(numpy.sqrt(numpy.mean(x * x)))


def compare(name, tool, work):
    folder = work / name
    model = make_model(name, folder)
    tokens = torch.randint(0, 211, (PROMPT,))
    exact = logits_of(model, tokens, torch.float64)
    failures = []
    for dtype, kind, most, square in (("f32", torch.float32, 2.0, 2.0), ("bf16", torch.bfloat16, 1.5, 1.1)):
        theirs, ours = logits_of(model, tokens, kind) - exact, own_logits(tool, folder, dtype, tokens) - exact
        scale = rms(exact)
        largest, largest_theirs = abs(ours).max(), abs(theirs).max()
        slack = 2e-5 * scale if dtype == "f32" else 0
        top = numpy.sort(exact, axis=1)
        decided = top[:, -1] - top[:, -2] > 2 * largest
        same = ((ours + exact).argmax(1) == exact.argmax(1))[decided]
        print(f"{name:13} {dtype:4}  largest {largest:9.2e} (PyTorch {largest_theirs:9.2e})  rms {rms(ours):9.2e} "
              f"({rms(theirs):9.2e}) of {scale:6.3f}  decided {decided.mean():4.0%}, equal {same.mean():4.0%}", flush=True)
        if not (largest <= most * largest_theirs + slack and rms(ours) <= square * rms(theirs) + slack and same.all()):
            failures.append(dtype)
    return failures


if __name__ == "__main__":
    tool, work, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] or list(CASES)
    work.mkdir(parents=True, exist_ok=True)
    wrong = {name: failures for name in names if (failures := compare(name, tool, work))}
    sys.exit(f"too far from transformers: {wrong}" if wrong else 0)
