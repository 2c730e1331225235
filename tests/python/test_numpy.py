"""samebit.gemm on arrays of numpy."""
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("numpy is not installed") from None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

import samebit

F16, F32 = numpy.float16, numpy.float32


def normal(shape, seed, dtype=F16):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def bf16_bits(array):
    """An array of f32 cut to bfloat16, as integers."""
    return (numpy.ascontiguousarray(array, F32).view(numpy.uint32) >> 16).astype(numpy.uint16)


def f32_of_bf16(bits):
    return (bits.astype(numpy.uint32) << 16).view(F32)


class Arrays(unittest.TestCase):
    def same(self, left, right):
        self.assertEqual((left.dtype, left.shape), (right.dtype, right.shape))
        self.assertEqual(left.tobytes(), right.tobytes())

    def test_values(self):
        a, b = normal((33, 200), 1), normal((200, 17), 2)
        exact = a.astype(float) @ b.astype(float)
        bound = (numpy.abs(a.astype(float)) @ numpy.abs(b.astype(float))) * 2.0 ** -20
        out = samebit.gemm(a, b, out_dtype="f32")
        self.assertEqual((out.dtype, out.shape), (F32, (33, 17)))
        self.assertTrue((numpy.abs(out - exact) <= bound).all())
        self.same(samebit.gemm(a, b), out.astype(F16))

    def test_a_row_is_the_same_in_every_batch(self):
        a, b = normal((70, 130), 3), normal((130, 40), 4)
        whole = samebit.gemm(a, b, activation="gelu")
        for first in range(0, 70, 9):
            self.same(samebit.gemm(a[first : first + 9], b, activation="gelu"), whole[first : first + 9])
        self.same(samebit.gemm(a[::-3], b, activation="gelu"), whole[::-3].copy())

    def test_views(self):
        a, b = normal((24, 50), 5), normal((50, 20), 6)
        out = samebit.gemm(a, b)
        self.same(samebit.gemm(numpy.asfortranarray(a), numpy.asfortranarray(b)), out)
        self.same(samebit.gemm(b.T, a.T), out.T.copy())
        wide = numpy.zeros((48, 150), F16)
        wide[1::2, ::3] = a
        self.same(samebit.gemm(wide[1::2, ::3], b), out)
        target = numpy.full((24, 60), 7, F16)
        self.assertIsNotNone(samebit.gemm(a, b, out=target[:, 1::3]))
        self.same(target[:, 1::3].copy(), out)
        self.assertTrue((target[:, 0::3] == 7).all() and (target[:, 2::3] == 7).all())

    def test_read_only_operands(self):
        a, b = normal((4, 20), 7), normal((20, 4), 8)
        out = samebit.gemm(a, b)
        a.flags.writeable = b.flags.writeable = False
        self.same(samebit.gemm(a, b), out)
        out.flags.writeable = False
        with self.assertRaisesRegex(samebit.Error, "read-only|readonly"):
            samebit.gemm(a, b, out=out)

    def test_bfloat16_in_integers(self):
        a, b = normal((9, 64), 9, F32), normal((64, 5), 10, F32)
        a, b = bf16_bits(a), bf16_bits(b)
        exact = f32_of_bf16(a).astype(float) @ f32_of_bf16(b).astype(float)
        out = samebit.gemm(a, b, dtype="bf16")
        self.assertEqual(out.dtype, numpy.uint16)
        self.assertLess(numpy.abs(f32_of_bf16(out) - exact).max(), 2.0 ** -3)
        self.same(samebit.gemm(a[2:3], b, dtype="bf16"), out[2:3])
        single = samebit.gemm(a, b, dtype="bf16", out_dtype="f32")
        self.assertLess(numpy.abs(single - exact).max(), 2.0 ** -13)

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_ml_dtypes(self):
        a, b = (normal(shape, 11, F32).astype(ml_dtypes.bfloat16) for shape in ((9, 64), (64, 5)))
        out = samebit.gemm(a, b)
        self.assertEqual(out.dtype, ml_dtypes.bfloat16)
        self.same(out.view(numpy.uint16), samebit.gemm(a.view(numpy.uint16), b.view(numpy.uint16), dtype="bf16"))
        self.same(samebit.gemm(a.T.copy().T, b), out)

    def test_empty(self):
        self.assertEqual(samebit.gemm(normal((0, 8), 1), normal((8, 3), 2)).shape, (0, 3))
        self.assertTrue((samebit.gemm(normal((4, 0), 1), normal((0, 3), 2)) == 0).all())
        bias = normal((3,), 3)
        self.same(samebit.gemm(normal((4, 0), 1), normal((0, 3), 2), bias=bias), numpy.broadcast_to(bias, (4, 3)).copy())
        self.assertEqual(samebit.gemm(normal((0, 4, 8), 1), normal((8, 3), 2)).shape, (0, 4, 3))

    def test_epilogue(self):
        a, b, bias, residual = normal((6, 32), 12), normal((32, 10), 13), normal((10,), 14), normal((6, 10), 15, F32)
        chain = samebit.gemm(a, b, out_dtype="f32")
        y = chain * F32(0.5) + bias.astype(F32)
        y = numpy.where(y < 0, F32(0), y) + residual
        self.same(samebit.gemm(a, b, scale=0.5, bias=bias, activation="relu", residual=residual, out_dtype="f32"), y)
        exact = chain.astype(float) / (1 + numpy.exp(-chain.astype(float)))
        self.assertLess(numpy.abs(samebit.gemm(a, b, activation="silu", out_dtype="f32") - exact).max(), 1e-5)
        gated = samebit.gemm(a, b, activation="silu", gate="interleaved", out_dtype="f32")
        self.assertEqual(gated.shape, (6, 5))
        self.assertLess(numpy.abs(gated - exact[:, 0::2] * chain[:, 1::2]).max(), 1e-4)

    def test_accumulation_over_samples(self):
        lengths = [10, 3, 16, 40, 0, 7]
        x, grad = normal((76, 12), 16), normal((76, 9), 17)
        whole = samebit.gemm(grad.T, x, out_dtype="f32", rows=samebit.RowMap(numpy.array(lengths)))
        total = numpy.zeros((9, 12), F32)
        at = 0
        for first, last in ((0, 1), (1, 4), (4, 6)):
            count = sum(lengths[first:last])
            samebit.gemm(grad[at : at + count].T, x[at : at + count], out=total, accumulate=True, rows=lengths[first:last])
            at += count
        self.same(total, whole)

    def test_byte_order_and_kinds(self):
        b = normal((4, 3), 1)
        with self.assertRaises(samebit.Error):
            samebit.gemm(normal((2, 4), 1).astype(">f2"), b)
        with self.assertRaisesRegex(samebit.Error, "float64"):
            samebit.gemm(numpy.ones((2, 4)), b)
        with self.assertRaisesRegex(samebit.Error, "say dtype="):
            samebit.gemm(numpy.ones((2, 4), numpy.uint16), b)


if __name__ == "__main__":
    unittest.main()
