"""The package with nothing but the standard library: opening the library, arrays by DLPack, samebit.gemm against the
page's own arithmetic."""
import ctypes
import ctypes.util
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/docs"), str(ROOT / "tests/python")]

import samebit  # noqa: E402
from arithmetic import chain16, store  # noqa: E402
from samebit import _engine, _errors, _library, _structures  # noqa: E402
from plain_array import Array  # noqa: E402


def numbers(dtype, count, seed):
    """Numbers of a format, with zeros and wide exponents among them."""
    rng = random.Random(seed)
    least = -14 if dtype == "f16" else -30
    drawn = (rng.choice([0.0, 1.0, rng.gauss(0, 1), rng.gauss(0, 1) * 2.0 ** rng.randint(least, 4)]) for _ in range(count))
    return [store(dtype, value) for value in drawn]


def product(dtype, m, k, n, a, b, samples=None):
    """The chains of docs/numerics.md; with samples, each is padded to 16 rows of k."""
    cuts, pads = [], []
    for length in samples or [k]:
        cuts.append(length)
        pads.append(-length % 16)
    result = []
    for row in range(m):
        for column in range(n):
            pairs, at = [], 0
            for length, pad in zip(cuts, pads):
                pairs += [(a[row * k + i], b[i * n + column]) for i in range(at, at + length)] + [(0.0, 0.0)] * pad
                at += length
            result.append(chain16(dtype, pairs))
    return result


def bits_of(array_type, shape, values):
    return Array(array_type, shape, values).bits()


class Opening(unittest.TestCase):
    """In processes of their own, since a library that is open stays open."""

    def python(self, code, **variables):
        environment = {k: v for k, v in os.environ.items() if k not in ("SAMEBIT_LIBRARY", "LD_LIBRARY_PATH")}
        environment.update(variables)
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    CALL = "import samebit\ntry:\n    samebit.version()\nexcept samebit.Error as failure:\n    print(failure.status, failure)"

    def test_import_opens_nothing(self):
        self.assertEqual(self.python("import samebit; print('fine')", SAMEBIT_LIBRARY="/nowhere/libsamebit.so"), "fine\n")

    def test_a_named_library_that_is_missing(self):
        said = self.python(self.CALL, SAMEBIT_LIBRARY="/nowhere/libsamebit.so")
        self.assertIn("/nowhere/libsamebit.so", said)
        self.assertIn("cannot be opened", said)

    def test_nothing_named_and_nothing_installed(self):
        said = self.python("from samebit import _library\n_library.LOADER_NAMES = ('libsamebit-nowhere.so',)\n" + self.CALL)
        self.assertIn("SAMEBIT_LIBRARY", said)
        self.assertIn("libsamebit-nowhere.so", said)

    def test_another_library(self):
        said = self.python(self.CALL, SAMEBIT_LIBRARY=ctypes.util.find_library("c") or "libc.so.6")
        self.assertIn("has no function", said)

    def test_load_by_path(self):
        path = os.environ["SAMEBIT_LIBRARY"]
        said = self.python(f"import samebit\nsamebit.open_library({path!r})\nprint(samebit.version())\n"
                           f"samebit.open_library({path!r})\ntry:\n"
                           "    samebit.open_library('/another.so')\nexcept samebit.Error as failure:\n    print(failure)")
        self.assertIn("already open", said)

    def test_versions_agree(self):
        self.assertEqual(samebit.version(), samebit.__version__)
        project = (ROOT / "pyproject.toml").read_text()
        self.assertIn(f'version = "{samebit.__version__}"', project)
        self.assertGreaterEqual(samebit.numerics_version(), 1)

    def test_no_device(self):
        said = self.python("import samebit\ntry:\n    samebit.Engine('cuda')\nexcept samebit.Error as failure:\n"
                           "    print(failure.status, failure)", SAMEBIT_LIBRARY=os.environ["SAMEBIT_LIBRARY"],
                           SAMEBIT_CUDA_DRIVER="/nowhere/libcuda.so")
        self.assertIn("unsupported", said)
        self.assertIn("/nowhere/libcuda.so", said)


