#!/usr/bin/env python3
"""Times single operators on the CPU beside ONNX Runtime, which gets the same model and the same arrays.

    python bench/operators_bench.py --library build/src/libsamebit.so [--only REGEX] [--dtype f16] [--threads 2]

The two sides take turns; each time is the least of `--seconds` of runs, in microseconds. A case that the peer does not take has
no peer. Runs of less than about 20 µs are mostly calls from Python.
"""

import argparse
import pathlib
import re
import tempfile
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

import engines

DTYPES = {"f32": (TensorProto.FLOAT, numpy.float32), "f16": (TensorProto.FLOAT16, numpy.float16)}

# Name, operator set, inputs, constants, node. An input is its extents, or (extents, bound) for integers below the bound; a
# constant is a list, or a number, of integers, or of floats where it is called `scales`.
CASES = [
    ("add-row", 22, {"x": [512, 512], "z": [512]}, {}, "y = Add (x, z)"),
    ("argmax", 22, {"x": [512, 4096]}, {}, "y = ArgMax <axis = 1> (x)"),
    ("argmax-middle", 22, {"x": [1, 21, 256, 256]}, {}, "y = ArgMax <axis = 1> (x)"),
    ("attention", 24, {"x": [1, 8, 256, 64], "k": [1, 8, 256, 64], "v": [1, 8, 256, 64]}, {}, "y = Attention (x, k, v)"),
    ("average-pool", 22, {"x": [1, 64, 112, 112]}, {}, "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (x)"),
    ("concat", 22, {"x": [512, 512], "z": [512, 256]}, {}, "y = Concat <axis = 1> (x, z)"),
    ("conv-1d", 22, {"x": [1, 64, 2000], "w": [64, 64, 7]}, {}, "y = Conv <kernel_shape = [7], pads = [3, 3]> (x, w)"),
    ("conv-3d", 22, {"x": [1, 16, 16, 32, 32], "w": [16, 16, 3, 3, 3]}, {},
     "y = Conv <kernel_shape = [3, 3, 3], pads = [1, 1, 1, 1, 1, 1]> (x, w)"),
    ("conv-transpose", 22, {"x": [1, 64, 32, 32], "w": [64, 32, 4, 4]}, {},
     "y = ConvTranspose <strides = [2, 2], kernel_shape = [4, 4], pads = [1, 1, 1, 1]> (x, w)"),
    ("cross-entropy", 22, {"x": [256, 8000], "t": ([256], 8000)}, {}, "y = SoftmaxCrossEntropyLoss (x, t)"),
    ("cum-sum", 22, {"x": [512, 512]}, {"a": 1}, "y = CumSum (x, a)"),
    ("deform-conv", 22, {"x": [1, 16, 32, 32], "w": [16, 16, 3, 3], "o": [1, 18, 32, 32]}, {},
     "y = DeformConv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, o)"),
    ("depth-to-space", 22, {"x": [1, 64, 64, 64]}, {}, "y = DepthToSpace <blocksize = 2> (x)"),
    ("einsum", 22, {"x": [1, 8, 128, 64], "w": [1, 8, 128, 64]}, {}, 'y = Einsum <equation = "bhid,bhjd->bhij"> (x, w)'),
    ("erf", 22, {"x": [512, 512]}, {}, "y = Erf (x)"),
    ("exp", 22, {"x": [512, 512]}, {}, "y = Exp (x)"),
    ("gather", 22, {"x": [4096, 256], "i": ([512], 4096)}, {}, "y = Gather (x, i)"),
    ("gather-elements", 22, {"x": [512, 256], "i": ([512, 256], 512)}, {}, "y = GatherElements (x, i)"),
    ("gelu", 22, {"x": [512, 512]}, {}, "y = Gelu (x)"),
    ("gemm", 22, {"x": [128, 512], "w": [512, 512], "b": [512]}, {}, "y = Gemm (x, w, b)"),
    ("global-average", 22, {"x": [1, 512, 28, 28]}, {}, "y = GlobalAveragePool (x)"),
    ("global-max", 22, {"x": [1, 512, 28, 28]}, {}, "y = GlobalMaxPool (x)"),
    ("grid-sample", 22, {"x": [1, 64, 64, 64], "g": [1, 64, 64, 2]}, {}, "y = GridSample (x, g)"),
    ("group-norm", 21, {"x": [1, 64, 64, 64], "s": [64], "b": [64]}, {}, "y = GroupNormalization <num_groups = 8> (x, s, b)"),
    ("gru", 22, {"x": [50, 1, 64], "w": [1, 384, 64], "r": [1, 384, 128]}, {}, "y = GRU <hidden_size = 128> (x, w, r)"),
    ("hardmax", 22, {"x": [128, 4096]}, {}, "y = Hardmax (x)"),
    ("instance-norm", 22, {"x": [1, 64, 64, 64], "s": [64], "b": [64]}, {}, "y = InstanceNormalization (x, s, b)"),
    ("layer-norm", 22, {"x": [512, 768], "s": [768], "b": [768]}, {}, "y = LayerNormalization (x, s, b)"),
    ("likelihood-loss", 22, {"x": [1, 21, 256, 256], "t": ([1, 256, 256], 21)}, {}, "y = NegativeLogLikelihoodLoss (x, t)"),
    ("log-softmax", 22, {"x": [128, 4096]}, {}, "y = LogSoftmax (x)"),
    ("log-sum-exp", 22, {"x": [64, 64, 256]}, {"a": [2]}, "y = ReduceLogSumExp (x, a)"),
    ("lp-norm", 22, {"x": [512, 512]}, {}, "y = LpNormalization (x)"),
    ("lrn", 22, {"x": [1, 64, 56, 56]}, {}, "y = LRN <size = 5> (x)"),
    ("matmul-batch", 22, {"x": [8, 128, 64], "w": [8, 64, 128]}, {}, "y = MatMul (x, w)"),
    ("max-of-three", 22, {"x": [512, 512], "z": [512, 512], "w": [512, 512]}, {}, "y = Max (x, z, w)"),
    ("max-pool", 22, {"x": [1, 64, 112, 112]}, {}, "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (x)"),
    ("max-pool-indices", 22, {"x": [1, 64, 64, 64]}, {}, "y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)"),
    ("mean-variance", 22, {"x": [1, 64, 64, 64]}, {}, "y = MeanVarianceNormalization (x)"),
    ("mod", 22, {"x": [512, 512], "z": [512, 512]}, {}, "y = Mod <fmod = 1> (x, z)"),
    ("pad-reflect", 22, {"x": [1, 64, 64, 64]}, {"p": [0, 0, 2, 2, 0, 0, 2, 2]}, 'y = Pad <mode = "reflect"> (x, p)'),
    ("pow", 22, {"x": [512, 512], "z": [512, 512]}, {}, "y = Pow (x, z)"),
    ("reduce-last", 22, {"x": [512, 2048]}, {"a": [1]}, "y = ReduceSum (x, a)"),
    ("reduce-max", 22, {"x": [64, 64, 256]}, {"a": [1]}, "y = ReduceMax (x, a)"),
    ("reduce-sum", 22, {"x": [64, 64, 256]}, {"a": [1]}, "y = ReduceSum (x, a)"),
    ("resize-cubic", 22, {"x": [1, 64, 64, 64]}, {"scales": [1, 1, 2, 2]}, 'y = Resize <mode = "cubic"> (x, , scales)'),
    ("resize-down", 22, {"x": [1, 64, 64, 64]}, {"scales": [1, 1, 0.5, 0.5]}, 'y = Resize <mode = "linear"> (x, , scales)'),
    ("resize-up", 22, {"x": [1, 64, 64, 64]}, {"scales": [1, 1, 4, 4]}, 'y = Resize <mode = "linear"> (x, , scales)'),
    ("rms-norm", 24, {"x": [512, 512], "s": [512]}, {}, "y = RMSNormalization (x, s)"),
    ("rotary", 24, {"x": [1, 8, 256, 64], "c": [1, 256, 32], "s": [1, 256, 32]}, {}, "y = RotaryEmbedding (x, c, s)"),
    ("scatter-add", 22, {"x": [512, 64], "i": ([512, 64], 512), "u": [512, 64]}, {},
     'y = ScatterElements <axis = 0, reduction = "add"> (x, i, u)'),
    ("sigmoid", 22, {"x": [512, 512]}, {}, "y = Sigmoid (x)"),
    ("softmax", 22, {"x": [128, 4096]}, {}, "y = Softmax (x)"),
    ("softmax-middle", 22, {"x": [64, 256, 64]}, {}, "y = Softmax <axis = 1> (x)"),
    ("space-to-depth", 22, {"x": [1, 16, 128, 128]}, {}, "y = SpaceToDepth <blocksize = 2> (x)"),
    ("tile", 22, {"x": [64, 1, 64]}, {"r": [1, 64, 1]}, "y = Tile (x, r)"),
    ("top-10", 22, {"x": [64, 4096]}, {"k": [10]}, "y, i = TopK (x, k)"),
    ("transpose", 22, {"x": [1, 256, 8, 64]}, {}, "y = Transpose <perm = [0, 2, 1, 3]> (x)"),
    ("trilu", 22, {"x": [8, 256, 256]}, {}, "y = Trilu (x)"),
]


