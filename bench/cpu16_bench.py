#!/usr/bin/env python3
"""Time networks of f16 and bf16 on this machine's CPU against what the 16-bit chain allows.

    python cpu16_bench.py --build BUILD --models CACHE_FOLDER

A line a case:

    bench cpu16/MODEL-DTYPE/bBATCH/ISA/tTHREADS samebit=MS peer=MS unit=ms ratio=PEER/SAMEBIT NAME=MS

The peer is the chain itself: the time that the model's matrix products and convolutions would take at the rate of
`chain16_bench` on as many cores, each running a copy of it at the same time. So the ratio is the share of that rate that
the whole network reaches, with everything else that it computes. NAME is another engine, for scale, which computes other
bits: PyTorch in the same dtype where it is installed, else ONNX Runtime in f32.

The digests of all instruction sets and numbers of threads must be equal. Exit status 1 when they are not, or a ratio is
below `--require`.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import ml_dtypes
import numpy

import cpu_bench
import engines

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "models"))

import make_models  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

CASES = (("bert-base", 1), ("resnet50", 1), ("mobilenetv2", 1))


# -- What the chain would take ---------------------------------------------------------------------


def chain_rate(build, isa, threads):
    """GMAC/s of `threads` copies of chain16_bench together, each on a core of its own."""
    command = [str(build / "bench" / "chain16_bench"), "--isa", isa]
    cores = sorted(os.sched_getaffinity(0))
    runs = [subprocess.Popen(["taskset", "-c", str(cores[i]), *command], stdout=subprocess.PIPE, text=True)
            for i in range(threads)]
    return sum(float(re.search(r"samebit=([0-9.]+)", run.communicate()[0]).group(1)) for run in runs)


def multiply_adds(build, models, name, batch):
    """Those of the model's matrix products and convolutions: the same in every dtype."""
    make_models.write(models, name)
    command = [str(build / "samebit"), "profile", str(make_models.model_path(models, name)), "--json", "--runs", "1",
               "--warmup", "0", "--no-passes", "--input", str(make_models.input_path(models, name, batch))]
    operators = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["operators"]
    return sum(entry["flops"] for entry in operators if entry["op"] in ("Conv", "MatMul", "Gemm")) / 2


# -- PyTorch, for scale ----------------------------------------------------------------------------


def torch_bert():
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 12)
    return encoder, torch.randn(1, 128, 768)


