#!/usr/bin/env python3
"""Build the benchmark's ONNX models and inputs, with fixed random weights.

    python make_models.py CACHE_FOLDER [--only NAME] [--dtype f16] [--verify]

Speed does not depend on what a network has learnt, so nothing is downloaded: shapes, operators and
the way frameworks write them are those of the published networks, and the weights are random but
scaled so that values stay ordinary (no overflow, no subnormals, no dead layers) from the first
layer to the last. Batch, and BERT's sequence, are symbolic axes.

For each model: CACHE_FOLDER/NAME.onnx and CACHE_FOLDER/NAME.bB.npz with the inputs at batch B; in
16 bits NAME-f16.onnx and so on, all of it in that dtype.
A stamp holds the digest of this script, so that a second call does nothing and an edited script
builds anew.
"""

import argparse
import hashlib
import math
import pathlib
import sys

import numpy
import onnx
import onnx.checker
import onnx.helper
import onnx.numpy_helper

OPSET = 17
IR_VERSION = 8
FLOAT = onnx.TensorProto.FLOAT
INT64 = onnx.TensorProto.INT64


class Builder:
    """Collects nodes and initialisers of one graph; values are known by name."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes = []
        self.initializers = []
        self.count = 0

    def constant(self, name, array):
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def normal(self, name, shape, deviation):
        values = self.random.standard_normal(shape, numpy.float32) * numpy.float32(deviation)
        return self.constant(name, values)

    def uniform(self, name, shape, low, high):
        return self.constant(name, self.random.uniform(low, high, shape).astype(numpy.float32))

    def node(self, op, *inputs, outputs=1, **attributes):
        """Append a node; its name and its outputs' names count up. Returns the output name(s)."""
        self.count += 1
        name = f"{op}_{self.count}"
        names = [name if i == 0 else f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(onnx.helper.make_node(op, list(inputs), names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, name, inputs, outputs):
        """The checked model. Inputs and outputs are (name, element type, shape)."""
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self.nodes, name, [info(*i) for i in inputs], [info(*o) for o in outputs],
            self.initializers,
        )
        return onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
            producer_name="bench/models/make_models.py",
        )

    def rename_last(self, name):
        """Give the last node's first output the name that the graph shows to its user."""
        self.nodes[-1].output[0] = name
        return name


# -- Convolutional networks ------------------------------------------------------------------------


