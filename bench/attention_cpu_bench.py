#!/usr/bin/env python3
"""Time Attention by itself against PyTorch's scaled_dot_product_attention, on the CPU: steps of decoding and prompts.

    python attention_cpu_bench.py --library libsamebit.so [--only REGEX] [--dtype bf16] [--seconds 0.5] [--threads 1] [--isa avx2]

A line a case; a ratio above 1 says that Samebit is faster:

    bench attention/KIND/DTYPE/HEADS:KEY_HEADSxWIDTH-ROWS/KEYS samebit=… peer=… unit=us ratio=…

Samebit's time is the node's own, by its clock; PyTorch's is the call, a few microseconds of which are Python's. Both run in this
process and take turns; medians are told. Where heads share keys, PyTorch gets `enable_gqa`. Outputs are compared.
"""

import argparse
import pathlib
import re
import statistics
import sys
import tempfile
import time

import numpy
import onnx
import torch
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402

# Heads of queries, heads of keys, width of a head, rows, keys.
DECODE = [
    *[(16, 16, 64, 1, keys) for keys in (128, 512, 2048)],
    *[(16, 4, 64, 1, keys) for keys in (512, 2048, 8192)],
    *[(32, 8, 128, 1, keys) for keys in (512, 2048, 8192)],
    (8, 1, 256, 1, 2048),
]
PROMPT = [
    *[(16, 16, 64, rows, rows) for rows in (128, 512, 2048)],
    *[(16, 4, 64, rows, rows) for rows in (128, 512, 2048)],
    *[(32, 8, 128, rows, rows) for rows in (128, 512, 2048)],
    (16, 16, 80, 512, 512),
    (8, 1, 256, 512, 512),
]
DTYPES = {"f32": (TensorProto.FLOAT, torch.float32, 1e-4), "bf16": (TensorProto.BFLOAT16, torch.bfloat16, 0.03),
          "f16": (TensorProto.FLOAT16, torch.float16, 0.01)}


def model(shape, causal, element):
    heads, key_heads, width, rows, keys = shape
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=int(causal))
    inputs = [helper.make_tensor_value_info(name, element, dims) for name, dims in (
        ("q", [1, heads, rows, width]), ("k", [1, key_heads, keys, width]), ("v", [1, key_heads, keys, width]))]
    graph = helper.make_graph([node], "attention", inputs, [helper.make_tensor_value_info("y", element, None)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    made.ir_version = 10
    return made


class Samebit:
    def __init__(self, path, tensors, threads, isa):
        self.took, self.kernel = 0, ""
        self.session = samebit.load(path, threads=threads, isa=isa).session(observer=self.observe)
        self.inputs = {name: samebit.tensor(tensor) for name, tensor in tensors.items()}

    def observe(self, event):
        self.took, self.kernel = (event.end_ns - event.start_ns) / 1e3, event.kernel

    def run(self):
        self.output = self.session.run(self.inputs)["y"]
        return self.took

    def result(self):
        return torch.from_numpy(numpy.asarray(self.output).astype(numpy.float32))


class Peer:
    def __init__(self, tensors, causal):
        self.tensors = [tensors[name] for name in ("q", "k", "v")]
        self.options = {"is_causal": causal, "enable_gqa": tensors["q"].shape[1] != tensors["k"].shape[1]}

    def run(self):
        start = time.perf_counter()
        self.output = torch.nn.functional.scaled_dot_product_attention(*self.tensors, **self.options)
        return (time.perf_counter() - start) * 1e6

    def result(self):
        return self.output


def measure(shape, causal, dtype, folder, arguments):
    element, kind, largest = DTYPES[dtype]
    heads, key_heads, width, rows, keys = shape
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.randn(dims, generator=generator).to(kind) for name, dims in (
        ("q", (1, heads, rows, width)), ("k", (1, key_heads, keys, width)), ("v", (1, key_heads, keys, width)))}
    path = pathlib.Path(folder) / "attention.onnx"
    onnx.save(model(shape, causal, element), path)
    sides = [Samebit(path, tensors, arguments.threads, arguments.isa), Peer(tensors, causal)]
    times = [[], []]
    for _ in range(3):
        for side, took in zip(sides, times):
            side.run()
            end = time.perf_counter() + arguments.seconds / 6
            least = len(took) + 2
            while len(took) < least or time.perf_counter() < end:
                took.append(side.run())
    ours, theirs = sides[0].result().float(), sides[1].result().float()
    difference = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    if not difference < largest:
        sys.exit(f"{shape} in {dtype}: outputs differ by {difference}")
    return statistics.median(times[0]), statistics.median(times[1]), sides[0].kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name it matches")
    parser.add_argument("--dtype", default="", choices=["", *DTYPES], help="f32, bf16 and f16 by default")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for one case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", default="best", choices=["best", "scalar", "avx2", "avx512"], help="Samebit's")
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        for dtype in [arguments.dtype] if arguments.dtype else DTYPES:
            ratios = {}
            for kind, shapes in (("decode", DECODE), ("prompt", PROMPT)):
                for shape in shapes:
                    heads, key_heads, width, rows, keys = shape
                    name = f"attention/{kind}/{dtype}/{heads}:{key_heads}x{width}-{rows}/{keys}"
                    if not re.search(arguments.only, name):
                        continue
                    ours, theirs, kernel = measure(shape, kind == "prompt", dtype, folder, arguments)
                    print(f"bench {name} samebit={ours:.1f} peer={theirs:.1f} unit=us ratio={theirs / ours:.2f} {kernel}",
                          flush=True)
                    ratios.setdefault(kind, []).append(theirs / ours)
            for kind, all_of_them in ratios.items():
                print(f"geometric mean of {len(all_of_them)} in {dtype}, {kind}: "
                      f"{statistics.geometric_mean(all_of_them):.2f}")


if __name__ == "__main__":
    main()