class TorchBlock(torch.nn.Module if torch else object):
    """A bottleneck of ResNet-50."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = torch.nn.Sequential(
            *convolution(channels, width, 1), torch.nn.ReLU(), *convolution(width, width, 3, stride),
            torch.nn.ReLU(), *convolution(width, 4 * width, 1))
        same = channels == 4 * width and stride == 1
        self.shortcut = torch.nn.Sequential(*([] if same else convolution(channels, 4 * width, 1, stride)))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def convolution(channels, outputs, kernel, stride=1, groups=1):
    return (torch.nn.Conv2d(channels, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            torch.nn.BatchNorm2d(outputs))


def torch_resnet():
    layers = [*convolution(3, 64, 7, 2), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(count):
            layers.append(TorchBlock(channels, width, 2 if block == 0 and width > 64 else 1))
            channels = 4 * width
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2048, 1000)]
    module = torch.nn.Sequential(*layers).to(memory_format=torch.channels_last)
    return module, torch.randn(1, 3, 224, 224).contiguous(memory_format=torch.channels_last)


class TorchSession:
    """A network of the same layers; its weights are its own."""

    def __init__(self, make, dtype, threads):
        module, inputs = make()
        self.module = module.eval().to(dtype)
        self.inputs, self.threads = inputs.to(dtype), threads

    def run(self):
        torch.set_num_threads(self.threads)
        with torch.inference_mode():
            self.module(self.inputs)


def other_session(models, name, batch, dtype, threads):
    """(name, session) of the engine that is shown for scale."""
    makers = {"bert-base": torch_bert, "resnet50": torch_resnet} if torch else {}
    if name in makers:
        kind = torch.bfloat16 if dtype == "bf16" else torch.float16
        return f"torch-{dtype}", TorchSession(makers[name], kind, threads)
    make_models.write(models, name)
    session = engines.OnnxRuntime().load(str(make_models.model_path(models, name)), threads)
    session.feed(dict(numpy.load(make_models.input_path(models, name, batch))))
    return "onnxruntime-f32", session


# -- Cases -----------------------------------------------------------------------------------------


def inputs_for(models, name, batch, dtype):
    inputs = dict(numpy.load(make_models.input_path(models, name, batch, dtype)))
    if dtype != "bf16":
        return inputs
    return {key: array.astype(ml_dtypes.bfloat16) if array.dtype == numpy.float32 else array
            for key, array in inputs.items()}


def measure(sessions, seconds):
    """Median milliseconds of each, in turns."""
    times = [[] for _ in sessions]
    for session in sessions:
        session.run()
    once = max(min(cpu_bench.times_of(session, 2)) for session in sessions)
    for _ in range(max(3, round(seconds / (len(sessions) * 2 * once)))):
        for i, session in enumerate(sessions):
            times[i] += cpu_bench.times_of(session, 1)
    return [1e3 * statistics.median(each) for each in times]


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, required=True, help="build folder: libsamebit.so, samebit, chain16_bench")
    add("--models", type=pathlib.Path, required=True, help="cache folder of the models")
    add("--only", default="", metavar="REGEX", help="cases whose name this matches")
    add("--dtypes", default="bf16,f16", help="by commas (default bf16,f16)")
    add("--isas", default="avx512,avx2", help="instruction sets, by commas (default avx512,avx2)")
    add("--threads", default="1,2", help="numbers of threads, by commas (default 1,2)")
    add("--seconds", type=float, default=8.0, help="time for one case (default 8)")
    add("--require", type=float, default=0.0, metavar="RATIO", help="exit 1 where a case is below this")
    return parser.parse_args(argv)


def cases_of(arguments):
    for name, batch in CASES:
        for dtype in arguments.dtypes.split(","):
            for isa in arguments.isas.split(","):
                for threads in map(int, arguments.threads.split(",")):
                    case = f"cpu16/{name}-{dtype}/b{batch}/{isa}/t{threads}"
                    if re.search(arguments.only, case):
                        yield case, name, batch, dtype, isa, threads


def main(argv=None):
    arguments = parse(argv)
    engines.Samebit(arguments.build / "src" / "libsamebit.so")
    rates, digests, problems = {}, {}, []
    for case, name, batch, dtype, isa, threads in cases_of(arguments):
        make_models.write(arguments.models, name, dtype)
        path = make_models.model_path(arguments.models, name, dtype)
        inputs = inputs_for(arguments.models, name, batch, dtype)
        session = engines.SamebitSession(str(path), threads, isa)
        session.feed(inputs)
        other, scale = other_session(arguments.models, name, batch, dtype, threads)
        ours, theirs = measure([session, scale], arguments.seconds)
        if (isa, threads) not in rates:
            rates[isa, threads] = chain_rate(arguments.build, isa, threads)
        allowed = 1e-6 * multiply_adds(arguments.build, arguments.models, name, batch) / rates[isa, threads]
        print(f"bench {case} samebit={ours:.3f} peer={allowed:.3f} unit=ms ratio={allowed / ours:.3f} "
              f"{other}={theirs:.3f}", flush=True)
        if allowed / ours < arguments.require:
            problems.append(f"{case}: {allowed / ours:.3f} of the chain's rate, not {arguments.require}")
        if digests.setdefault((name, dtype), session.digest()) != session.digest():
            problems.append(f"{case}: the output's bits depend on the instruction set or the threads")
        session.close()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
