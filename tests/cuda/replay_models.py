#!/usr/bin/env python3
"""Networks on a GPU: every run has the bits of a run without graphs, and some are held to the CPU.

    python replay_models.py --library libsamebit.so --models FOLDER [--runs N] [--only NAME]

For ResNet-50, BERT-base, an LSTM, a network with nodes forced to the CPU in its middle, and a small
decoder whose past keys and values are inputs and outputs: N runs (1,000 by default) in each graph
mode, with other inputs in each and shapes that change between runs. Exit 1 when a bit differs.
"""

import argparse
import pathlib
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "python")]
import make_models  # noqa: E402
import samebit  # noqa: E402

HIDDEN, HEADS, HEAD, LAYERS, VOCABULARY = 128, 4, 32, 2, 512


# ---- the decoder ----


def decoder():
    """Two layers of RMS norm, rotary attention over past keys and values, and a gated feed-forward."""
    from onnx import TensorProto, helper

    b = make_models.Builder(7)
    half = HEAD // 2

    def weight(name, rows, columns):
        return b.normal(name, (rows, columns), rows ** -0.5)

    def norm(x, name):
        mean = b.node("ReduceMean", b.node("Mul", x, x), axes=[-1], keepdims=1)
        epsilon = b.constant(f"{name}.epsilon", numpy.float32(1e-5))
        scaled = b.node("Div", x, b.node("Sqrt", b.node("Add", mean, epsilon)))
        return b.node("Mul", scaled, b.uniform(name, (HIDDEN,), 0.8, 1.2))

    heads = b.constant("heads", numpy.array([0, 0, HEADS, HEAD], numpy.int64))
    flat = b.constant("flat", numpy.array([0, 0, HIDDEN], numpy.int64))
    split = b.constant("halves", numpy.array([half, half], numpy.int64))
    frequency = b.constant(
        "frequency", (1e4 ** (-numpy.arange(half) / half)).astype(numpy.float32))
    position = b.node("Cast", "position", to=TensorProto.FLOAT)
    angle = b.node("Mul", b.node("Unsqueeze", position,
                                 b.constant("last", numpy.array([2], numpy.int64))), frequency)
    angle = b.node("Unsqueeze", angle, b.constant("second", numpy.array([1], numpy.int64)))
    cosine, sine = b.node("Cos", angle), b.node("Sin", angle)

    def project(x, name, rotate):
        x = b.node("MatMul", x, weight(name, HIDDEN, HIDDEN))
        x = b.node("Transpose", b.node("Reshape", x, heads), perm=[0, 2, 1, 3])
        if not rotate:
            return x
        low, high = b.node("Split", x, split, outputs=2, axis=3)
        rotated_low = b.node("Sub", b.node("Mul", low, cosine), b.node("Mul", high, sine))
        rotated_high = b.node("Add", b.node("Mul", high, cosine), b.node("Mul", low, sine))
        return b.node("Concat", rotated_low, rotated_high, axis=3)

    def attention(x, layer):
        query = project(x, f"{layer}.query", True)
        kept = []
        for what, rotate in (("key", True), ("value", False)):
            fresh = project(x, f"{layer}.{what}", rotate)
            b.nodes.append(helper.make_node(
                "Concat", [f"past.{layer}.{what}", fresh], [f"present.{layer}.{what}"], axis=2,
                name=f"present.{layer}.{what}"))
            kept.append(f"present.{layer}.{what}")
        scores = b.node("MatMul", query, b.node("Transpose", kept[0], perm=[0, 1, 3, 2]))
        scores = b.node("Mul", scores, b.constant(f"{layer}.scale", numpy.float32(HEAD ** -0.5)))
        mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), kept[1])
        mixed = b.node("Reshape", b.node("Transpose", mixed, perm=[0, 2, 1, 3]), flat)
        return b.node("MatMul", mixed, weight(f"{layer}.out", HIDDEN, HIDDEN))

    def feed_forward(x, layer):
        gate = b.node("MatMul", x, weight(f"{layer}.gate", HIDDEN, 3 * HIDDEN))
        gate = b.node("Mul", gate, b.node("Sigmoid", gate))
        up = b.node("MatMul", x, weight(f"{layer}.up", HIDDEN, 3 * HIDDEN))
        return b.node("MatMul", b.node("Mul", gate, up), weight(f"{layer}.down", 3 * HIDDEN, HIDDEN))

    x = b.node("Gather", b.normal("embedding", (VOCABULARY, HIDDEN), 1.0), "token")
    for layer in range(LAYERS):
        x = b.node("Add", x, attention(norm(x, f"{layer}.norm1"), layer))
        x = b.node("Add", x, feed_forward(norm(x, f"{layer}.norm2"), layer))
    b.nodes.append(helper.make_node(
        "MatMul", [norm(x, "norm"), weight("head", HIDDEN, VOCABULARY)], ["logits"], name="logits"))
    past = [(f"{layer}.{what}") for layer in range(LAYERS) for what in ("key", "value")]
    info = helper.make_tensor_value_info
    whole = ["batch", HEADS, "past", HEAD]
    graph = helper.make_graph(
        b.nodes, "decoder",
        [info("token", TensorProto.INT64, ["batch", "step"]),
         info("position", TensorProto.INT64, ["batch", "step"])]
        + [info(f"past.{name}", TensorProto.FLOAT, whole) for name in past],
        [info("logits", TensorProto.FLOAT, ["batch", "step", VOCABULARY])]
        + [info(f"present.{name}", TensorProto.FLOAT, ["batch", HEADS, "now", HEAD])
           for name in past],
        b.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# ---- runs ----


class Checker:
    def __init__(self, models, runs):
        self.device = samebit.open_device("cuda")
        self.models = models
        self.runs = runs
        self.different = 0

    def session(self, model, mode, **options):
        return model.session(device=self.device, device_outputs=True, graphs=mode, **options)

    def on_device(self, session, inputs):
        given = {name: samebit.tensor(array, self.device) for name, array in inputs.items()}
        return [numpy.asarray(tensor) for tensor in session.run(given).values()]

    def on_cpu(self, session, inputs):
        return list(session.run(inputs).values())

    def compare(self, what, ours, expected):
        for left, right in zip(ours, expected):
            if left.shape != right.shape or left.tobytes() != right.tobytes():
                self.different += 1
                print(f"DIFFERENT: {what}")
                return

    def replay(self, name, path, make_inputs, runs, force_cpu=None):
        """`make_inputs(random)` gives the inputs of a run."""
        model = samebit.load(path)
        eager = self.session(model, "off", force_cpu=force_cpu)
        cpu = model.session()
        for mode in ("capture", "build"):
            random = numpy.random.default_rng(3)
            session = self.session(model, mode, force_cpu=force_cpu)
            for run in range(runs):
                inputs = make_inputs(random)
                ours = self.on_device(session, inputs)
                self.compare(f"{name}, {mode}, run {run}", ours, self.on_device(eager, inputs))
                if run % max(1, runs // 4) == 0:
                    self.compare(f"{name}, {mode}, run {run}, CPU", ours, self.on_cpu(cpu, inputs))
            report = session.graphs()
            print(f"{name} {mode}: {runs} runs, {report.recorded} of {report.segments} groups of "
                  f"nodes recorded, {report.failed} failed {report.reason}", flush=True)
            if report.failed or not report.recorded:
                self.different += 1

    def network(self, name, runs, force_cpu=None):
        make_models.write(self.models, name)
        _, inputs, batches = make_models.MODELS[name]

        def make(random):
            shapes = inputs(int(random.choice([batches[0], batches[-1], 2, 3])))
            return {key: value if value.dtype.kind == "i" and value.ndim < 2
                    else random.standard_normal(value.shape, numpy.float32)
                    if value.dtype == numpy.float32
                    else random.permuted(value, axis=-1) for key, value in shapes.items()}

        self.replay(name + (f" without {force_cpu}" if force_cpu else ""),
                    make_models.model_path(self.models, name), make, runs, force_cpu)

    def decode(self, steps):
        """Steps whose present keys and values are the next step's past ones, without a copy."""
        import onnx

        path = self.models / "decoder.onnx"
        onnx.save(decoder(), path)
        model = samebit.load(path)
        cpu = model.session()
        inputs, outputs = ([info.name for info in infos] for infos in (model.inputs, model.outputs))
        for mode in ("off", "capture", "build"):
            session = self.session(model, mode)
            random = numpy.random.default_rng(5)
            batch = 3
            empty = numpy.zeros((batch, HEADS, 0, HEAD), numpy.float32)
            past = {name: empty for name in inputs[2:]}
            bound = {name: samebit.tensor(array, self.device) for name, array in past.items()}
            for step in range(steps):
                count = 5 if step == 0 else 1
                start = 0 if step == 0 else step + 4
                given = {"token": random.integers(0, VOCABULARY, (batch, count)),
                         "position": numpy.tile(numpy.arange(start, start + count), (batch, 1))}
                results = session.run(
                    bound | {name: samebit.tensor(array, self.device) for name, array in given.items()})
                expected = cpu.run(past | given)
                self.compare(f"decoder, {mode}, step {step}",
                             [numpy.asarray(tensor) for tensor in results.values()],
                             list(expected.values()))
                names = [name.replace("present", "past") for name in outputs[1:]]
                bound = dict(zip(names, list(results.values())[1:]))
                past = {name: expected[output] for name, output in zip(names, outputs[1:])}
            print(f"decoder {mode}: {steps} bound steps", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.models.mkdir(parents=True, exist_ok=True)
    samebit.open_library(arguments.library)
    checker = Checker(arguments.models, arguments.runs)
    for name, check in (
        ("decoder", lambda: checker.decode(100)),
        ("lstm512", lambda: checker.network("lstm512", checker.runs)),
        ("bert-base", lambda: checker.network("bert-base", checker.runs)),
        ("forced", lambda: checker.network("bert-base", checker.runs, "Softmax")),
        ("resnet50", lambda: checker.network("resnet50", checker.runs)),
    ):
        if arguments.only in name:
            check()
    print(f"{checker.different} differences")
    return 1 if checker.different else 0


if __name__ == "__main__":
    sys.exit(main())
