"""Models on a device, over a driver that runs kernels on the host (tests/cuda/fake_gpu): see test_device.py."""
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

from models import CACHE, IDENTITY, NETWORK, RECURRENT, add_one  # noqa: E402, I001

import numpy as np  # noqa: E402

import samebit  # noqa: E402
from samebit import _tensor_runs, _values  # noqa: E402
from plain_array import Array  # noqa: E402
from test_device import DeviceArray  # noqa: E402


def normal(shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Models(unittest.TestCase):
    def test_bits(self):
        x = normal((5, 8))
        on_cpu, model = samebit.load(NETWORK), samebit.load(NETWORK, "cuda")
        self.assertEqual((str(model.device), on_cpu.device), ("cuda:0", None))
        y = model(x)
        self.assertEqual((type(y), y.tobytes()), (np.ndarray, on_cpu(x).tobytes()))
        self.assertEqual(model.digest(x), on_cpu.digest(x))
        self.assertTrue(any(node.on_device for node in model.placement({"x": x})))
        self.assertFalse(model.compare({"x": x}))
        self.assertEqual(str(samebit.load(NETWORK, "auto").device), "cuda:0")
        self.assertEqual(samebit.InferenceSession(NETWORK, providers=["CUDAExecutionProvider"]).run(None, {"x": x})[0].tobytes(),
                         y.tobytes())

    def test_outputs_that_stay(self):
        model = samebit.load(NETWORK, "cuda", device_outputs=True)
        x = normal((5, 8))
        y = model(x)
        self.assertIsInstance(y, samebit.Tensor)
        self.assertEqual((y.shape, y.dtype, y.__dlpack_device__()), ((5, 4), "f32", (2, 0)))
        self.assertEqual(y.numpy().tobytes(), samebit.load(NETWORK)(x).tobytes())
        again = samebit.load(add_one(extent="n,m"), "cuda")
        self.assertEqual(again(y).tobytes(), (y.numpy() + 1).tobytes())
        self.assertEqual(samebit.digest(y), samebit.digest(y.numpy()))
        for version in ({}, {"max_version": (1, 0)}):
            taken = samebit.Tensor(_values._take_over(y.__dlpack__(**version), model.device), model.device)
            self.assertEqual((taken.address, taken.numpy().tobytes()), (y.address, y.numpy().tobytes()))
        with self.assertRaisesRegex(ValueError, "input x lies on device 0, and the session runs on the CPU"):
            samebit.load(NETWORK)(samebit.tensor(x, "cuda"))

    def test_tensors_that_stay(self):
        """Tensors of a device, whose results stay there, go a shorter way, with the same results and errors."""
        model = samebit.load(NETWORK, "cuda", device_outputs=True)
        session = model.session()
        self.assertIs(type(session._fast_runs), _tensor_runs.TensorRuns)
        arrays = [normal((rows, 8), rows) for rows in (5, 1, 5, 0)]
        for array in arrays:
            x = samebit.tensor(array, "cuda")
            fast = session._fast_runs.run(session, {"x": x})
            (name, y), = fast.items()
            slow = session.run({"x": array})[name]
            self.assertEqual((type(y), y.device, y.shape), (samebit.Tensor, model.device, (array.shape[0], 4)))
            self.assertEqual(y.numpy().tobytes(), slow.numpy().tobytes())
            self.assertEqual(session.run({"x": x})[name].numpy().tobytes(), y.numpy().tobytes())
            del fast, x
            self.assertEqual(y.numpy().tobytes(), slow.numpy().tobytes())  # the result is nobody else's
        for given in ({"x": arrays[0]}, {"x": samebit.tensor(arrays[0])}, {}, {"z": samebit.tensor(arrays[0], "cuda")}):
            self.assertIsNone(session._fast_runs.run(session, given))
        with self.assertRaisesRegex(ValueError, "x"):
            session.run({"x": samebit.tensor(arrays[0].astype(np.int32), "cuda")})
        self.assertEqual(session.run({"x": samebit.tensor(arrays[0], "cuda")})[name].shape, (5, 4))
        # An output that is the input.
        x = samebit.tensor(arrays[0].ravel(), "cuda")
        same = samebit.load(IDENTITY, "cuda", device_outputs=True).session()
        result, = same.run({same.inputs[0].name: x}).values()
        del x
        self.assertEqual(np.asarray(result).tobytes(), arrays[0].tobytes())

    def test_arrays_of_others(self):
        """They are read where they lie, behind what their maker has given to the legacy stream."""
        values = [float(v) for v in range(12)]
        there = DeviceArray("f32", (12,), values)
        model = samebit.load(add_one(), "cuda")
        pointer = _values.tensor_pointer(there, device=model.device)
        self.assertEqual(samebit.Tensor(pointer, model.device).address, there.address)
        self.assertEqual(there.options["stream"], 1)
        self.assertEqual(model(there).tolist(), [v + 1 for v in values])
        self.assertEqual(model(Array("f32", (12,), values)).tolist(), [v + 1 for v in values])
        with self.assertRaisesRegex(ValueError, "input x lies on CUDA device 0 and the model runs on the CPU: load the model "
                                    "with device='cuda:0'"):
            samebit.load(IDENTITY)(there)

    def test_tensors(self):
        x = normal((3, 8))
        held = samebit.tensor(x, "cuda")
        self.assertEqual(held.__dlpack_device__(), (2, 0))
        self.assertEqual(np.asarray(held).tobytes(), x.tobytes())
        self.assertEqual(samebit.load(NETWORK, "cuda")(held).tobytes(), samebit.load(NETWORK)(x).tobytes())

    def test_states(self):
        frames = [normal((2, 3), seed) for seed in range(5)]
        model = samebit.load(RECURRENT)
        here = model.session(state={"h": "hN"}, symbols={"b": 2})
        there = model.session(state={"h": "hN"}, symbols={"b": 2}, device="cuda")
        self.assertTrue(there.state.variables["h"].on_device)
        for x in frames:
            self.assertEqual(there.run({"x": x})["y"].tobytes(), here.run({"x": x})["y"].tobytes())
        self.assertEqual(there.state["h"].tobytes(), here.state["h"].tobytes())
        cache = samebit.load(CACHE, "cuda").session(state={"k": "kN"}, capacity={"past": 8})
        for count in (2, 1, 3):
            cache.run({"x": normal((1, count, 2))})
        self.assertEqual(cache.state.extent("past"), 6)

    def test_queue(self):
        model = samebit.load(NETWORK, "cuda")
        session = model.session()
        arrays = [normal((4, 8), seed) for seed in range(6)]
        expected = [model(x).tobytes() for x in arrays]
        for first in (0, 3):
            runs = [session.enqueue({"x": x}) for x in arrays[first : first + 3]]
            self.assertEqual([session.wait(run)["y"].tobytes() for run in runs], expected[first : first + 3])

    def test_devices(self):
        (device,) = samebit.devices()
        self.assertEqual(device.index, 0)
        self.assertTrue(device.kernels)
        self.assertTrue(samebit.open_device("cuda").name)
        with self.assertRaises(samebit.Error):
            samebit.load(NETWORK, "cuda:7")


if __name__ == "__main__":
    unittest.main()
