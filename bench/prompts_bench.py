#!/usr/bin/env python3
"""Compare how long Samebit and PyTorch take to read a prompt on a GPU, and to choose the token behind it.

    python prompts_bench.py --library libsamebit.so [--shapes 1b,8b] [--prompts 512,2048,8192] [--kernels] [--folder DIR] [--write FILE]

Both have random weights in bf16 of the shapes of Llama-3.2-1B and Llama-3.1-8B. The peer is a plain Llama written with PyTorch's own
functions (linear, rms_norm, scaled_dot_product_attention), compiled by torch.compile and replayed as a CUDA graph; it computes the logits
of the last position and stops there. Samebit generates one token through its Python package, from a list of ids to the token. A prompt's
bits are those of its tokens one by one: digests over logits of pieces of 512, 2,048 and as many as it likes have to be equal.

Lines: bench prefill/SHAPE/TOKENS, medians of nine in milliseconds; a ratio above 1 means that Samebit is faster. --kernels lists what
each kernel adds to a prompt of Samebit's, from the end of the one ahead to its own. Exit status 1 when digests differ.
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
SHAPES = {
    "1b": {"hidden": 2048, "layers": 16, "heads": 32, "key_heads": 8, "width": 64, "feed_forward": 8192, "tied": True},
    "8b": {"hidden": 4096, "layers": 32, "heads": 32, "key_heads": 8, "width": 128, "feed_forward": 14336, "tied": False},
}
VOCABULARY = 128256
BF16 = torch.bfloat16


def config_of(shape):
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": shape["hidden"],
            "intermediate_size": shape["feed_forward"], "num_attention_heads": shape["heads"],
            "num_key_value_heads": shape["key_heads"], "head_dim": shape["width"], "num_hidden_layers": shape["layers"],
            "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 131072,
            "tie_word_embeddings": shape["tied"], "torch_dtype": "bfloat16", "hidden_act": "silu", "attention_bias": False,
            "mlp_bias": False, "bos_token_id": 128000, "eos_token_id": 128001}


def tensors_of(shape):
    """(name, extents) of a checkpoint's."""
    hidden, wide, width = shape["hidden"], shape["feed_forward"], shape["width"]
    yield "model.embed_tokens.weight", (VOCABULARY, hidden)
    yield "model.norm.weight", (hidden,)
    if not shape["tied"]:
        yield "lm_head.weight", (VOCABULARY, hidden)
    for layer in range(shape["layers"]):
        names = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
                 "self_attn.q_proj": (shape["heads"] * width, hidden), "self_attn.k_proj": (shape["key_heads"] * width, hidden),
                 "self_attn.v_proj": (shape["key_heads"] * width, hidden), "self_attn.o_proj": (hidden, shape["heads"] * width),
                 "mlp.gate_proj": (wide, hidden), "mlp.up_proj": (wide, hidden), "mlp.down_proj": (hidden, wide)}
        for name, extents in names.items():
            yield f"model.layers.{layer}.{name}.weight", extents


