#!/usr/bin/env python3
"""Compare Samebit with PyTorch on a GPU: networks in f32 and in 16 bits, the f32 matrix product, and launches of nodes.

    python gpu_bench.py --library libsamebit.so --models FOLDER [--only TEXT] [--seconds S] [--write FILE]

Both sides run in one process on one GPU, in the same dtype, f32 without TF32, each replaying a CUDA graph over
inputs that lie on the device. A run ends when its results are there. Runs alternate in rounds, and
medians count. PyTorch has a second column for f32: cuDNN told to be deterministic. In 16 bits its
images lie channels last.

Lines: bench gpu/MODEL/bB, gpu16/MODEL/bB, sgemm/N and node/MODE; a ratio above 1 means that Samebit is faster.
"""

import argparse
import pathlib
import statistics
import sys
import time

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "models"), str(HERE.parent / "python")]
import make_models  # noqa: E402
import samebit  # noqa: E402

SEQUENCE = 128


def timed(run, wait, seconds):
    """Seconds per run, for about `seconds` seconds."""
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return times


def alternate(sides, seconds, rounds=5):
    """Median seconds per run of each (run, wait), in turns."""
    times = [[] for _ in sides]
    for run, wait in sides:
        for _ in range(3):
            run()
        wait()
    for _ in range(rounds):
        for i, (run, wait) in enumerate(sides):
            times[i] += timed(run, wait, seconds / rounds)
    return [statistics.median(each) for each in times]


class Report:
    def __init__(self, path):
        self.lines = []
        self.path = path
        self.ratios = {}

    def line(self, text):
        print(text, flush=True)
        self.lines.append(text)
        if self.path:
            pathlib.Path(self.path).write_text("\n".join(self.lines) + "\n")

    def bench(self, name, ours, peer, unit, more=""):
        ratio = peer / ours
        self.ratios[name] = ratio
        self.line(f"bench {name} samebit={ours:.4g} peer={peer:.4g} unit={unit} ratio={ratio:.3f}{more}")


# ---- Samebit ----


class Ours:
    """A session on the device, with inputs there."""

    def __init__(self, device, path, inputs, graphs="auto", passes=True, dependent_launch=True):
        model = samebit.load(path, device, passes=passes, device_outputs=True)
        self.session = model.session(graphs=graphs, dependent_launch=dependent_launch)
        self.inputs = {name: samebit.tensor(array, device) for name, array in inputs.items()}
        self.outputs = {}

    def run(self):
        self.outputs = {}
        self.outputs = self.session.run(self.inputs)

    def wait(self):
        """A run ends when its results are there."""

    def results(self):
        return [numpy.asarray(output) for output in self.outputs.values()]

    def note(self):
        report = self.session.graphs()
        reason = report.reason
        return (f" graphs={report.recorded}/{report.segments} tasks={report.tasks}"
                + (f" ({reason})" if reason else ""))


# ---- PyTorch ----


class Peer:
    """A module and its inputs, captured in a CUDA graph."""

    def __init__(self, module, inputs):
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(5):
                    module(*inputs)
            stream.synchronize()
            with torch.cuda.graph(self.graph):
                self.result = module(*inputs)

    def run(self):
        self.graph.replay()

    def wait(self):
        torch.cuda.synchronize()


def winograd_share(run):
    """How many of the kernels of a run are Winograd's, which has other roundings than the contract's chain,
    as "3/158"."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    names = [event.name.lower() for event in profile.events()
             if event.device_type == torch.autograd.DeviceType.CUDA]
    return f"{sum('winograd' in name for name in names)}/{len(names)}"


TORCH_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def peer_image(module, batch, dtype):
    """PyTorch's convolutions of 16 bits are quickest with channels last."""
    layout = torch.contiguous_format if dtype == "f32" else torch.channels_last
    module = module.cuda().eval().to(TORCH_DTYPES[dtype]).to(memory_format=layout)
    image = torch.randn(batch, 3, 224, 224, device="cuda", dtype=TORCH_DTYPES[dtype])
    return module, [image.to(memory_format=layout)]


def peer_resnet(batch, dtype):
    import torchvision

    return peer_image(torchvision.models.resnet50(weights=None), batch, dtype)


def peer_vision(name):
    """One of torchvision's networks of images."""
    def peer(batch, dtype):
        import torchvision

        return peer_image(getattr(torchvision.models, name)(weights=None), batch, dtype)

    return peer


def peer_bert(batch, dtype):
    import transformers

    config = transformers.BertConfig(attn_implementation="sdpa")
    module = transformers.BertModel(config).cuda().eval().to(TORCH_DTYPES[dtype])
    ids = torch.randint(0, config.vocab_size, (batch, SEQUENCE), device="cuda")
    mask = torch.ones(batch, SEQUENCE, device="cuda")

    def forward(ids, mask):
        return module(ids, attention_mask=mask).last_hidden_state

    return forward, [ids, mask]


# name: (PyTorch's module and inputs, batches in f32, batches in 16 bits)
NETWORKS = {
    "resnet50": (peer_resnet, (1, 8, 64), (1, 8, 64)),
    "resnext50": (peer_vision("resnext50_32x4d"), (), (1, 8)),
    "mobilenetv2": (peer_vision("mobilenet_v2"), (), (1, 8, 64)),
    "efficientnet-b0": (peer_vision("efficientnet_b0"), (), (1, 8)),
    "convnext-tiny": (peer_vision("convnext_tiny"), (), (1, 8)),
    "bert-base": (peer_bert, (1, 8, 32), (1, 8, 32)),
}


