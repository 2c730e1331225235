"""samebit.gemm on a device, over a driver that runs kernels on the host (tests/cuda/fake_gpu): SAMEBIT_CUDA_DRIVER is
its path, and SAMEBIT_LIBRARY a library whose kernels it knows."""
import ctypes
import os
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import samebit  # noqa: E402
from samebit import _engine  # noqa: E402
from plain_array import Array  # noqa: E402
from test_package import numbers  # noqa: E402

POINTER = ctypes.c_void_p


class Driver:
    """As much of the driver's interface as a program needs that owns memory and streams."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["SAMEBIT_CUDA_DRIVER"])
        context = POINTER()
        self("cuInit", ctypes.c_uint(0))
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(0))
        self("cuCtxPushCurrent", context)

    def __call__(self, name, *arguments):
        address = POINTER()
        found = self.library.cuGetProcAddress_v2(name.encode(), ctypes.byref(address), 12080, ctypes.c_uint64(1),
                                                 ctypes.byref(ctypes.c_int()))
        assert found == 0 and address.value, name
        function = ctypes.CFUNCTYPE(ctypes.c_int)(address.value)
        status = function(*arguments)
        assert status == 0, (name, status)

    def allocate(self, size):
        """Addresses of memory of the device, and of the host where copies pass."""
        device, host = ctypes.c_uint64(), POINTER()
        self("cuMemAlloc", ctypes.byref(device), ctypes.c_size_t(size))
        self("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(size), ctypes.c_uint(0))
        return device.value, host.value

    def stream(self):
        handle = POINTER()
        self("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(1))
        return handle.value

    def wait(self):
        self("cuStreamSynchronize", POINTER())


class DeviceArray(Array):
    """The same in the driver's memory, which the host may not touch."""

    def __init__(self, dtype, shape, values=None, **options):
        super().__init__(dtype, shape, values, device_type=2, **options)
        self.size = ctypes.sizeof(self.memory)
        self.address, host = driver.allocate(self.size)
        ctypes.memmove(host, self.memory, self.size)
        self.memory = type(self.memory).from_address(host)
        self.fields["data"] = self.address
        driver("cuMemcpyHtoDAsync", ctypes.c_uint64(self.address), self.memory, ctypes.c_size_t(self.size), POINTER())
        driver.wait()

    def bits(self, stream=None):
        """After what the stream has been given."""
        driver("cuMemcpyDtoHAsync", self.memory, ctypes.c_uint64(self.address), ctypes.c_size_t(self.size), POINTER(stream))
        driver("cuStreamSynchronize", POINTER(stream))
        return super().bits()


driver = Driver()


class Products(unittest.TestCase):
    def setUp(self):
        self.values = numbers("bf16", 20 * 70, 1), numbers("bf16", 70 * 30, 2)
        self.host = Array("bf16", (20, 70), self.values[0]), Array("bf16", (70, 30), self.values[1])
        self.device = DeviceArray("bf16", (20, 70), self.values[0]), DeviceArray("bf16", (70, 30), self.values[1])
        self.expected = samebit.gemm(*self.host, out=Array("f32", (20, 30)), activation="silu").bits()

    def test_bits_and_order(self):
        """The work is given to the stream that was named, the arrays' makers wait in it,
        and nobody waits for the device."""
        for stream in (None, driver.stream(), driver.stream()):
            out = DeviceArray("f32", (20, 30))
            self.assertIs(samebit.gemm(*self.device, out=out, activation="silu", stream=stream), out)
            self.assertEqual(self.device[0].options["stream"], stream or 1)
            if stream is not None:  # which the legacy stream does not wait for
                self.assertNotEqual(out.bits(), self.expected)
            self.assertEqual(out.bits(stream), self.expected)

    def test_schedules(self):
        engine = samebit.engine("cuda")
        self.assertIs(engine, samebit.engine("cuda:0"))
        ran = 0
        for schedule in engine.schedules:
            out = DeviceArray("f32", (20, 30))
            try:
                samebit.gemm(*self.device, out=out, activation="silu", schedule=schedule)
            except samebit.Error as failure:
                self.assertEqual(failure.status, "unsupported", failure)
                continue
            self.assertEqual(out.bits(), self.expected, schedule)
            ran += 1
        self.assertGreaterEqual(ran, 1)

    def test_samples(self):
        lengths = [9, 0, 21, 40]
        expected = samebit.gemm(*self.host, out=Array("f32", (20, 30)), rows=lengths).bits()
        for count in range(_engine.MOST_ROW_MAPS + 2):  # many maps, whose memory comes and goes
            samebit.gemm(*self.device, out=DeviceArray("f32", (20, 30)), rows=lengths + [0] * (count + 1))
        out = DeviceArray("f32", (20, 30))
        samebit.gemm(*self.device, out=out, rows=samebit.RowMap(lengths))
        self.assertEqual(out.bits(), expected)

    def test_places(self):
        out = DeviceArray("f32", (20, 30))
        with self.assertRaisesRegex(samebit.Error, "a lies on CUDA device 0 and b on the CPU: bring them together"):
            samebit.gemm(self.device[0], self.host[1], out=out)
        with self.assertRaisesRegex(samebit.Error, "engine is for the CPU"):
            samebit.gemm(*self.device, out=out, on=samebit.engine("cpu"))
        pretended = Array("bf16", (70, 30), self.values[1], device_type=2)
        with self.assertRaisesRegex(samebit.Error, "^b "):
            samebit.gemm(self.device[0], pretended, out=out)
        with self.assertRaises(samebit.Error):
            samebit.Engine("cuda:7")


if __name__ == "__main__":
    unittest.main()
