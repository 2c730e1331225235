#!/usr/bin/env python3
"""Train the digits network and write everything that lies beside this script.

    pip install -r requirements.txt
    python train.py

Writes digits.onnx, samples.npy, labels.npy and reference.npz. Seeds are fixed and one thread is
used, so one machine gives the same files every time; another CPU or another PyTorch may round
differently while training and end in other weights. The committed files are therefore the
authority, and this script is how they came to be.
"""

import argparse
import pathlib

import numpy
import onnx
import onnx.checker
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
EPOCHS = 60
BATCH = 64
SAMPLES_PER_DIGIT = 2
OPSET = 17
IR_VERSION = 8


class DigitsNet(torch.nn.Module):
    """Three convolutions, each with batch norm and ReLU, and two dense layers.

    Input [N, 1, 8, 8] with grey levels 0..16, output [N, 10] logits.
    """

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = torch.nn.BatchNorm2d(16)
        self.conv2 = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = torch.nn.BatchNorm2d(32)
        self.conv3 = torch.nn.Conv2d(32, 32, 3, padding=1)
        self.norm3 = torch.nn.BatchNorm2d(32)
        self.dense1 = torch.nn.Linear(128, 32)
        self.dense2 = torch.nn.Linear(32, 10)

    def forward(self, image):
        pool = torch.nn.functional.max_pool2d
        x = image / 16
        x = torch.relu(self.norm1(self.conv1(x)))
        x = pool(torch.relu(self.norm2(self.conv2(x))), 2)
        x = pool(torch.relu(self.norm3(self.conv3(x))), 2)
        x = torch.relu(self.dense1(x.flatten(1)))
        return self.dense2(torch.nn.functional.dropout(x, 0.3, self.training))


def shifted(images, generator):
    """Each image moved by -1, 0 or 1 pixel in both directions, zeros coming in."""
    padded = torch.nn.functional.pad(images, (1, 1, 1, 1))
    offsets = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()
    return torch.stack([p[:, y : y + 8, x : x + 8] for p, (y, x) in zip(padded, offsets)])


def train(images, labels):
    generator = torch.Generator().manual_seed(SEED)
    net = DigitsNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = EPOCHS * ((len(images) + BATCH - 1) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    net.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
            optimizer.zero_grad()
            logits = net(shifted(images[chosen], generator))
            loss = torch.nn.functional.cross_entropy(logits, labels[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: training loss {total / len(images):.4f}")
    return net.eval()


def to_onnx(net):
    """The network as an ONNX model.

    Written node by node and not with torch.onnx, because the exporter folds the batch norms into
    the convolutions, and an example should show a graph as frameworks think of it.
    """
    weights = {k: v.detach().numpy() for k, v in net.state_dict().items() if v.ndim > 0}
    weights["grey_scale"] = numpy.array(1 / 16, numpy.float32)
    nodes = []

    def add(op, inputs, output, **attributes):
        nodes.append(onnx.helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def block(index, x):
        conv, norm = f"conv{index}", f"norm{index}"
        x = add("Conv", [x, f"{conv}.weight", f"{conv}.bias"], f"{conv}.out",
                kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
        parts = ("weight", "bias", "running_mean", "running_var")
        epsilon = getattr(net, norm).eps
        x = add("BatchNormalization", [x] + [f"{norm}.{part}" for part in parts], f"{norm}.out",
                epsilon=epsilon)
        return add("Relu", [x], f"relu{index}.out")

    def pool(index, x):
        return add("MaxPool", [x], f"pool{index}.out", kernel_shape=[2, 2], strides=[2, 2])

    x = add("Mul", ["image", "grey_scale"], "scaled")
    x = block(1, x)
    x = pool(2, block(2, x))
    x = pool(3, block(3, x))
    x = add("Flatten", [x], "flat", axis=1)
    x = add("Gemm", [x, "dense1.weight", "dense1.bias"], "dense1.out", transB=1)
    x = add("Relu", [x], "relu4.out")
    x = add("Gemm", [x, "dense2.weight", "dense2.bias"], "logits", transB=1)
    add("Softmax", [x], "probabilities", axis=1)

    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "digits",
        [info("image", onnx.TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [info("probabilities", onnx.TensorProto.FLOAT, ["batch", 10])],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
        doc_string="Handwritten digits, 8x8 grey levels 0..16 in, ten class probabilities out.",
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="examples/digits/train.py",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def recorded(model, image):
    """What ONNX Runtime gives for every value of the graph, as {value name: array}."""
    open_model = onnx.shape_inference.infer_shapes(model)
    open_model.graph.output.extend(
        value for value in open_model.graph.value_info
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        open_model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return {"image": image, **dict(zip(names, session.run(names, {"image": image})))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    out = parser.parse_args().out

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    data = load_digits()
    images = data.images.astype(numpy.float32).reshape(-1, 1, 8, 8)
    labels = data.target.astype(numpy.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.2, random_state=SEED, stratify=labels
    )
    net = train(torch.from_numpy(train_x), torch.from_numpy(train_y))
    model = to_onnx(net)
    out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, out / "digits.onnx")

    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (probabilities,) = session.run(None, {"image": test_x})
    correct = int((probabilities.argmax(1) == test_y).sum())
    print(f"held-out images: {correct} of {len(test_y)} right, {correct / len(test_y):.2%}")
    with torch.no_grad():
        ours = torch.softmax(net(torch.from_numpy(test_x)), 1).numpy()
    print(f"PyTorch and ONNX Runtime differ by at most {numpy.abs(ours - probabilities).max():.2g}")

    # The first held-out images of each digit, whatever the network makes of them.
    by_digit = [numpy.flatnonzero(test_y == digit) for digit in range(10)]
    chosen = [where[turn] for turn in range(SAMPLES_PER_DIGIT) for where in by_digit]
    numpy.save(out / "samples.npy", test_x[chosen])
    numpy.save(out / "labels.npy", test_y[chosen])
    numpy.savez_compressed(out / "reference.npz", **recorded(model, test_x[chosen[:1]]))
    print("samples:", test_y[chosen].tolist())
    print("answers:", probabilities[chosen].argmax(1).tolist())
    print("certain:", probabilities[chosen].max(1).round(3).tolist())


if __name__ == "__main__":
    main()