def write_checkpoint(folder, shape):
    torch.manual_seed(1)
    (folder / "config.json").write_text(json.dumps(config_of(shape)))
    head, at = {}, 0
    for name, extents in tensors_of(shape):
        size = 2 * torch.Size(extents).numel()
        head[name] = {"dtype": "BF16", "shape": extents, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, extents in tensors_of(shape):
            weights = torch.randn(extents, device="cuda") * (0.02 if len(extents) == 2 else 0.1) + (len(extents) == 1)
            file.write(weights.to(BF16).view(torch.int16).cpu().numpy().tobytes())


class Layer(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        names = {name.split(".", 3)[3]: extents for name, extents in tensors_of(shape) if name.startswith("model.layers.0.")}
        self.weights = torch.nn.ParameterDict({
            name.split(".")[-2]: torch.nn.Parameter((torch.randn(extents, device="cuda") * 0.02).to(BF16), requires_grad=False)
            for name, extents in names.items()})

    def forward(self, x, cosines, sines):
        w, width, rows = self.weights, self.shape["width"], x.shape[0]

        def heads(name):
            return F.linear(normed, w[name]).view(rows, -1, width).transpose(0, 1)[None]

        def turned(t):
            return t * cosines + torch.cat((-t[..., width // 2:], t[..., :width // 2]), -1) * sines

        normed = F.rms_norm(x, x.shape[1:], w["input_layernorm"], 1e-5)
        mixed = F.scaled_dot_product_attention(turned(heads("q_proj")), turned(heads("k_proj")), heads("v_proj"),
                                               is_causal=True, enable_gqa=True)
        x = x + F.linear(mixed[0].transpose(0, 1).reshape(rows, -1), w["o_proj"])
        normed = F.rms_norm(x, x.shape[1:], w["post_attention_layernorm"], 1e-5)
        return x + F.linear(F.silu(F.linear(normed, w["gate_proj"])) * F.linear(normed, w["up_proj"]), w["down_proj"])


def median_of(run):
    """In milliseconds."""
    times = []
    for _ in range(9):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


@torch.no_grad()
def time_peer(shape, prompts):
    layers = torch.nn.ModuleList([Layer(shape) for _ in range(shape["layers"])])
    embedding = (torch.randn(VOCABULARY, shape["hidden"], device="cuda") * 0.02).to(BF16)
    scale = torch.ones(shape["hidden"], device="cuda", dtype=BF16)

    def model(ids, cosines, sines):
        x = embedding[ids]
        for layer in layers:
            x = layer(x, cosines, sines)
        return F.linear(F.rms_norm(x[-1:], x.shape[1:], scale, 1e-5), embedding)

    times = {}
    for rows in prompts:
        ids = torch.arange(rows, device="cuda") * 7919 % 128000
        tables = [torch.randn(rows, shape["width"], device="cuda", dtype=BF16) for _ in range(2)]
        compiled = torch.compile(model, dynamic=False)
        for _ in range(3):
            compiled(ids, *tables)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            compiled(ids, *tables)
        times[rows] = median_of(graph.replay)
        del graph, compiled
    return times


def list_kernels(run, say):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        run()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        found.export_chrome_trace(file.name)
        events = [e for e in json.load(open(file.name))["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    adds, last = {}, None
    for event in sorted(events, key=lambda e: e["ts"] + e["dur"]):
        end = event["ts"] + event["dur"]
        known = adds.setdefault(event["name"], [0, 0])
        known[0] += end - (last if last is not None else event["ts"])
        known[1] += 1
        last = end
    for name, (added, count) in sorted(adds.items(), key=lambda item: -item[1][0])[:12]:
        say(f"#   {added / 1e3:8.3f} ms {count:5d} {name}")


def time_ours(folder, prompts, peer, name, say, kernels):
    from samebit import llm
    model, wrong = llm.load(str(folder), device="cuda", context=max(prompts) + 64), []
    for rows in prompts:
        ids = [(i * 7919 + 5) % 128000 for i in range(rows)]
        digests = {model.generate(ids, 2, ignore_stops=True, chunk=chunk).digest for chunk in (0, 512, 2048)}
        if len(digests) != 1:
            wrong.append(rows)

        def run():
            ids[0] = (ids[0] + 1) % 128000
            model.generate(ids, 1, ignore_stops=True, digest=False)

        for _ in range(3):
            run()
        ours = median_of(run)
        say(f"bench prefill/{name}/{rows} samebit={ours:.3f} peer={peer[rows]:.3f} unit=ms ratio={peer[rows] / ours:.3f}"
            + (" WRONG" if rows in wrong else ""))
        if kernels:
            list_kernels(run, say)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--shapes", default="1b,8b")
    parser.add_argument("--prompts", default="512,2048,8192")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, help="for the checkpoints, which are deleted; a temporary one by default")
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ["SAMEBIT_LIBRARY"] = arguments.library
    lines, wrong = [], []

    def say(line):
        print(line, flush=True)
        lines.append(line)

    say(f"# {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    prompts = [int(length) for length in arguments.prompts.split(",")]
    for name in arguments.shapes.split(","):
        peer = time_peer(SHAPES[name], prompts)
        torch.cuda.empty_cache()
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            write_checkpoint(pathlib.Path(folder), SHAPES[name])
            torch.cuda.empty_cache()
            wrong += time_ours(folder, prompts, peer, name, say, arguments.kernels)
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
