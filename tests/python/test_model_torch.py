"""Models on tensors of torch, over their own memory, and outputs as tensors of torch."""
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

from models import NETWORK, add_one, made  # noqa: I001

import numpy as np

import samebit
from samebit import _values

DOUBLE = made("g (bfloat16[n,m] x) => (bfloat16[n,m] y) { y = Add(x, x) }")


class Models(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_same_bits_as_numpy(self):
        model = samebit.load(NETWORK)
        x = torch.randn(5, 8)
        y = model(x)
        self.assertEqual(y.tobytes(), model(x.numpy()).tobytes())
        for view in (x[1:], x[::2], torch.randn(8, 5).T):
            self.assertEqual(model(view).tobytes(), model(view.contiguous().numpy()).tobytes())

    def test_inputs_are_not_copied(self):
        x = torch.randn(6, 8)
        for view in (x, x[1:], x[:, ::3], x.T, x[0].expand(4, 8)):
            tensor = samebit.Tensor(_values.tensor_pointer(view))
            self.assertEqual((tensor.address, tensor.shape), (view.data_ptr(), tuple(view.shape)))
            self.assertEqual(tensor.strides, view.stride())

    def test_tensors_are_let_go(self):
        released = []

        class Watched:
            def __del__(self):
                released.append(True)

        model = samebit.load(add_one())
        storage = np.zeros(4, np.float32)
        x = torch.from_numpy(storage)
        x.watched = Watched()
        model(x)
        del x
        self.assertEqual(released, [True])

    def test_bfloat16(self):
        model = samebit.load(DOUBLE)
        x = torch.randn(3, 7).bfloat16()
        y = model(x)
        self.assertTrue(torch.equal(torch.from_numpy(y.view(np.int16).copy()), (x + x).view(torch.int16)))
        self.assertTrue(torch.equal(torch.from_dlpack(samebit.tensor(x)), x))

    def test_outputs(self):
        model = samebit.load(NETWORK)
        y = model(torch.randn(5, 8))
        taken = torch.from_dlpack(samebit.tensor(y))
        self.assertEqual(taken.data_ptr(), y.ctypes.data)
        before = taken.clone()
        del y, model
        self.assertTrue(torch.equal(taken, before))

    def test_mistakes(self):
        model = samebit.load(NETWORK)
        with self.assertRaisesRegex(ValueError, "input x requires a gradient, and Samebit has none: detach it"):
            model(torch.randn(2, 8).requires_grad_())
        with self.assertRaisesRegex(ValueError, "input x is f64"):
            model(torch.randn(2, 8).double())
        with self.assertRaises(samebit.Error):
            model(torch.randn(2, 8).to_sparse())

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_a_gpu(self):
        x = torch.randn(5, 8)
        expected = samebit.load(NETWORK)(x).tobytes()
        model = samebit.load(NETWORK, "cuda", device_outputs=True)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            there = (x.cuda() * 2) / 2  # which the stream still works on
            y = torch.from_dlpack(model(there))
        self.assertEqual((y.device.type, y.cpu().numpy().tobytes()), ("cuda", expected))
        self.assertEqual(samebit.load(NETWORK, "cuda")(there).tobytes(), expected)
        with self.assertRaisesRegex(ValueError, "load the model with device='cuda:0'"):
            samebit.load(NETWORK)(there)


if __name__ == "__main__":
    unittest.main()