def make_model(case, dtype, folder):
    name, version, inputs, constants, text = case
    node = parser.parse_node(text)
    types = {key: TensorProto.INT64 if isinstance(value, tuple) else DTYPES[dtype][0] for key, value in inputs.items()}
    extents = {key: value[0] if isinstance(value, tuple) else value for key, value in inputs.items()}
    graph = helper.make_graph(
        [node],
        name,
        [helper.make_tensor_value_info(key, types[key], extents[key]) for key in inputs],
        [onnx.ValueInfoProto(name=output) for output in node.output],
        [
            numpy_helper.from_array(numpy.array(value, numpy.float32 if key == "scales" else numpy.int64), key)
            for key, value in constants.items()
        ],
    )
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10), path)
    return str(path)


def make_inputs(inputs, dtype):
    source = numpy.random.default_rng(1)
    feed = {}
    for key, value in inputs.items():
        if isinstance(value, tuple):
            feed[key] = source.integers(0, value[1], value[0])
        else:
            feed[key] = (numpy.abs(source.standard_normal(value)) + 0.01).astype(DTYPES[dtype][1])
    return feed


def least(sessions, seconds):
    """The least time of a run of each, who take turns."""
    best = [float("inf")] * len(sessions)
    for session in sessions:
        session.run()
    for _ in range(4):
        for i, session in enumerate(sessions):
            end = time.perf_counter() + seconds / 4
            while (start := time.perf_counter()) < end:
                session.run()
                best[i] = min(best[i], time.perf_counter() - start)
    return [1e6 * each for each in best]


