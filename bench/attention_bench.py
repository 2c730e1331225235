#!/usr/bin/env python3
"""Compare Samebit's Attention with PyTorch's on a GPU: steps of decoding and prompts, over caches as language models lay them out.

    python attention_bench.py --library libsamebit.so [--only TEXT] [--seconds S] [--dtype bf16] [--ways] [--write FILE]

A case is a chain of Attention nodes, each with a cache of its own of several that together exceed the L2, so that no node finds its
keys there; the queries of a node are what the one before gave. Both sides run in one process, each as a replayed CUDA graph, and
alternate in rounds. PyTorch's time is the shortest of its kernels' (flash, cuDNN, memory-efficient), whose times follow.

With --ways each case of 16 bits is timed in each way that the library has for its kind, too (SAMEBIT_CUDA_ATTENTION), where it can be taken; all
must give the same bits. Their times have the ways' names; the first one is that of what a run without the variable takes.

Cases of attention/mixed are PagedAttention of a prompt beside single rows, whose peer are Samebit's own Attention of either, one time and the
other. Cases of attention/paged are PagedAttention, whose peer is Samebit's own Attention over the same keys side by side, and whose results
must be the same bits: each sequence's keys are on pages in random order.

Lines: bench attention/decode/…, attention/prefill/… and attention/paged/…, in microseconds a node; a ratio above 1 means that Samebit,
or what has pages, is faster. Their names have batch x heads of queries : heads of keys x width of a head, rows of a sequence, and keys that are used of those for which
there is room. `rate` is TB/s of keys and values that are used, or TFLOP/s of both products over pairs that causality leaves.
"""

import argparse
import math
import os
import pathlib
import statistics
import sys
import tempfile

import torch
from onnx import TensorProto, helper
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402
from gpu_bench import Ours, Peer, Report, alternate  # noqa: E402