def network_cases(only):
    """(line's name, model, batch, dtype) of those asked for."""
    for name, (_, batches, batches16) in NETWORKS.items():
        for dtype, line, counts in (("f32", "gpu", batches), ("f16", "gpu16", batches16)):
            for batch in counts:
                case = f"{line}/{name}/b{batch}"
                if not only or only in case:
                    yield case, name, batch, dtype


def bench_networks(device, models, report, only, seconds):
    for case, name, batch, dtype in network_cases(only):
        make_models.write(models, name, dtype)
        inputs = make_models.inputs_of(name, batch, dtype)
        ours = Ours(device, make_models.model_path(models, name, dtype), inputs)
        torch.backends.cudnn.benchmark = True
        peer = Peer(*NETWORKS[name][0](batch, dtype))
        sides = [(ours.run, ours.wait), (peer.run, peer.wait)]
        if name == "resnet50" and dtype == "f32":
            torch.backends.cudnn.deterministic = True
            strict = Peer(*NETWORKS[name][0](batch, dtype))
            torch.backends.cudnn.deterministic = False
            sides.append((strict.run, strict.wait))
        medians = [1e3 * median for median in alternate(sides, seconds)]
        more = ""
        if len(medians) > 2:
            more = (f" deterministic={medians[2]:.4g} winograd={winograd_share(peer.run)}"
                    f" deterministic_winograd={winograd_share(strict.run)}")
        report.bench(case, medians[0], medians[1], "ms", more + ours.note())


# ---- the matrix product ----


def matmul_model(path):
    """A product with symbolic extents, which gpu_tiles_bench uses too."""
    import onnx
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"], name="product")], "product",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["m", "k"]),
         helper.make_tensor_value_info("b", TensorProto.FLOAT, ["k", "n"])],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, ["m", "n"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)


def bench_products(device, models, report, only, seconds):
    for rows, inner, columns in [(512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3,
                                 (128, 768, 768), (128, 768, 3072), (128, 3072, 768),
                                 (4096, 768, 3072), (4096, 3072, 768)]:
        square = rows == inner == columns
        case = f"sgemm/{rows}" if square else f"sgemm/{rows}x{inner}x{columns}"
        if only and only not in case:
            continue
        path = models / "product.onnx"
        matmul_model(path)
        random = numpy.random.default_rng(1)
        a = random.standard_normal((rows, inner), numpy.float32)
        b = random.standard_normal((inner, columns), numpy.float32)
        ours = Ours(device, path, {"a": a, "b": b}, "off")
        left, right = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
        out = torch.empty(rows, columns, device="cuda")
        sides = [(ours.run, ours.wait),
                 (lambda: torch.matmul(left, right, out=out), torch.cuda.synchronize)]
        medians = alternate(sides, seconds)
        work = 2.0 * rows * inner * columns
        same = int((torch.from_numpy(ours.results()[0]).cuda() == out).sum())
        report.bench(case, 1e6 * medians[0], 1e6 * medians[1], "us",
                     f" tflops={work / medians[0] / 1e12:.1f}/{work / medians[1] / 1e12:.1f}"
                     f" same_as_cublas={same / out.numel():.4f}")


# ---- launches ----


def chain_model(path, count):
    import onnx
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Abs", [f"v{i}"], [f"v{i + 1}"], name=f"abs{i}")
             for i in range(count)]
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [32])],
        [helper.make_tensor_value_info(f"v{count}", TensorProto.FLOAT, [32])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)


def bench_nodes(device, models, report, only, seconds):
    count = 2000
    path = models / "chain.onnx"
    modes = [(mode, early) for mode in ("off", "capture", "build") for early in (False, True)
             if not only or only in f"node/{mode}"]
    if not modes:
        return
    chain_model(path, count)
    start = torch.zeros(32, device="cuda")

    def chain(value):
        for _ in range(count):
            value = torch.abs(value)
        return value

    captured = Peer(chain, [start])
    for mode, early in modes:
        ours = Ours(device, path, {"v0": numpy.zeros(32, numpy.float32)}, mode, passes=False,
                    dependent_launch=early)
        peer = (lambda: chain(start), torch.cuda.synchronize) if mode == "off" else (
            captured.run, captured.wait)
        medians = alternate([(ours.run, ours.wait), peer], seconds)
        report.bench(f"node/{mode}" + ("/dependent" if early else ""), *(1e6 * median / count for median in medians), "us",
                     ours.note())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=2.0, help="per case and side")
    parser.add_argument("--write", help="also write the lines to this file")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    samebit.open_library(arguments.library)
    device = samebit.open_device("cuda")
    report = Report(arguments.write)
    report.line(f"# {device.name}, Samebit {samebit.version()}, numerics {samebit.numerics_version()}, PyTorch {torch.__version__}, "
                f"cuDNN {torch.backends.cudnn.version()}")
    arguments.models.mkdir(parents=True, exist_ok=True)
    given = (device, arguments.models, report, arguments.only, arguments.seconds)
    bench_nodes(*given)
    bench_products(*given)
    bench_networks(*given)
    for group in ("gpu/", "gpu16/bert-base", "gpu16/resnet50"):
        ratios = [ratio for name, ratio in report.ratios.items() if name.startswith(group)]
        if ratios:
            report.line(f"# {group}: geometric mean {statistics.geometric_mean(ratios):.3f}, lowest {min(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