def convolution(b, x, channels_in, channels_out, kernel, stride=1, groups=1, gain=1.0):
    """Conv without bias and BatchNormalization, unfused, as training frameworks write them.

    `gain` scales the batch norm. At 1, an input of power P that came out of a ReLU gives an output
    of variance 2P, of which the next ReLU leaves power P.
    """
    fan_in = channels_in // groups * kernel * kernel
    prefix = f"conv{b.count + 1}"
    weight = b.normal(
        f"{prefix}.weight", (channels_out, channels_in // groups, kernel, kernel),
        math.sqrt(2.0 / fan_in),
    )
    x = b.node(
        "Conv", x, weight, kernel_shape=[kernel, kernel], strides=[stride, stride],
        pads=[kernel // 2] * 4, dilations=[1, 1], group=groups,
    )
    return b.node(
        "BatchNormalization", x,
        b.uniform(f"{prefix}.norm.weight", channels_out, 0.8 * gain, 1.2 * gain),
        b.normal(f"{prefix}.norm.bias", channels_out, 0.1 * gain),
        b.normal(f"{prefix}.norm.running_mean", channels_out, 0.1),
        b.uniform(f"{prefix}.norm.running_var", channels_out, 0.8, 1.2),
        epsilon=1e-5, momentum=0.9,
    )


def classifier(b, x, features, classes=1000):
    x = b.node("GlobalAveragePool", x)
    x = b.node("Flatten", x, axis=1)
    weight = b.normal("classifier.weight", (classes, features), math.sqrt(1.0 / features))
    b.node("Gemm", x, weight, b.normal("classifier.bias", classes, 0.1), transB=1)
    return b.rename_last("logits")


def image_model(b, name):
    return b.model(
        name, [("image", FLOAT, ["batch", 3, 224, 224])], [("logits", FLOAT, ["batch", 1000])]
    )


def image_input(batch):
    random = numpy.random.default_rng(224)
    return {"image": random.standard_normal((batch, 3, 224, 224), numpy.float32)}


def resnet50(name="resnet50", groups=1):
    """ResNet-50 v1.5: the stride of a stage sits in its 3x3 convolution. With 32 groups, which are twice as wide together,
    it is ResNeXt-50 32x4d."""
    b = Builder(50)
    widening = 1 if groups == 1 else 2

    def bottleneck(x, channels_in, channels, stride):
        width = widening * channels
        y = b.node("Relu", convolution(b, x, channels_in, width, 1))
        y = b.node("Relu", convolution(b, y, width, width, 3, stride, groups))
        # The small gain keeps sixteen residual sums from adding up to large values.
        y = convolution(b, y, width, 4 * channels, 1, gain=0.3)
        if stride != 1 or channels_in != 4 * channels:
            x = convolution(b, x, channels_in, 4 * channels, 1, stride)
        return b.node("Relu", b.node("Add", y, x))

    x = b.node("Relu", convolution(b, "image", 3, 64, 7, 2))
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            x = bottleneck(x, channels, width, stride if block == 0 else 1)
            channels = 4 * width
    classifier(b, x, channels)
    return image_model(b, name)


def resnext50():
    return resnet50("resnext50", groups=32)


def mobilenetv2():
    """MobileNetV2 at width 1: inverted residuals, depthwise 3x3, ReLU6 as Clip."""
    b = Builder(2)
    zero = b.constant("relu6.min", numpy.array(0, numpy.float32))
    six = b.constant("relu6.max", numpy.array(6, numpy.float32))

    def relu6(x):
        return b.node("Clip", x, zero, six)

    def inverted_residual(x, channels_in, channels_out, stride, expansion):
        width = channels_in * expansion
        y = x if expansion == 1 else relu6(convolution(b, x, channels_in, width, 1))
        y = relu6(convolution(b, y, width, width, 3, stride, groups=width))
        # No ReLU follows, so the output keeps its input's power only at a gain of sqrt(1/2).
        y = convolution(b, y, width, channels_out, 1, gain=0.7)
        return b.node("Add", x, y) if stride == 1 and channels_in == channels_out else y

    x = relu6(convolution(b, "image", 3, 32, 3, 2))
    channels = 32
    stages = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    for expansion, channels_out, blocks, stride in stages:
        for block in range(blocks):
            first = stride if block == 0 else 1
            x = inverted_residual(x, channels, channels_out, first, expansion)
            channels = channels_out
    x = relu6(convolution(b, x, channels, 1280, 1))
    classifier(b, x, 1280)
    return image_model(b, "mobilenetv2")


def efficientnet_b0():
    """EfficientNet-B0: depthwise 3x3 and 5x5, SiLU as x times its sigmoid, squeeze and excitation."""
    b = Builder(20)

    def silu(x):
        return b.node("Mul", x, b.node("Sigmoid", x))

    def biased(x, channels_in, channels_out):
        prefix = f"conv{b.count + 1}"
        weight = b.normal(f"{prefix}.weight", (channels_out, channels_in, 1, 1), math.sqrt(1.0 / channels_in))
        return b.node("Conv", x, weight, b.normal(f"{prefix}.bias", channels_out, 0.1), kernel_shape=[1, 1])

    def excite(x, channels, squeezed):
        y = b.node("GlobalAveragePool", x)
        y = biased(silu(biased(y, channels, squeezed)), squeezed, channels)
        return b.node("Mul", b.node("Sigmoid", y), x)

    def block(x, channels_in, channels_out, kernel, stride, expansion):
        width = channels_in * expansion
        y = x if expansion == 1 else silu(convolution(b, x, channels_in, width, 1))
        y = silu(convolution(b, y, width, width, kernel, stride, groups=width))
        y = convolution(b, excite(y, width, channels_in // 4), width, channels_out, 1, gain=1.4)
        return b.node("Add", y, x) if stride == 1 and channels_in == channels_out else y

    x = silu(convolution(b, "image", 3, 32, 3, 2))
    channels = 32
    stages = (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    )
    for expansion, channels_out, blocks, stride, kernel in stages:
        for number in range(blocks):
            x = block(x, channels, channels_out, kernel, stride if number == 0 else 1, expansion)
            channels = channels_out
    x = silu(convolution(b, x, channels, 1280, 1))
    classifier(b, x, 1280)
    return image_model(b, "efficientnet-b0")


def convnext_tiny():
    """ConvNeXt-T: depthwise 7x7, and behind it rows of channels: LayerNormalization, two products with GELU between them."""
    b = Builder(7)
    scalar = {name: b.constant(name, numpy.array(value, numpy.float32))
              for name, value in (("one", 1.0), ("half", 0.5), ("sqrt_two", math.sqrt(2.0)))}

    def biased(x, channels_in, channels_out, kernel, stride, groups=1):
        prefix = f"conv{b.count + 1}"
        shape = (channels_out, channels_in // groups, kernel, kernel)
        weight = b.normal(f"{prefix}.weight", shape, math.sqrt(1.0 / math.prod(shape[1:])))
        pad = kernel // 2 if stride == 1 else 0
        return b.node("Conv", x, weight, b.normal(f"{prefix}.bias", channels_out, 0.1), kernel_shape=[kernel, kernel],
                      strides=[stride, stride], pads=[pad] * 4, group=groups)

    def normalise(x, channels):
        prefix = f"norm{b.count + 1}"
        return b.node("LayerNormalization", x, b.uniform(f"{prefix}.weight", channels, 0.8, 1.2),
                      b.normal(f"{prefix}.bias", channels, 0.1), axis=-1, epsilon=1e-6)

    def linear(x, channels_in, channels_out):
        prefix = f"linear{b.count + 1}"
        weight = b.normal(f"{prefix}.weight", (channels_in, channels_out), math.sqrt(1.0 / channels_in))
        return b.node("Add", b.node("MatMul", x, weight), b.normal(f"{prefix}.bias", channels_out, 0.1))

    def rows(x):
        return b.node("Transpose", x, perm=[0, 2, 3, 1])

    def images(x):
        return b.node("Transpose", x, perm=[0, 3, 1, 2])

    def block(x, channels):
        y = linear(normalise(rows(biased(x, channels, channels, 7, 1, groups=channels)), channels), channels, 4 * channels)
        erf = b.node("Erf", b.node("Div", y, scalar["sqrt_two"]))
        y = b.node("Mul", b.node("Mul", y, b.node("Add", erf, scalar["one"])), scalar["half"])
        y = images(linear(y, 4 * channels, channels))
        return b.node("Add", b.node("Mul", y, b.uniform(f"scale{b.count}", (channels, 1, 1), 0.2, 0.4)), x)

    x = images(normalise(rows(biased("image", 3, 96, 4, 4)), 96))
    channels = 96
    for width, blocks in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != channels:
            x = biased(images(normalise(rows(x), channels)), channels, width, 2, 2)
        channels = width
        for _ in range(blocks):
            x = block(x, channels)
    x = b.node("GlobalAveragePool", x)
    x = normalise(b.node("Flatten", x, axis=1), channels)
    b.node("Gemm", x, b.normal("classifier.weight", (1000, channels), math.sqrt(1.0 / channels)),
           b.normal("classifier.bias", 1000, 0.1), transB=1)
    b.rename_last("logits")
    return image_model(b, "convnext-tiny")


# -- BERT ------------------------------------------------------------------------------------------


VOCABULARY, POSITIONS, SEQUENCE = 30522, 512, 128
HIDDEN, HEADS, LAYERS, INTERMEDIATE = 768, 12, 12, 3072


def bert_base():
    """BERT-base's encoder and pooler: post-norm, erf GELU, additive mask of -10000."""
    b = Builder(12)
    head = HIDDEN // HEADS
    scalar = {
        name: b.constant(name, numpy.array(value, numpy.float32))
        for name, value in (
            ("one", 1.0), ("half", 0.5), ("sqrt_two", math.sqrt(2.0)),
            ("sqrt_head", math.sqrt(head)), ("mask_value", -10000.0),
        )
    }
    index = {
        name: b.constant(name, numpy.array(value, numpy.int64))
        for name, value in (
            ("axis_1", [1]), ("axes_1_2", [1, 2]), ("start_0", [0]), ("index_0", 0), ("index_1", 1),
            ("axis_0", [0]), ("split_heads", [0, 0, HEADS, head]), ("join_heads", [0, 0, HIDDEN]),
        )
    }

    def linear(x, name, features_in, features_out):
        weight = b.normal(
            f"{name}.weight", (features_in, features_out), math.sqrt(1.0 / features_in)
        )
        bias = b.normal(f"{name}.bias", features_out, 0.1)
        return b.node("Add", b.node("MatMul", x, weight), bias)

    def layer_norm(x, name):
        scale = b.uniform(f"{name}.weight", HIDDEN, 0.8, 1.2)
        bias = b.normal(f"{name}.bias", HIDDEN, 0.1)
        return b.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def heads(x, permutation):
        x = b.node("Reshape", x, index["split_heads"])
        return b.node("Transpose", x, perm=permutation)

    def attention(x, mask, name):
        query = heads(linear(x, f"{name}.query", HIDDEN, HIDDEN), [0, 2, 1, 3])
        key = heads(linear(x, f"{name}.key", HIDDEN, HIDDEN), [0, 2, 3, 1])
        value = heads(linear(x, f"{name}.value", HIDDEN, HIDDEN), [0, 2, 1, 3])
        scores = b.node("Div", b.node("MatMul", query, key), scalar["sqrt_head"])
        weights = b.node("Softmax", b.node("Add", scores, mask), axis=-1)
        context = b.node("Transpose", b.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        context = b.node("Reshape", context, index["join_heads"])
        return linear(context, f"{name}.output", HIDDEN, HIDDEN)

    def gelu(x):
        erf = b.node("Erf", b.node("Div", x, scalar["sqrt_two"]))
        return b.node("Mul", b.node("Mul", x, b.node("Add", erf, scalar["one"])), scalar["half"])

    def embedding(name, rows, indices):
        return b.node("Gather", b.normal(f"{name}.weight", (rows, HIDDEN), 0.5), indices, axis=0)

    mask = b.node("Unsqueeze", "attention_mask", index["axes_1_2"])
    mask = b.node("Sub", scalar["one"], b.node("Cast", mask, to=FLOAT))
    mask = b.node("Mul", mask, scalar["mask_value"])

    length = b.node("Gather", b.node("Shape", "input_ids"), index["index_1"], axis=0)
    length = b.node("Unsqueeze", length, index["axis_0"])
    positions = b.constant("position_ids", numpy.arange(POSITIONS, dtype=numpy.int64)[None])
    positions = b.node("Slice", positions, index["start_0"], length, index["axis_1"])
    words = embedding("embeddings.word", VOCABULARY, "input_ids")
    types = embedding("embeddings.token_type", 2, "token_type_ids")
    x = b.node("Add", words, types)
    x = b.node("Add", x, embedding("embeddings.position", POSITIONS, positions))
    x = layer_norm(x, "embeddings.norm")

    for layer in range(LAYERS):
        name = f"layer.{layer}"
        x = layer_norm(b.node("Add", attention(x, mask, f"{name}.attention"), x), f"{name}.norm1")
        y = gelu(linear(x, f"{name}.intermediate", HIDDEN, INTERMEDIATE))
        y = linear(y, f"{name}.output", INTERMEDIATE, HIDDEN)
        x = layer_norm(b.node("Add", y, x), f"{name}.norm2")
    # The last layer's output is both the graph's output and the pooler's input.
    b.nodes[-1].output[0] = x = "last_hidden_state"

    first = b.node("Gather", x, index["index_0"], axis=1)
    weight = b.normal("pooler.weight", (HIDDEN, HIDDEN), math.sqrt(1.0 / HIDDEN))
    b.node("Tanh", b.node("Gemm", first, weight, b.normal("pooler.bias", HIDDEN, 0.1), transB=1))
    b.rename_last("pooler_output")

    axes = ["batch", "sequence"]
    return b.model(
        "bert-base",
        [(name, INT64, axes) for name in ("input_ids", "attention_mask", "token_type_ids")],
        [
            ("last_hidden_state", FLOAT, [*axes, HIDDEN]),
            ("pooler_output", FLOAT, ["batch", HIDDEN]),
        ],
    )


def bert_input(batch):
    """Row r is padded by 8r tokens (at most half), so a batch has rows of several lengths."""
    random = numpy.random.default_rng(128)
    ids = random.integers(1000, VOCABULARY, (batch, SEQUENCE), numpy.int64)
    lengths = SEQUENCE - numpy.minimum(8 * numpy.arange(batch), SEQUENCE // 2)
    mask = (numpy.arange(SEQUENCE) < lengths[:, None]).astype(numpy.int64)
    types = (numpy.arange(SEQUENCE) >= lengths[:, None] // 2).astype(numpy.int64)
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": types * mask}


# -- LSTM ------------------------------------------------------------------------------------------


LSTM_SIZE, LSTM_STEPS = 512, 100


def lstm512():
    """Two LSTM layers of 512; time and batch are symbolic; states start at zero."""
    b = Builder(512)
    x = "sequence"
    for layer in range(2):
        deviation = math.sqrt(1.0 / LSTM_SIZE)
        shape = (1, 4 * LSTM_SIZE, LSTM_SIZE)
        y, hidden, cell = b.node(
            "LSTM", x,
            b.normal(f"layer.{layer}.input_weight", shape, deviation),
            b.normal(f"layer.{layer}.recurrent_weight", shape, deviation),
            b.normal(f"layer.{layer}.bias", (1, 8 * LSTM_SIZE), 0.1),
            outputs=3, hidden_size=LSTM_SIZE, direction="forward",
        )
        axis = b.constant(f"layer.{layer}.direction_axis", numpy.array([1], numpy.int64))
        x = b.node("Squeeze", y, axis)
    b.rename_last("output")
    b.nodes[-2].output[1], b.nodes[-2].output[2] = "last_hidden", "last_cell"
    return b.model(
        "lstm512",
        [("sequence", FLOAT, ["time", "batch", LSTM_SIZE])],
        [
            ("output", FLOAT, ["time", "batch", LSTM_SIZE]),
            ("last_hidden", FLOAT, [1, "batch", LSTM_SIZE]),
            ("last_cell", FLOAT, [1, "batch", LSTM_SIZE]),
        ],
    )


def lstm_input(batch):
    random = numpy.random.default_rng(100)
    return {"sequence": random.standard_normal((LSTM_STEPS, batch, LSTM_SIZE), numpy.float32)}


# -- The list and the command ----------------------------------------------------------------------


# name: (function that builds the model, function that makes the inputs, batch sizes measured on the CPU)
MODELS = {
    "resnet50": (resnet50, image_input, (1, 8)),
    "resnext50": (resnext50, image_input, ()),
    "mobilenetv2": (mobilenetv2, image_input, (1,)),
    "efficientnet-b0": (efficientnet_b0, image_input, ()),
    "convnext-tiny": (convnext_tiny, image_input, ()),
    "bert-base": (bert_base, bert_input, (1, 8)),
    "lstm512": (lstm512, lstm_input, (1,)),
}


# ONNX's element types by the names of dtypes, and what numpy calls them where it has them.
DTYPES = {
    "f32": (FLOAT, numpy.float32),
    "f16": (onnx.TensorProto.FLOAT16, numpy.float16),
    "bf16": (onnx.TensorProto.BFLOAT16, None),
}


def in_16_bits(model, dtype):
    """Turn all f32 of a model, weights, inputs, outputs and casts, into a dtype of 16 bits, in place."""
    element = DTYPES[dtype][0]
    for tensor in model.graph.initializer:
        if tensor.data_type == FLOAT:
            values = onnx.numpy_helper.to_array(tensor)
            tensor.CopyFrom(onnx.helper.make_tensor(
                tensor.name, element, values.shape, values.astype(onnx.helper.tensor_dtype_to_np_dtype(element)).tobytes(), raw=True))
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = element
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == FLOAT:
                attribute.i = element
    return model


def inputs_of(name, batch, dtype="f32"):
    """A model's inputs; numpy has no bf16, whose inputs are the caller's to convert."""
    kind = DTYPES[dtype][1] or numpy.float32
    return {key: array.astype(kind) if array.dtype == numpy.float32 else array
            for key, array in MODELS[name][1](batch).items()}


def model_path(folder, name, dtype="f32"):
    return pathlib.Path(folder) / (f"{name}.onnx" if dtype == "f32" else f"{name}-{dtype}.onnx")


def input_path(folder, name, batch, dtype="f32"):
    return model_path(folder, name, dtype).with_suffix(f".b{batch}.npz")


def write(folder, name, dtype="f32"):
    """Build one model and its inputs unless this very script already did. Returns if it built."""
    folder = pathlib.Path(folder)
    build, _, batches = MODELS[name]
    digest = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    stamp = model_path(folder, name, dtype).with_suffix(".stamp")
    if stamp.exists() and stamp.read_text() == digest:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    model = build() if dtype == "f32" else in_16_bits(build(), dtype)
    onnx.checker.check_model(model, full_check=dtype == "f32")  # its inference knows no bf16 everywhere
    onnx.save(model, model_path(folder, name, dtype))
    for batch in batches:
        numpy.savez(input_path(folder, name, batch, dtype), **inputs_of(name, batch, dtype))
    stamp.write_text(digest)
    return True


def verify(folder, name):
    """Run the model in ONNX Runtime and report every output; false if one is dull or not finite."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        model_path(folder, name), providers=["CPUExecutionProvider"]
    )
    fine = True
    for batch in MODELS[name][2]:
        feeds = dict(numpy.load(input_path(folder, name, batch)))
        for output, value in zip(session.get_outputs(), session.run(None, feeds)):
            good = bool(numpy.isfinite(value).all()) and 1e-2 < float(value.std()) < 1e2
            fine = fine and good
            print(f"  b{batch} {output.name} {list(value.shape)} mean {value.mean():.4f} "
                  f"deviation {value.std():.4f} {'ok' if good else 'BAD'}")
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where models and inputs are written")
    parser.add_argument("--only", choices=list(MODELS), help="build this model alone")
    parser.add_argument("--dtype", choices=list(DTYPES), default="f32", help="of weights, inputs and outputs")
    parser.add_argument("--verify", action="store_true", help="run each model in ONNX Runtime")
    arguments = parser.parse_args()
    fine = True
    for name in [arguments.only] if arguments.only else MODELS:
        built = write(arguments.folder, name, arguments.dtype)
        size = model_path(arguments.folder, name, arguments.dtype).stat().st_size / 1e6
        print(f"{name}: {size:.1f} MB, {'built' if built else 'already there'}")
        if arguments.verify:
            fine = verify(arguments.folder, name) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