class Layouts(unittest.TestCase):
    def test_packed_products_are_the_structure(self):
        """Packed bytes, read back through the ctypes structure, which has the C compiler's layout."""
        self.assertEqual(_engine.GEMM.size, ctypes.sizeof(_structures.Gemm))
        matrices = [(11, 4096 + i, 5 + i, 7 + i, 11 + i, 13 + i, 17 + i) for i in range(5)]
        a, b, c, bias, residual = matrices
        packed = samebit.engine().pack(a, b, c, 23, 0.5, bias, 3, 2, residual, True, 4711, "chain")
        read = _structures.Gemm.from_buffer_copy(packed)
        self.assertEqual(read.struct_bytes, ctypes.sizeof(_structures.Gemm))
        for expected, name in zip(matrices, ("a", "b", "c", "bias", "residual")):
            matrix = getattr(read, name)
            self.assertEqual(tuple(getattr(matrix, field) for field, _ in _structures.Matrix._fields_), expected)
        self.assertEqual((read.batches, read.scale, read.activation, read.gate, read.accumulate, read.rows, read.schedule),
                         (23, 0.5, 3, 2, True, 4711, b"chain"))

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_structures_are_the_headers(self):
        """Size and every field's place, as the C compiler has them."""
        renamed = {"ErrorReport": "sb_error", "String": "sb_string"}
        lines, ours = [], []
        for name, kind in vars(_structures).items():
            if not isinstance(kind, type) or not issubclass(kind, ctypes.Structure):
                continue
            in_c = renamed.get(name) or "sb" + re.sub(r"[A-Z]", lambda letter: "_" + letter.group(0).lower(), name)
            lines.append(f'printf("{in_c} %zu\\n", sizeof({in_c}));')
            ours.append(f"{in_c} {ctypes.sizeof(kind)}")
            for field, _ in kind._fields_:
                of_c = "tensor" if (name, field) == ("Value", "pointer") else field
                lines.append(f'printf("{in_c}.{field} %zu %zu\\n", offsetof({in_c}, {of_c}), '
                             f'sizeof((({in_c} *)0)->{of_c}));')
                place = getattr(kind, field)
                ours.append(f"{in_c}.{field} {place.offset} {place.size}")
        source = ("#include <samebit/samebit.h>\n#include <samebit/logp.h>\n#include <stdio.h>\n"
                  "int main(void) {\n" + "\n".join(lines) + "\n}\n")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "layouts"
            subprocess.run(["cc", "-I", ROOT / "include", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
            theirs = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        self.assertGreater(len(ours), 150)
        self.assertEqual(ours, theirs)

    def test_numbers_are_the_headers(self):
        header = (ROOT / "include/samebit/gemm.h").read_text() + (ROOT / "include/samebit/dtype.h").read_text()
        header += "".join((ROOT / f"include/samebit/{name}.h").read_text() for name in ("isa", "error", "session", "value"))

        def number(name):
            return int(re.search(rf"\b{name}\b *=? *(\d+)", header).group(1))

        for names, prefix in ((_library.DTYPE_NUMBERS, "SB_"), (_library.ISA_NUMBERS, "SB_ISA_"),
                              (_library.ACTIVATION_NUMBERS, "SB_ACTIVATION_"), (_library.GATE_NUMBERS, "SB_GATE_"),
                              (_library.GRAPH_MODE_NUMBERS, "SB_GRAPHS_")):
            for name, value in names.items():
                self.assertEqual(value, number(prefix + (name or "none").upper()), name)
        self.assertEqual((_library.KIND_NONE, _library.KIND_TENSOR, _library.KIND_SEQUENCE),
                         (number("SB_KIND_NONE"), number("SB_KIND_TENSOR"), number("SB_KIND_SEQUENCE")))
        kinds = {"INVALID_ARGUMENT": "ArgumentError", "OUT_OF_MEMORY": "OutOfMemoryError", "IO": "FileError",
                 "INVALID_FILE": "FileFormatError", "INVALID_MODEL": "ModelError", "UNSUPPORTED": "UnsupportedError",
                 "SHAPE": "ShapeError", "DEVICE": "DeviceError", "INTERRUPTED": "Interrupted", "LIMIT": "LimitError"}
        self.assertEqual({number(f"SB_ERROR_{name}"): kind for name, kind in kinds.items()},
                         {status: kind.__name__ for status, kind in _errors.CLASSES.items()})
        self.assertEqual(_structures.MESSAGE_BYTES, number("SB_ERROR_MESSAGE_BYTES"))


class Products(unittest.TestCase):
    def test_bits(self):
        for dtype in ("f16", "bf16"):
            for m, k, n in ((1, 1, 1), (3, 16, 2), (2, 37, 5), (4, 80, 3)):
                a, b = numbers(dtype, m * k, 1), numbers(dtype, k * n, 2)
                expected = product(dtype, m, k, n, a, b)
                left, right = Array(dtype, (m, k), a), Array(dtype, (k, n), b)
                out = samebit.gemm(left, right, out=Array("f32", (m, n)))
                self.assertEqual(out.bits(), bits_of("f32", (m, n), expected))
                rounded = samebit.gemm(left, right, out=Array(dtype, (m, n)))
                self.assertEqual(rounded.bits(), bits_of(dtype, (m, n), [store(dtype, value) for value in expected]))

    def test_strides_and_old_producers(self):
        a, b = numbers("f16", 6 * 20, 3), numbers("f16", 20 * 4, 4)
        plain = samebit.gemm(Array("f16", (6, 20), a), Array("f16", (20, 4), b), out=Array("f32", (6, 4))).bits()
        for versioned in (True, False):
            left = Array("f16", (6, 20), a, strides=(1, 7), offset=5, versioned=versioned)
            right = Array("f16", (20, 4), b, strides=(9, 2), versioned=versioned)
            out = Array("f32", (6, 4), strides=(3, 100), offset=1, versioned=versioned)
            self.assertIs(samebit.gemm(left, right, out=out), out)
            self.assertEqual(out.bits(), plain)
            self.assertEqual((left.exports, right.exports, out.exports), (1, 1, 1))

    def test_bits_in_integers(self):
        a, b = numbers("bf16", 8, 5), numbers("bf16", 8, 6)
        expected = samebit.gemm(Array("bf16", (2, 4), a), Array("bf16", (4, 2), b), out=Array("f32", (2, 2))).bits()
        for kind in ("u16", "s16"):
            integers = [Array(kind, shape) for shape in ((2, 4), (4, 2))]
            for array, values in zip(integers, (a, b)):
                for index, bits in enumerate(bits_of("bf16", (8,), values)):
                    array.memory[index] = bits
            self.assertEqual(samebit.gemm(*integers, out=Array("f32", (2, 2)), dtype="bf16").bits(), expected)
            with self.assertRaisesRegex(samebit.Error, "dtype='bf16'"):
                samebit.gemm(*integers, out=Array("f32", (2, 2)))

    def test_epilogue(self):
        m, k, n = 3, 40, 4
        a, b = numbers("bf16", m * k, 7), numbers("bf16", k * n, 8)
        bias, residual = numbers("f32", n, 9), numbers("bf16", m * n, 10)
        expected = []
        for index, value in enumerate(product("bf16", m, k, n, a, b)):
            value = store("f32", store("f32", value * 0.75) + bias[index % n])
            expected.append(store("bf16", store("f32", (0.0 if value < 0 else value) + residual[index])))
        out = samebit.gemm(Array("bf16", (m, k), a), Array("bf16", (k, n), b), out=Array("bf16", (m, n)), scale=0.75,
                         bias=Array("f32", (n,), bias), activation="relu", residual=Array("bf16", (m, n), residual))
        self.assertEqual(out.bits(), bits_of("bf16", (m, n), expected))

    def test_gates(self):
        m, k, n = 2, 24, 3
        a, gates, values = numbers("f16", m * k, 11), numbers("f16", k * n, 12), numbers("f16", k * n, 13)
        gate = product("f16", m, k, n, a, gates)
        value = product("f16", m, k, n, a, values)
        expected = bits_of("f32", (m, n), [store("f32", (0.0 if g < 0 else g) * v) for g, v in zip(gate, value)])
        stacked = [x for row in range(k) for x in gates[row * n :][:n] + values[row * n :][:n]]
        interleaved = [x for pair in zip(gates, values) for x in pair]
        for name, b in (("stacked", stacked), ("interleaved", interleaved)):
            out = samebit.gemm(Array("f16", (m, k), a), Array("f16", (k, 2 * n), b), out=Array("f32", (m, n)), activation="relu",
                             gate=name)
            self.assertEqual(out.bits(), expected)

    def test_batches(self):
        a, b = numbers("f16", 3 * 2 * 20, 14), numbers("f16", 3 * 20 * 4, 15)
        bias = numbers("f16", 12, 16)
        together = samebit.gemm(Array("f16", (3, 2, 20), a), Array("f16", (3, 20, 4), b), out=Array("f32", (3, 2, 4)),
                              bias=Array("f16", (3, 4), bias)).bits()
        for batch in range(3):
            alone = samebit.gemm(Array("f16", (2, 20), a[batch * 40 :][:40]), Array("f16", (20, 4), b[batch * 80 :][:80]),
                               out=Array("f32", (2, 4)), bias=Array("f16", (4,), bias[batch * 4 :][:4]))
            self.assertEqual(alone.bits(), together[batch * 8 :][:8])
        shared = samebit.gemm(Array("f16", (3, 2, 20), a), Array("f16", (20, 4), b[:80]), out=Array("f32", (3, 2, 4))).bits()
        single = samebit.gemm(Array("f16", (3, 2, 20), a), Array("f16", (1, 20, 4), b[:80]), out=Array("f32", (3, 2, 4))).bits()
        self.assertEqual(shared, single)
        self.assertEqual(shared[8:16], samebit.gemm(Array("f16", (2, 20), a[40:80]), Array("f16", (20, 4), b[:80]),
                                                  out=Array("f32", (2, 4))).bits())

    def test_samples_and_accumulation(self):
        lengths = [5, 0, 16, 23, 1]
        k, m, n = sum(lengths), 3, 2
        a, b = numbers("bf16", m * k, 17), numbers("bf16", k * n, 18)
        expected = bits_of("f32", (m, n), product("bf16", m, k, n, a, b, lengths))
        left, right = Array("bf16", (m, k), a), Array("bf16", (k, n), b)
        rows = samebit.RowMap(lengths)
        self.assertEqual(rows.rows, k)
        self.assertEqual(samebit.gemm(left, right, out=Array("f32", (m, n)), rows=rows).bits(), expected)
        self.assertEqual(samebit.gemm(left, right, out=Array("f32", (m, n)), rows=lengths).bits(), expected)
        self.assertNotEqual(samebit.gemm(left, right, out=Array("f32", (m, n))).bits(), expected)
        total = Array("f32", (m, n))
        for first, last in ((0, 2), (2, 4), (4, 5)):
            at, to = sum(lengths[:first]), sum(lengths[:last])
            part = Array("bf16", (m, to - at), [a[row * k + i] for row in range(m) for i in range(at, to)])
            samebit.gemm(part, Array("bf16", (to - at, n), b[at * n : to * n]), out=total, accumulate=True,
                       rows=lengths[first:last])
        self.assertEqual(total.bits(), expected)

    def test_many_row_maps(self):
        """More than an engine keeps: one that somebody holds stays, and results stay right."""
        a, b = Array("f16", (1, 40), numbers("f16", 40, 19)), Array("f16", (40, 1), numbers("f16", 40, 20))
        where = samebit.Engine("cpu", threads=1)
        held = samebit.RowMap([7, 33])
        expected = samebit.gemm(a, b, out=Array("f32", (1, 1)), rows=held, on=where).bits()
        address = held.address(where)
        for count in range(2 * _engine.MOST_ROW_MAPS):
            samebit.gemm(a, b, out=Array("f32", (1, 1)), rows=[20, 20] + [0] * count, on=where)
        self.assertLessEqual(len(where._row_maps), _engine.MOST_ROW_MAPS)
        self.assertEqual(held.address(where), address)
        self.assertEqual(samebit.gemm(a, b, out=Array("f32", (1, 1)), rows=held, on=where).bits(), expected)

    def test_schedules_and_engines(self):
        a, b = Array("f16", (9, 50), numbers("f16", 450, 21)), Array("f16", (50, 7), numbers("f16", 350, 22))
        expected = samebit.gemm(a, b, out=Array("f32", (9, 7))).bits()
        for engine in (samebit.Engine("cpu"), samebit.Engine("cpu", threads=1), samebit.Engine("cpu", threads=3, isa="scalar")):
            self.assertTrue(engine.schedules)
            for schedule in engine.schedules:
                self.assertEqual(samebit.gemm(a, b, out=Array("f32", (9, 7)), schedule=schedule, on=engine).bits(), expected)

    def test_threads(self):
        a, b = Array("f16", (5, 64), numbers("f16", 320, 23)), Array("f16", (64, 5), numbers("f16", 320, 24))
        expected = samebit.gemm(a, b, out=Array("f32", (5, 5))).bits()
        right = []

        def work():
            for _ in range(50):
                right.append(samebit.gemm(a, b, out=Array("f32", (5, 5))).bits() == expected)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 200)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_fork(self):
        """A child has none of its parent's threads and makes an engine of its own."""
        a, b = Array("f16", (40, 64), numbers("f16", 2560, 25)), Array("f16", (64, 40), numbers("f16", 2560, 26))
        expected = samebit.gemm(a, b, out=Array("f32", (40, 40))).bits()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # rather than wait for ever
            try:
                os._exit(0 if samebit.gemm(a, b, out=Array("f32", (40, 40))).bits() == expected else 1)
            finally:
                os._exit(2)
        status = os.waitpid(child, 0)[1]
        self.assertTrue(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status)
        self.assertEqual(samebit.gemm(a, b, out=Array("f32", (40, 40))).bits(), expected)


class Mistakes(unittest.TestCase):
    """Each has its own message, and changes nothing."""

    def setUp(self):
        self.a = Array("f16", (2, 4), [1.0] * 8)
        self.b = Array("f16", (4, 3), [1.0] * 12)
        self.out = Array("f32", (2, 3), [5.0] * 6)

    def refuse(self, pattern, *arguments, **options):
        with self.assertRaisesRegex(samebit.Error, pattern):
            samebit.gemm(*arguments, **{"out": self.out, **options})
        self.assertEqual(self.out.values(), [5.0] * 6)

    def test_shapes(self):
        self.refuse("columns, and b .* rows: both are K", self.a, self.a)
        self.refuse("dimensions; it takes 2", Array("f16", (4,)), self.b)
        self.refuse("bias has 3 dimensions", self.a, self.b, bias=Array("f16", (1, 1, 3)))
        self.refuse("numbers of batches differ", Array("f16", (2, 2, 4)), Array("f16", (3, 4, 3)))
        self.refuse("out has no batches for 2", Array("f16", (2, 2, 4)), self.b)
        self.refuse("rows", self.a, self.b, rows=[1, 2])
        self.refuse("at least 0", self.a, self.b, rows=[5, -1])
        self.refuse("integers", self.a, self.b, rows=["x"])

    def test_dtypes(self):
        self.refuse("f32", Array("f32", (2, 4)), self.b)
        self.refuse("float64", Array("f64", (2, 4)), self.b)
        self.refuse("dtype", Array("bf16", (2, 4)), self.b)
        self.refuse("'f32' is not 'bf16' or 'f16'", self.a, self.b, dtype="f32")
        self.refuse("out_dtype", self.a, self.b, out_dtype="bf16")

    def test_names(self):
        self.refuse("'swish' is not known; there are .*'silu'", self.a, self.b, activation="swish")
        self.refuse("gate 'both' is not known", self.a, self.b, gate="both")
        self.refuse('no schedule is called "fast"', self.a, self.b, schedule="fast")

    def test_exports(self):
        self.refuse("list, which has no __dlpack__", [1.0], self.b)
        self.refuse("DLPack 2", Array("f16", (2, 4), major=2), self.b)
        self.refuse("vectors of 4", Array("f16", (2, 4), lanes=4), self.b)
        self.refuse("dimensions of vectors", Array("f16", (2, 4), ndim=-1), self.b)
        self.refuse("neither the CPU's nor a CUDA", Array("f16", (2, 4), device_type=7), self.b)
        self.refuse("read-only", self.a, self.b, out=Array("f32", (2, 3), flags=1))
        self.refuse("no way to make an output like Array: pass out=", self.a, self.b, out=None)
        self.refuse("of f32", self.a, self.b, out=None, accumulate=True)

        class Strange(Array):
            def __dlpack__(self, **options):
                return "no capsule"

        self.refuse("capsule is none", Strange("f16", (2, 4)), self.b)

        class Unwilling(Array):
            def __dlpack__(self, **options):
                raise BufferError("not today")

        self.refuse("a cannot be passed on through DLPack: not today", Unwilling("f16", (2, 4)), self.b)

    def test_places(self):
        elsewhere = Array("f16", (4, 3), device_type=2, device_id=1)
        self.refuse("a lies on the CPU and b on CUDA device 1", self.a, elsewhere)
        self.assertEqual(elsewhere.options["stream"], 1)
        with self.assertRaisesRegex(samebit.Error, "'gpu' is not one of Samebit's"):
            samebit.engine("gpu")

    def test_numbers(self):
        self.refuse("cannot be passed on", self.a, self.b, scale="much")
        self.refuse("[Aa]lign", Array("f16", (2, 4), byte_offset=1), self.b)


if __name__ == "__main__":
    unittest.main()
