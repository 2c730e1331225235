#!/usr/bin/env python3
"""Time single convolutions of many families of networks against ONNX Runtime, on the CPU.

    python conv_bench.py --library libsamebit.so [--only REGEX] [--seconds 0.3] [--threads 1]

A line a case, in milliseconds; a ratio above 1 says that Samebit is faster:

    bench conv/FAMILY/SHAPE samebit=… peer=… unit=ms ratio=…

Each case is a network of three nodes: a feeder (a 1×1 convolution from 4 channels, which leaves the tensor in whatever
order the engine likes best), the convolution with what stands behind it in its family, and a tail. Only what runs between
feeder and tail counts, by each engine's own clock of nodes: a first layer has no feeder, as its input is the user's.
Both engines run in this process and take turns; medians are told. Outputs are compared.

Shapes are drawn from the families by `--seed`, so that nobody tunes for a list; the default is the one that results quote.
"""

import argparse
import json
import math
import pathlib
import random
import re
import statistics
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402

# Two correct f32 implementations differ by rounding alone.
LARGEST_DIFFERENCE = 1e-4


class Case:
    """One convolution. Extents are lists, one number for each spatial axis."""

    def __init__(self, family, inputs, outputs, extents, kernel, stride=1, dilation=1, groups=1, batch=1, act="",
                 residual=False, first=False, transposed=False, pads=None, pad_node=False):
        axes = len(extents)
        self.family, self.batch, self.inputs, self.outputs = family, batch, inputs, outputs
        self.extents = extents
        self.kernel = kernel if isinstance(kernel, list) else [kernel] * axes
        self.stride = stride if isinstance(stride, list) else [stride] * axes
        self.dilation, self.groups, self.act = dilation, groups, act
        self.residual, self.first, self.transposed, self.pad_node = residual, first, transposed, pad_node
        if pads is None:
            pads = 0 if transposed else [(k - 1) * dilation // 2 for k in self.kernel]
        self.pads = pads if isinstance(pads, list) else [pads] * axes
        self.axes = axes

    def name(self):
        def times(values):
            return "x".join(map(str, values))

        text = f"{self.family}/{self.batch}x{self.inputs}x{times(self.extents)}-{self.outputs}k{times(self.kernel)}"
        if max(self.stride) > 1:
            text += f"s{times(self.stride) if len(set(self.stride)) > 1 else self.stride[0]}"
        if self.dilation > 1:
            text += f"d{self.dilation}"
        if self.groups > 1:
            text += f"g{self.groups}"
        return text + (f"-{self.act}" if self.act else "") + ("-add" if self.residual else "")

    def model(self, generator):
        def constant(name, *dims):
            scale = 1 / math.sqrt(max(1, math.prod(dims[1:])))
            values = (generator.standard_normal(dims) * scale).astype(numpy.float32)
            return numpy_helper.from_array(values, name)

        def pointwise(name, source, target, inputs, outputs):
            weights.append(constant(f"{name}.w", outputs, inputs, *[1] * self.axes))
            nodes.append(helper.make_node("Conv", [source, f"{name}.w"], [target], name=name))

        nodes, weights = [], []
        source, x_channels = "x", self.inputs
        if not self.first:
            x_channels = 4
            pointwise("feeder", "x", "feeder", 4, self.inputs)
            source = "feeder"
        pads = self.pads
        if self.pad_node:
            weights.append(numpy_helper.from_array(numpy.array([0, 0, *pads] * 2, numpy.int64), "pads"))
            nodes.append(helper.make_node("Pad", [source, "pads"], ["padded"], name="case_pad"))
            source, pads = "padded", [0] * self.axes
        if self.transposed:
            weights.append(constant("w", self.inputs, self.outputs // self.groups, *self.kernel))
        else:
            weights.append(constant("w", self.outputs, self.inputs // self.groups, *self.kernel))
        weights.append(constant("b", self.outputs))
        nodes.append(helper.make_node("ConvTranspose" if self.transposed else "Conv", [source, "w", "b"], ["c"],
                                      name="case", strides=self.stride, pads=pads * 2, group=self.groups,
                                      dilations=[self.dilation] * self.axes))
        last = "c"
        if self.residual:
            pointwise("feeder_of_addend", "x", "feeder_of_addend", x_channels, self.outputs)
            nodes.append(helper.make_node("Add", [last, "feeder_of_addend"], ["sum"], name="case_add"))
            last = "sum"
        last = self.activation(nodes, weights, last)
        pointwise("tail", last, "tail", self.outputs, 4)
        graph = helper.make_graph(
            nodes, "case",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.batch, x_channels, *self.extents])],
            [helper.make_tensor_value_info("tail", TensorProto.FLOAT, None)], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
        model.ir_version = 8
        return model, [self.batch, x_channels, *self.extents]

    def activation(self, nodes, weights, last):
        if self.act == "relu6":
            weights.append(numpy_helper.from_array(numpy.array(0, numpy.float32), "zero"))
            weights.append(numpy_helper.from_array(numpy.array(6, numpy.float32), "six"))
            nodes.append(helper.make_node("Clip", [last, "zero", "six"], ["a"], name="case_act"))
        elif self.act == "silu":
            nodes.append(helper.make_node("Sigmoid", [last], ["gate"], name="case_gate"))
            nodes.append(helper.make_node("Mul", [last, "gate"], ["a"], name="case_act"))
        elif self.act:
            operator = {"relu": "Relu", "hardswish": "HardSwish", "leaky": "LeakyRelu", "sigmoid": "Sigmoid"}[self.act]
            nodes.append(helper.make_node(operator, [last], ["a"], name="case_act"))
        else:
            return last
        return "a"


def draw(seed):
    """Convolutions of real families at random widths and extents."""
    pick = random.Random(seed)
    cases = []

    def add(*arguments, **options):
        cases.append(Case(*arguments, **options))

    def image(low, high):
        side = pick.randint(low, high)
        return [side, side + pick.choice([0, 0, 1, 8, -3])]

    # First layers.
    add("first", 3, pick.choice([16, 24, 32]), image(200, 330), 3, 2, first=True, act="relu6")
    add("first", 3, pick.choice([16, 24]), image(300, 500), 3, 2, first=True, act="hardswish")
    add("first", 3, 64, image(200, 260), 7, 2, first=True, act="relu")
    add("first", 3, pick.choice([16, 32]), image(300, 400), 6, 2, first=True, act="silu", pads=2)
    add("first", 3, 96, image(200, 230), 4, 4, first=True, pads=0)
    add("first", 1, pick.choice([8, 16]), image(60, 150), 3, 1, first=True, act="relu")
    # MobileNet v1 to v4, EfficientNet, PP-LCNet.
    for kernel in (3, 3, 5, 5, 7):
        for stride in (1, 2):
            channels = pick.choice([16, 32, 48, 72, 96, 120, 144, 240, 256, 384, 480, 672])
            side = max(7, int(math.sqrt(1.2e6 / channels / pick.choice([1, 2, 4]))))
            add("depthwise", channels, channels, image(side, side + 5), kernel, stride, groups=channels,
                act=pick.choice(["relu", "relu6", "hardswish", "silu", ""]))
    add("depthwise", 64, 64, image(20, 40), 9, 1, groups=64)
    add("depthwise", 128, 128, image(14, 28), 3, 1, groups=128, batch=4, act="relu6")
    add("depthwise", 96, 96, image(20, 56), 3, 1, dilation=2, groups=96, act="relu")
    for inputs, outputs, low, high in ((16, 96, 80, 112), (24, 144, 40, 60), (96, 24, 50, 60), (144, 40, 24, 32),
                                       (40, 240, 20, 32), (240, 80, 12, 16), (112, 672, 12, 16), (960, 160, 7, 8),
                                       (32, 16, 100, 120)):
        add("pointwise", inputs, outputs, image(low, high), 1,
            act=pick.choice(["relu6", "hardswish", "silu"]) if outputs > inputs else "",
            residual=outputs < inputs and pick.random() < 0.5)
    add("pointwise", 12, 96, image(100, 160), 1)
    add("pointwise", 96, 12, image(100, 160), 1, act="relu")
    add("pointwise", 96, 576, image(14, 15), 1, batch=4, act="relu6")
    # Grouped: ShuffleNet, ResNeXt, RegNet.
    add("grouped", 240, 240, image(26, 30), 1, groups=3, act="relu")
    add("grouped", 60, 240, image(26, 30), 1, groups=3)
    add("grouped", 128, 128, image(50, 58), 3, groups=32, act="relu")
    add("grouped", 256, 256, image(26, 30), 3, 2, groups=32, act="relu")
    add("grouped", 512, 512, image(13, 15), 3, groups=32, act="relu")
    add("grouped", 192, 192, image(26, 30), 3, groups=8, act="relu")
    add("grouped", 160, 320, image(14, 20), 3, groups=2, act="silu")
    # YOLO v5 to v8.
    add("yolo", 32, 64, image(150, 161), 3, 2, act="silu")
    add("yolo", 32, 32, image(78, 82), 3, 1, act="silu", residual=True)
    add("yolo", 128, 64, image(40, 41), 1, act="silu")
    add("yolo", 64, 64, image(38, 42), 3, act="silu")
    add("yolo", 256, 128, image(19, 21), 3, 2, act="silu")
    add("yolo", 64, 255, image(20, 41), 1)
    add("yolo", 80, 80, image(40, 48), 3, act="leaky")
    # ResNet, DenseNet, VGG.
    add("resnet", 64, 64, image(54, 57), 3, act="relu")
    add("resnet", 64, 256, image(54, 57), 1, act="relu", residual=True)
    add("resnet", 256, 512, image(28, 29), 1, 2)
    add("resnet", 512, 512, image(7, 8), 3, act="relu", batch=4)
    add("densenet", 64 + 32 * pick.randint(1, 6), 128, image(28, 29), 1, act="relu")
    add("densenet", 128, 32, image(28, 29), 3)
    add("densenet", 256 + 32 * pick.randint(1, 12), 128, image(14, 15), 1, act="relu")
    # U-Net, segmentation, text detection.
    add("unet", 32, 32, image(120, 131), 3, act="relu")
    add("unet", 96, 48, image(60, 66), 3, act="relu", pad_node=True)
    add("unet", 32, 2, image(120, 131), 1)
    add("unet", 16, 1, image(120, 131), 3, act="sigmoid")
    add("unet", 64, 32, image(56, 65), 2, 2, transposed=True)
    add("unet", 24, 24, image(130, 160), 2, 2, transposed=True, act="relu")
    add("unet", 24, 1, image(200, 250), 2, 2, transposed=True, act="sigmoid")
    add("unet", 64, 32, image(30, 41), 4, 2, transposed=True, pads=1, act="relu")
    add("unet", 32, 16, image(40, 51), 3, 2, transposed=True, pads=1)
    add("segment", 128, 64, image(32, 40), 3, dilation=6, act="relu")
    add("text", 96, 24, image(80, 100), 3, act="relu")
    add("text", 64, 64, [24, 160], [1, 3], act="relu")
    add("text", 64, 64, [24, 161], [3, 1], act="relu")
    add("text", 128, 128, [6, 80], [1, 5], groups=128)
    add("text", 120, 120, [12, 161], 5, [2, 1], groups=120, act="hardswish")
    # Audio, along one axis.
    add("audio", 80, 384, [pick.randint(1000, 1500)], 3)
    add("audio", 256, 256, [pick.randint(200, 400)], 31, groups=256, act="silu")
    add("audio", 64, 64, [pick.randint(2000, 3000)], 7, dilation=pick.choice([2, 4, 8]), act="leaky")
    add("audio", 128, 64, [pick.randint(400, 700)], 16, 8, transposed=True, pads=4)
    add("audio", 1, 258, [pick.randint(8000, 16000)], 256, 128, first=True, pads=0)
    add("audio", 32, 32, [pick.randint(2000, 5000)], 11, dilation=3, act="leaky", residual=True)
    add("audio", 129, 128, [pick.randint(30, 60)], 3, act="relu")
    return cases


def between(events):
    """The milliseconds of (name, milliseconds) behind the feeders and before the tail."""
    names = [name for name, _ in events]
    first = 1 + max((i for i, name in enumerate(names) if name.startswith("feeder")), default=-1)
    last = next(i for i, name in enumerate(names) if name.startswith("tail"))
    return sum(time for _, time in events[first:last]) + sum(
        time for name, time in events[:first] if name.startswith("case"))


class Samebit:
    def __init__(self, path, threads, isa):
        self.events, self.kernels = [], []
        self.session = samebit.load(path, threads=threads, isa=isa).session(observer=self.observe)

    def observe(self, event):
        self.events.append((event.name, (event.end_ns - event.start_ns) / 1e6))
        self.kernels.append(f"{event.op}:{event.kernel}")

    def feed(self, x):
        self.x = samebit.tensor(x)

    def run(self):
        self.events, self.kernels = [], []
        self.output = self.session(self.x)
        return between(self.events)

    def close(self):
        self.session.close()


class Peer:
    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(pathlib.Path(tempfile.gettempdir()) / "conv_bench_profile")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def feed(self, x):
        self.x = x

    def run(self):
        self.output = self.session.run(None, {"x": self.x})[0]

    def times(self):
        """The milliseconds of each run."""
        path = pathlib.Path(self.session.end_profiling())
        runs, events = [], []
        for event in json.loads(path.read_text()):
            if event["cat"] == "Session" and event["name"] == "model_run":
                continue
            if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
                events.append((event["name"], event["dur"] / 1e3))
                if event["name"].startswith("tail"):
                    runs.append(between(events))
                    self.events = events
                    events = []
            elif event["cat"] == "Session":
                events = []
        path.unlink()
        # What follows the tail (its output's order) begins the next list; `between` would count it.
        return runs


def measure(case, folder, arguments):
    model, dims = case.model(numpy.random.default_rng(1))
    path = pathlib.Path(folder) / "case.onnx"
    onnx.save(model, path)
    x = numpy.random.default_rng(2).standard_normal(dims).astype(numpy.float32)
    ours = Samebit(path, arguments.threads, arguments.isa)
    peer = Peer(path, arguments.threads)
    ours.feed(x)
    peer.feed(x)
    times = []
    rounds = 3
    for _ in range(rounds):
        for engine in (ours, peer):
            engine.run()
            end = time.perf_counter() + arguments.seconds / rounds / 2
            done = 0
            while done < 3 or time.perf_counter() < end:
                took = engine.run()
                if engine is ours:
                    times.append(took)
                done += 1
    peer_times = peer.times()
    difference = numpy.abs(ours.output - peer.output).max() / max(1e-30, numpy.abs(peer.output).max())
    kernels = " ".join(ours.kernels)
    ours.close()
    return statistics.median(times), statistics.median(peer_times), difference, kernels, peer.events


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name it matches")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for one case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", default="best", choices=["best", "scalar", "avx2", "avx512"], help="Samebit's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", action="store_true", help="what ran, too")
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    ratios, wrong = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for case in draw(arguments.seed):
            if not re.search(arguments.only, case.name()):
                continue
            ours, theirs, difference, kernels, events = measure(case, folder, arguments)
            ratios.append(theirs / ours)
            print(f"bench conv/{case.name()} samebit={ours:.3f} peer={theirs:.3f} unit=ms ratio={theirs / ours:.3f}",
                  flush=True)
            if arguments.kernels:
                print("   ", kernels, "|", " ".join(f"{name}={time}" for name, time in events))
            if not difference <= LARGEST_DIFFERENCE:
                print(f"conv/{case.name()}: outputs differ by {difference:.1e} of the largest", file=sys.stderr)
                wrong += 1
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"bench conv/geomean cases={len(ratios)} ratio={mean:.3f} least={min(ratios):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