def load_peer(path, threads, feed):
    session = None
    try:
        session = engines.OnnxRuntime().load(path, threads)
        session.feed(feed)
        session.run()
    except Exception:  # of the peer's own kinds: an operator or a dtype that it has not
        return None
    return session


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--library", required=True, help="libsamebit.so")
    arguments.add_argument("--only", default=".", help="cases whose name matches")
    arguments.add_argument("--dtype", choices=DTYPES, default="f32")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=0.4, help="of runs, for each side")
    arguments.add_argument("--isa", default="best", help="limits Samebit")
    given = arguments.parse_args()
    ours = engines.Samebit(given.library, given.isa)
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if not re.search(given.only, case[0]):
                continue
            path, feed = make_model(case, given.dtype, pathlib.Path(folder)), make_inputs(case[2], given.dtype)
            session, peer = ours.load(path, given.threads), load_peer(path, given.threads, feed)
            session.feed(feed)
            times = least([session] + ([peer] if peer else []), given.seconds)
            told = f"peer={times[1]:.1f} unit=us ratio={times[1] / times[0]:.2f}" if peer else "peer=none unit=us ratio=none"
            print(f"bench {case[0]}-{given.dtype} samebit={times[0]:.1f} {told}", flush=True)
            session.close()


if __name__ == "__main__":
    main()
