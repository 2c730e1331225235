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
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "llm")]
import gpu_timing  # noqa: E402
import make_llama  # noqa: E402

BF16 = torch.bfloat16


def normal(*extents):
    return (torch.randn(extents, device="cuda") * 0.02).to(BF16)


class Layer(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden, _, heads, key_heads, self.width, between, *_ = make_llama.SHAPES[shape]
        extents = {"q": (heads * self.width, hidden), "k": (key_heads * self.width, hidden), "v": (key_heads * self.width, hidden),
                   "o": (hidden, heads * self.width), "gate": (between, hidden), "up": (between, hidden), "down": (hidden, between),
                   "first_norm": (hidden,), "second_norm": (hidden,)}
        self.weights = torch.nn.ParameterDict({name: torch.nn.Parameter(normal(*e), requires_grad=False) for name, e in extents.items()})

    def forward(self, x, cosines, sines):
        w, width, rows = self.weights, self.width, x.shape[0]

        def heads(name):
            return F.linear(normed, w[name]).view(rows, -1, width).transpose(0, 1)[None]

        def turned(t):
            return t * cosines + torch.cat((-t[..., width // 2:], t[..., :width // 2]), -1) * sines

        normed = F.rms_norm(x, x.shape[1:], w["first_norm"], 1e-5)
        mixed = F.scaled_dot_product_attention(turned(heads("q")), turned(heads("k")), heads("v"),
                                               is_causal=True, enable_gqa=True)
        x = x + F.linear(mixed[0].transpose(0, 1).reshape(rows, -1), w["o"])
        normed = F.rms_norm(x, x.shape[1:], w["second_norm"], 1e-5)
        return x + F.linear(F.silu(F.linear(normed, w["gate"])) * F.linear(normed, w["up"]), w["down"])


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
    hidden, layer_count, _, _, width, _, vocabulary, _ = make_llama.SHAPES[shape]
    layers = torch.nn.ModuleList([Layer(shape) for _ in range(layer_count)])
    embedding, scale = normal(vocabulary, hidden), torch.ones(hidden, device="cuda", dtype=BF16)

    def model(ids, cosines, sines):
        x = embedding[ids]
        for layer in layers:
            x = layer(x, cosines, sines)
        return F.linear(F.rms_norm(x[-1:], x.shape[1:], scale, 1e-5), embedding)

    times = {}
    for rows in prompts:
        ids = torch.arange(rows, device="cuda") * 7919 % 128000
        tables = [torch.randn(rows, width, device="cuda", dtype=BF16) for _ in range(2)]
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

    def run_of(rows):
        ids = [(i * 7919 + 5) % 128000 for i in range(rows)]

        def run():
            ids[0] = (ids[0] + 1) % 128000
            model.generate(ids, 1, ignore_stops=True, digest=False)

        return ids, run

    for rows in prompts:
        ids, run = run_of(rows)
        digests = {model.generate(ids, 2, ignore_stops=True, chunk=chunk).digest for chunk in (0, 512, 2048)}
        if len(digests) != 1:
            wrong.append(rows)
        for _ in range(3):
            run()
        ours = median_of(run)
        say(f"bench prefill/{name}/{rows} samebit={ours:.3f} peer={peer[rows]:.3f} unit=ms ratio={peer[rows] / ours:.3f}"
            + (" WRONG" if rows in wrong else ""))
    for rows in prompts if kernels else []:  # behind all times, which shall be those of a process that nobody has profiled
        _, run = run_of(rows)
        run()
        run()
        say(f"# {rows} tokens:")
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
    report, wrong = gpu_timing.Report(arguments.write), []
    report.line(f"# {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    prompts = [int(length) for length in arguments.prompts.split(",")]
    for name in arguments.shapes.split(","):
        peer = time_peer(f"llama-{name}", prompts)
        torch.cuda.empty_cache()
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            make_llama.make(f"llama-{name}", pathlib.Path(folder))
            wrong += time_ours(folder, prompts, peer, name, report.line, arguments.kernels)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