# (batch, heads of queries, heads of keys, width, rows, keys used, room)
DECODE = [
    *[(1, 32, 8, 128, 1, keys, keys) for keys in (512, 2048, 8192, 32768, 131072)],
    (1, 32, 8, 128, 1, 1000, 131072),
    (1, 32, 32, 128, 1, 8192, 8192),
    (1, 14, 2, 64, 1, 32768, 32768),
    (1, 8, 4, 256, 1, 32768, 32768),
    (1, 32, 8, 96, 1, 32768, 32768),
    (1, 32, 8, 128, 16, 32768, 32768),
    (16, 32, 8, 128, 1, 4096, 4096),
    (64, 32, 8, 128, 1, 2048, 2048),
]
PREFILL = [
    *[(1, 32, 8, 128, rows, rows, rows) for rows in (512, 2048, 8192, 16384)],
    (4, 32, 8, 128, 4096, 4096, 4096),
    (2, 32, 8, 128, 8192, 8192, 8192),
    *[(batch, 32, 8, 64, rows, rows, rows) for batch, rows in ((1, 512), (1, 2048), (4, 4096), (1, 16384))],
    (1, 14, 2, 64, 4096, 4096, 4096),
    (1, 32, 32, 80, 2048, 2048, 2048),
    (1, 8, 4, 256, 4096, 4096, 4096),
    (8, 32, 8, 128, 1024, 1024, 1024),
    (1, 32, 8, 128, 512, 8192, 8192),
]
# The same, and rows of a page.
PAGED = [
    *[(batch, 32, 8, 64, 1, 3 * room // 4, room, 16) for batch in (1, 2, 4, 8) for room in (256, 512, 1024, 2048)],
    *[(batch, 32, 8, 128, 1, 2048, 2048, 16) for batch in (1, 8, 64)],
    (8, 32, 8, 128, 1, 32768, 32768, 16),
    (8, 32, 8, 128, 1, 2048, 2048, 64),
    (64, 14, 2, 64, 1, 1024, 1024, 16),
    (8, 32, 8, 128, 256, 1024, 1024, 16),
    *[(1, 32, 8, width, 512, keys, keys, 16) for width in (64, 128) for keys in (512, 2048, 8192)],
    (4, 32, 8, 64, 128, 1024, 1024, 16),
]
# A prompt's rows, behind which there are no keys but theirs, and sequences with a row each over keys of room, on pages of 16.
MIXED = [(512, 4, 32, 8, 64, 384, 512), (504, 8, 32, 8, 64, 768, 1024), (496, 16, 32, 8, 64, 768, 1024),
         (496, 16, 32, 8, 128, 1536, 2048), (448, 64, 32, 8, 128, 1536, 2048), (504, 8, 32, 8, 128, 8192, 8192),
         (496, 16, 14, 2, 64, 768, 1024)]
DTYPES = {"f16": (TensorProto.FLOAT16, torch.float16), "bf16": (TensorProto.BFLOAT16, torch.bfloat16),
          "f32": (TensorProto.FLOAT, torch.float32)}
WAYS = {"decode": ("tiles", "clusters", "streams"), "prefill": ("tiles", "warpgroups"),
        "paged": ("tiles", "clusters", "streams", "warpgroups"), "mixed": ("tiles", "streams", "warpgroups")}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}
# A run of a chain takes about so long, beside which its own start does not count.
RUN_SECONDS = 3e-3
# By what two correct chains in 16 bits may differ, relative to the largest output.
LARGEST_DIFFERENCE = 0.05


class Case:
    def __init__(self, kind, batch, heads, key_heads, width, rows, keys, room, dtype):
        self.kind, self.batch, self.heads, self.key_heads, self.width = kind, batch, heads, key_heads, width
        self.rows, self.keys, self.room, self.dtype = rows, keys, room, dtype
        size = torch.empty((), dtype=DTYPES[dtype][1]).element_size()
        self.bytes = 2 * size * batch * keys * key_heads * width
        self.operations = 4 * batch * heads * width * (rows * keys - rows * (rows - 1) // 2)
        expected = max(self.bytes / 4e12, self.operations / 4e14, 4e-6)
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        self.sets = max(1, min(64, math.ceil(4 * cache / self.bytes)))
        self.nodes = max(self.sets, math.ceil(RUN_SECONDS / expected))

    def name(self):
        return (f"attention/{self.kind}/{self.batch}x{self.heads}:{self.key_heads}x{self.width}"
                f"/{self.rows}rows/{self.keys}of{self.room}/{self.dtype}")

    def rate(self, microseconds):
        if self.kind == "decode" or (self.kind == "paged" and self.rows == 1):
            return f"{self.bytes / microseconds / 1e6:.3f}TB/s"
        return f"{self.operations / microseconds / 1e6:.1f}TFLOP/s"

    def tensors(self):
        def random(*dims):
            return torch.randn(*dims, device="cuda", dtype=DTYPES[self.dtype][1])

        result = {"q": random(self.batch, self.rows, self.heads * self.width),
                  "lengths": torch.full((self.batch,), self.keys, device="cuda", dtype=torch.int64)}
        for i in range(self.sets):
            result[f"k{i}"] = random(self.batch, self.room, self.key_heads * self.width)
            result[f"v{i}"] = random(self.batch, self.room, self.key_heads * self.width)
        return result

    def model(self, path):
        element = DTYPES[self.dtype][0]
        queries = [self.batch, self.rows, self.heads * self.width]
        cache = [self.batch, self.room, self.key_heads * self.width]
        inputs = [helper.make_tensor_value_info("q", element, queries),
                  helper.make_tensor_value_info("lengths", TensorProto.INT64, [self.batch])]
        for i in range(self.sets):
            inputs += [helper.make_tensor_value_info(f"{kind}{i}", element, cache) for kind in "kv"]
        nodes = [helper.make_node("Attention",
                                  [f"y{i}" if i else "q", f"k{i % self.sets}", f"v{i % self.sets}", "", "", "", "lengths"],
                                  [f"y{i + 1}"], is_causal=1, q_num_heads=self.heads, kv_num_heads=self.key_heads)
                 for i in range(self.nodes)]
        graph = helper.make_graph(nodes, "chain", inputs,
                                  [helper.make_tensor_value_info(f"y{self.nodes}", element, queries)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
        path.write_bytes(model.SerializeToString())

    def peer(self, tensors, backend):
        """The chain by one of PyTorch's kernels. Rows are the last ones of the keys, which PyTorch's causal mask does not say
        where there are more keys than rows; then what it gets is a mask, or with one row none."""
        def heads(tensor, count):
            return tensor[:, :self.keys].view(self.batch, -1, count, self.width).transpose(1, 2)

        caches = [(heads(tensors[f"k{i}"], self.key_heads), heads(tensors[f"v{i}"], self.key_heads))
                  for i in range(self.sets)]
        mask = None
        if 1 < self.rows < self.keys:
            mask = torch.ones(self.rows, self.keys, dtype=torch.bool, device="cuda").tril(self.keys - self.rows)

        def chain(q):
            y = heads(q, self.heads)
            with sdpa_kernel(backend):
                for i in range(self.nodes):
                    y = torch.nn.functional.scaled_dot_product_attention(
                        y, *caches[i % self.sets], attn_mask=mask, is_causal=1 < self.rows == self.keys,
                        enable_gqa=self.heads != self.key_heads)
            return y.transpose(1, 2).reshape(self.batch, self.rows, -1)

        return Peer(chain, [tensors["q"]])


class PagedCase(Case):
    """The same with keys on pages; `cut` has the pages in any order."""

    def __init__(self, batch, heads, key_heads, width, rows, keys, room, page_rows, dtype):
        super().__init__("paged", batch, heads, key_heads, width, rows, keys, room, dtype)
        self.page_rows, self.columns = page_rows, room // page_rows
        self.sequences, self.new_rows = batch, batch * rows
        self.side_by_side = Case("decode", batch, heads, key_heads, width, rows, keys, room, dtype)

    def name(self):
        return f"{super().name()}/pages_of_{self.page_rows}"

    def cut(self, tensors):
        pages = self.batch * self.columns
        table = torch.randperm(pages, device="cuda")
        begins = torch.arange(self.batch, device="cuda") * self.rows
        result = {"q": tensors["q"].view(1, self.batch * self.rows, -1), "lengths": tensors["lengths"], "begins": begins,
                  "table": table.view(self.batch, self.columns)}
        for i in range(self.sets):
            for kind in "kv":
                result[f"{kind}{i}"] = torch.empty_like(tensors[f"{kind}{i}"]).view(pages, self.page_rows, -1)
                result[f"{kind}{i}"][table] = tensors[f"{kind}{i}"].view(pages, self.page_rows, -1)
        return result

    def model(self, path):
        element, pages = DTYPES[self.dtype][0], self.sequences * self.columns
        queries = [1, self.new_rows, self.heads * self.width]
        lists = {"lengths": [self.sequences], "begins": [self.sequences], "table": [self.sequences, self.columns]}
        inputs = [helper.make_tensor_value_info("q", element, queries)]
        inputs += [helper.make_tensor_value_info(name, TensorProto.INT64, dims) for name, dims in lists.items()]
        inputs += [helper.make_tensor_value_info(f"{kind}{i}", element, [pages, self.page_rows, self.key_heads * self.width])
                   for i in range(self.sets) for kind in "kv"]
        nodes = [helper.make_node("PagedAttention", [f"y{i}" if i else "q", f"k{i % self.sets}", f"v{i % self.sets}", *lists],
                                  [f"y{i + 1}"], domain="samebit", q_num_heads=self.heads, kv_num_heads=self.key_heads)
                 for i in range(self.nodes)]
        graph = helper.make_graph(nodes, "chain", inputs, [helper.make_tensor_value_info(f"y{self.nodes}", element, queries)])
        opsets = [helper.make_opsetid("", 24), helper.make_opsetid("samebit", 1)]
        path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString())


class MixedCase(PagedCase):
    """A prompt beside sequences with a row each; side by side both are nodes of their own."""

    def __init__(self, rows, batch, heads, key_heads, width, keys, room, dtype):
        super().__init__(batch, heads, key_heads, width, 1, keys, room, 16, dtype)
        self.kind, self.prompt = "mixed", rows
        self.columns = max(room, 16 * math.ceil(rows / 16)) // 16
        self.new_rows, self.sequences = rows + batch, batch + 1
        self.side_by_side = [Case("prefill", 1, heads, key_heads, width, rows, rows, rows, dtype),
                             Case("decode", batch, heads, key_heads, width, 1, keys, room, dtype)]

    def name(self):
        return f"{super().name()}/beside_{self.prompt}rows"

    def cut(self):
        def random(*dims):
            return torch.randn(*dims, device="cuda", dtype=DTYPES[self.dtype][1])

        pages = self.sequences * self.columns
        lengths = torch.full((self.sequences,), self.keys, device="cuda", dtype=torch.int64)
        lengths[0] = self.prompt
        begins = torch.arange(self.sequences, device="cuda") + self.prompt - 1
        begins[0] = 0
        result = {"q": random(1, self.new_rows, self.heads * self.width), "lengths": lengths, "begins": begins,
                  "table": torch.randperm(pages, device="cuda").view(self.sequences, self.columns)}
        for i in range(self.sets):
            for kind in "kv":
                result[f"{kind}{i}"] = random(pages, self.page_rows, self.key_heads * self.width)
        return result


def bench_mixed(case, device, folder, seconds, report, ways):
    cut = case.cut()
    case.model(folder / "mixed.onnx")
    sides = [Ours(device, folder / "mixed.onnx", cut)]
    for each in case.side_by_side:
        each.model(folder / f"{each.kind}.onnx")
        sides.append(Ours(device, folder / f"{each.kind}.onnx", each.tensors()))
    sides += [Ours(way, folder / "mixed.onnx", cut) for way in ways.values()]
    nodes = [case.nodes, *[each.nodes for each in case.side_by_side], *[case.nodes] * len(ways)]
    times = [1e6 * time / count for time, count in zip(alternate([(side.run, side.wait) for side in sides], seconds), nodes)]
    if not all(torch.equal(bytes_of(sides[0]), bytes_of(side)) for side in sides[3:]):
        raise SystemExit(f"{case.name()}: other bits in another way")
    more = "".join(f" {name}={time:.4g}" for name, time in zip(ways, times[3:]))
    report.bench(case.name(), times[0], times[1] + times[2], "us", f" nodes={case.nodes}{more}" + sides[0].note())


def bench_paged(case, device, folder, seconds, report, ways):
    tensors = case.side_by_side.tensors()
    cut = case.cut(tensors)
    paths = {each: folder / f"{each.kind}.onnx" for each in (case, case.side_by_side)}
    for each, path in paths.items():
        each.model(path)
    sides = [Ours(device, paths[case], cut), Ours(device, paths[case.side_by_side], tensors)]
    sides += [Ours(way, paths[case], cut) for way in ways.values()]
    times = [1e6 * time / case.nodes for time in alternate([(side.run, side.wait) for side in sides], seconds)]
    if not all(torch.equal(bytes_of(sides[0]), bytes_of(side)) for side in sides[1:]):
        raise SystemExit(f"{case.name()}: other bits side by side or in another way")
    more = "".join(f" {name}={time:.4g}({case.rate(time)})" for name, time in zip(ways, times[2:]))
    report.bench(case.name(), *times[:2], "us", f" rate={case.rate(times[0])} nodes={case.nodes}{more}" + sides[0].note())


def open_ways():
    """Devices that compute attention in each way, by the way's name."""
    ways = {}
    for name in sorted({name for names in WAYS.values() for name in names}):
        os.environ["SAMEBIT_CUDA_ATTENTION"] = name
        ways[name] = samebit.Device(0)
    del os.environ["SAMEBIT_CUDA_ATTENTION"]
    return ways


def bytes_of(side):
    return torch.from_dlpack(next(iter(side.outputs.values()))).view(torch.uint8).flatten()


def bench(case, device, folder, seconds, report, ways):
    tensors = case.tensors()
    path = folder / "attention.onnx"
    case.model(path)
    ours = Ours(device, path, tensors)
    others_of_ours = {name: Ours(way, path, tensors) for name, way in ways.items()}
    peers, why = {}, {}
    for name, backend in BACKENDS.items():
        try:
            peers[name] = case.peer(tensors, backend)
        except RuntimeError as error:
            why[name] = str(error).strip().splitlines()[0][:40].replace(" ", "_")
            torch.cuda.synchronize()
    times = [1e6 * time / case.nodes
             for time in alternate([(side.run, side.wait) for side in (ours, *others_of_ours.values(), *peers.values())],
                                   seconds)]
    own = dict(zip(others_of_ours, times[1:]))
    others = dict(zip(peers, times[1 + len(own):]))
    best = min(others, key=others.get) if others else None
    more = f" rate={case.rate(times[0])} nodes={case.nodes} peer_is={best}"
    more += "".join(f" {name}={time:.4g}({case.rate(time)})" for name, time in own.items())
    more += "".join(f" {name}={time:.4g}" for name, time in others.items())
    for name, side in others_of_ours.items():
        if not torch.equal(bytes_of(ours), bytes_of(side)):
            raise SystemExit(f"{case.name()}: other bits by {name}")
    more += "".join(f" {name}={reason}" for name, reason in why.items())
    if best:
        mine, other = torch.from_dlpack(next(iter(ours.outputs.values()))).float(), peers[best].result.float()
        difference = ((mine - other).abs().max() / other.abs().max()).item()
        more += f" difference={difference:.2g}"
        if not difference < LARGEST_DIFFERENCE:
            raise SystemExit(f"{case.name()}: results differ by {difference:.2g} of the largest")
    report.bench(case.name(), times[0], others.get(best, math.nan), "us", more + ours.note())


def report_mean(report, kind):
    ratios = [ratio for name, ratio in report.ratios.items() if f"/{kind}/" in name and ratio == ratio]
    if ratios:
        report.line(f"# {kind}: geometric mean {statistics.geometric_mean(ratios):.3f}, lowest {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--seconds", type=float, default=1.0, help="per case and side")
    parser.add_argument("--ways", action="store_true", help="times each way of the library, too")
    parser.add_argument("--write", help="also write the lines to this file")
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    device = samebit.open_device("cuda")
    ways = open_ways() if arguments.ways and arguments.dtype != "f32" else {}
    report = Report(arguments.write)
    report.line(f"# {device.name}, Samebit {samebit.version()}, numerics {samebit.numerics_version()}, PyTorch {torch.__version__}, "
                f"cuDNN {torch.backends.cudnn.version()}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, cases in (("decode", DECODE), ("prefill", PREFILL)):
            for extents in cases:
                case = Case(kind, *extents, arguments.dtype)
                if arguments.only in case.name():
                    bench(case, device, pathlib.Path(folder), arguments.seconds, report,
                          {name: ways[name] for name in WAYS[kind] if ways})
            report_mean(report, kind)
        for kind, cases, make, time_one in (("paged", PAGED, PagedCase, bench_paged), ("mixed", MIXED, MixedCase, bench_mixed)):
            for extents in cases:
                case = make(*extents, arguments.dtype)
                if arguments.only in case.name():
                    time_one(case, device, pathlib.Path(folder), arguments.seconds, report,
                             {name: ways[name] for name in WAYS[kind] if ways})
            report_mean(report, kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
