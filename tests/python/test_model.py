"""Models from Python: calls, values, errors, threads, interrupts."""
import asyncio
import gc
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from unittest import mock

from models import CACHE, ENDLESS, IDENTITY, LOOP, NETWORK, RECURRENT, add_one, made  # noqa: I001

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

import samebit
from samebit import _arrays, _values

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"


DOUBLE = made("g (bfloat16[n] x) => (bfloat16[n] y) { y = Add(x, x) }")


def normal(shape, seed=1, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = samebit.load(DIGITS / "digits.onnx")
        cls.samples = np.load(DIGITS / "samples.npy")
        cls.documented = (DIGITS / "digest.txt").read_text().strip()

    def test_forms(self):
        y = self.model(self.samples)
        self.assertEqual((y.shape, y.dtype), ((20, 10), np.float32))
        for other in (self.model(image=self.samples), self.model.run({"image": self.samples})["probabilities"],
                      self.model.run({"image": self.samples}, ["probabilities"])["probabilities"]):
            self.assertEqual(other.tobytes(), y.tobytes())
        self.assertEqual(samebit.digest(y), self.documented)

    def test_digest(self):
        self.assertEqual(self.model.digest(self.samples), self.documented)
        for options in ({"threads": 1}, {"isa": "scalar"}, {"passes": False}, {"reference": True}):
            other = samebit.load((DIGITS / "digits.onnx").read_bytes(), **options)
            self.assertEqual(other.digest(image=self.samples), self.documented, options)

    def test_descriptions(self):
        (image,), (probabilities,) = self.model.inputs, self.model.outputs
        self.assertEqual((image.name, image.dtype, image.shape, image.kind, image.optional),
                         ("image", "f32", ("batch", 1, 8, 8), "tensor", False))
        self.assertEqual(str(probabilities), "probabilities: f32[batch,10]")
        self.assertEqual((image.numpy_dtype, image.onnx_type), (np.float32, "tensor(float)"))
        self.assertEqual(self.model.metadata.opsets, {"": 17})
        more = ', producer_name: "maker", producer_version: "3", domain: "d", model_version: 7, doc_string: "says", ' \
               'metadata_props: ["k": "v"]'
        said = samebit.load(made("g (float[n] x) => (float[n] y) { y = Abs(x) }", more=more)).metadata
        self.assertEqual((said.producer_name, said.producer_version, said.domain, said.model_version, said.graph_name,
                          said.description, said.properties, said.format_version),
                         ("maker", "3", "d", 7, "g", "says", {"k": "v"}, 8))

    def test_warnings(self):
        self.assertEqual(self.model.warnings, ())
        model = samebit.load(made("g (float[n] x) => (float[9,9] y) { y = Abs(x) }"))
        self.assertEqual(model.warnings, ("value 'y' is declared as f32[9,9], but the nodes make it f32[n]",))
        self.assertEqual(model(np.ones(3, np.float32)).shape, (3,))

    def test_sessions_go_when_nobody_has_them(self):
        """At once, with their threads and memory, not when Python next looks for circles."""
        session = self.model.session()
        session(self.samples)
        gone = weakref.ref(session)
        gc.disable()
        try:
            del session
            self.assertIsNone(gone())
        finally:
            gc.enable()

    def test_unrelated_symbols(self):
        contents = made("g (float[n] x, float[n] y) => (float[k] z) { z = Concat<axis = 0>(x, y) }")
        one, two = np.ones(1, np.float32), np.ones(2, np.float32)
        with self.assertRaisesRegex(ValueError, "input y: extent 2 of dimension 0 is called n, which is 1 elsewhere; if"):
            samebit.load(contents)(one, two)
        for unrelated in ("n", ["n"]):
            self.assertEqual(samebit.load(contents, unrelated=unrelated)(one, two).tolist(), [1, 1, 1])
        with self.assertRaisesRegex(ValueError, "no extent of an input is called 'm'"):
            samebit.load(contents, unrelated=["n", "m"])

    def test_save(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "digits.onnx"
            self.model.save(path)
            self.assertEqual(samebit.load(path).digest(self.samples), self.documented)
            self.model.save(str(path))
            self.assertEqual(os.listdir(folder), ["digits.onnx"])
            with self.assertRaisesRegex(OSError, "nowhere"):
                self.model.save(path.parent / "nowhere" / "digits.onnx")
        with self.assertRaises(TypeError):
            self.model.save(None)

    def test_several_outputs(self):
        model = samebit.load(RECURRENT)
        y, state = model(np.zeros((2, 3), np.float32), h=np.ones((2, 3), np.float32))
        self.assertEqual(y.tobytes(), state.tobytes())
        self.assertEqual(list(model.run({"x": y, "h": state})), ["y", "hN"])
        self.assertEqual(list(model.run({"x": y, "h": state}, ["hN"])), ["hN"])

    def test_closing(self):
        model = samebit.load(IDENTITY)
        y = model(np.arange(5, dtype=np.float32))
        session = model.session()
        model.close()
        del model
        gc.collect()
        self.assertEqual(session(y).tolist(), [0, 1, 2, 3, 4])
        closed = samebit.load(IDENTITY)
        closed(y)
        closed.close()
        for call in (lambda: closed(y), closed.session, closed.inspect, lambda: samebit.State(closed, {"x": "y"})):
            with self.assertRaisesRegex(samebit.Error, "the model has been closed"):
                call()
        session.close()
        self.assertTrue(session.closed)
        with self.assertRaisesRegex(samebit.Error, "closed"):
            session(y)
        self.assertEqual(y.tolist(), [0, 1, 2, 3, 4])


class Values(unittest.TestCase):
    def address_of_input(self, x):
        pointer = _values.tensor_pointer(x)
        tensor = samebit.Tensor(pointer)
        return tensor.address, tensor.strides

    def test_inputs_are_not_copied(self):
        x = normal((6, 8))
        for view in (x, x[1:], x[::2, ::3], x.T, x[::-1, ::-2], np.broadcast_to(x[0], (3, 8))):
            address, strides = self.address_of_input(view)
            self.assertEqual(address, view.ctypes.data)
            self.assertEqual(strides, tuple(stride // 4 for stride in view.strides))
        x.flags.writeable = False
        self.assertEqual(self.address_of_input(x)[0], x.ctypes.data)

    def test_a_run_reads_the_array_itself(self):
        """An Identity's output shows the memory that the run was given: the array's. What the caller gets is a copy,
        since the array is the caller's to write."""
        x = normal((1000,))
        session = samebit.load(IDENTITY).session()
        values, memory = session._run({"x": x})
        try:
            self.assertEqual(session._library.sb_tensor_data(values[0].pointer), x.ctypes.data)
            self.assertEqual(memory, [(x.ctypes.data, x.ctypes.data + x.nbytes)])
        finally:
            _values.release_all(values)
        before = x.copy()
        y = session(x)
        x += 1
        self.assertEqual(y.tobytes(), before.tobytes())

    def test_arrays_alone(self):
        """Arrays of numpy go by structures that a session keeps, whatever shapes and layouts follow each other; other
        values, and arrays that the library cannot look at, go another way. The results are the same."""
        session = samebit.load(NETWORK).session()

        def direct(feed):
            return session._fast_runs.run(session, feed)

        x = normal((6, 16))
        tensor = samebit.tensor(x[:, :8].copy())
        for view in (x[:, :8], x[:1, 8:], x[:, ::2], x[::-1, ::-2], x[:0, :8], np.broadcast_to(x[0, :8], (5, 8)), x[:, :8]):
            y = direct({"x": view})["y"]
            self.assertEqual((y.shape, y.dtype), ((len(view), 4), np.float32))
            self.assertEqual(y.tobytes(), session.run({"x": view.tolist() or np.zeros((0, 8), np.float32)})["y"].tobytes())
            if len(view):
                with self.assertRaises(ValueError):
                    y.flags.writeable = True
        at_odds = np.zeros(8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(1, 8)
        for other in ({"x": tensor}, {"x": x[:, :8].tolist()}, {"x": x[:, :8].view(type("Mine", (np.ndarray,), {}))},
                      {"x": at_odds}, {"x": x[:, :8].astype(">f4")}):
            self.assertIsNone(direct(other))
            self.assertEqual(session.run(other)["y"].shape[1], 4)
        for wrong in ({}, {"z": x}, {"x": None}):
            self.assertIsNone(direct(wrong))
        with self.assertRaisesRegex(samebit.ShapeError, r"input x is f32\[6,16\] where"):
            direct({"x": x})
        with self.assertRaisesRegex(samebit.ShapeError, r"input x is f64\[6,8\] where"):
            direct({"x": x[:, :8].astype(float)})
        self.assertEqual(direct({"x": x[:, :8]})["y"].tobytes(), session.run({"x": tensor})["y"].tobytes())

    def test_outputs_of_other_layouts(self):
        """An output that is a view of another, one of unknown rank, one that is nothing, and one of a type with bits."""
        model = samebit.load(made("g (float[n,m] x, int64[r] shape) => (float[m,n] t, float y, bfloat16[n,m] h) "
                                  "{ s = Add(x, x)  t = Transpose(s)  y = Reshape(s, shape)  h = Cast <to = 16> (x) }"))
        x = normal((3, 4))
        for shape in ([12], [2, 6], [2, 3, 2], [2, 6]):
            t, y, h = model(x, np.array(shape))
            self.assertEqual((t.tobytes(), y.tobytes(), y.shape), ((x + x).T.tobytes(), (x + x).tobytes(), tuple(shape)))
            self.assertEqual(h.tobytes(), samebit.load(made("g (float[n,m] x) => (bfloat16[n,m] h) { h = Cast <to = 16> (x) }"))
                             ([list(map(float, row)) for row in x]).tobytes())

    def test_outputs_are_let_go(self):
        """A hundred outputs of a megabyte each: who kept them would not have the memory."""
        model = samebit.load(add_one(), memory_limit=20_000_000)
        x = normal((250_000,))
        for _ in range(100):
            y = model(x)
        self.assertEqual(y[7], x[7] + 1)

    def test_layouts_that_need_a_copy(self):
        model = samebit.load(add_one())
        x = normal((7,))
        packed = np.zeros(7, dtype=[("flag", "u1"), ("x", "<f4")])
        packed["x"] = x
        for view in (packed["x"], x.astype(">f4")):
            self.assertEqual(model(view).tobytes(), (x + 1).tobytes())

    def test_outputs_are_the_librarys_memory(self):
        model = samebit.load(add_one())
        session = model.session()
        values, memory = session._run({"x": normal((50,))})
        address = session._library.sb_tensor_data(values[0].pointer)
        y = session._results(values, memory)["y"]
        self.assertEqual(y.ctypes.data, address)
        self.assertFalse(y.flags.writeable or y.flags.owndata)
        with self.assertRaises(ValueError):
            y[0] = 1
        before = y.copy()
        del session, model
        gc.collect()
        self.assertEqual(y.tobytes(), before.tobytes())

    def test_arrays_are_let_go(self):
        model = samebit.load(add_one())
        before = len(_values._kept)
        for n in range(20):
            x = normal((n,))
            references = sys.getrefcount(x)
            model(x)
            self.assertEqual(sys.getrefcount(x), references)
        for wrong in (np.zeros((2, 2), np.float32), np.zeros(3)):
            with self.assertRaises(samebit.Error):
                model(wrong)
        self.assertEqual(len(_values._kept), before)

    def test_every_dtype(self):
        names = {"bool": bool, "uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "uint32": "u4", "int32": "i4",
                 "uint64": "u8", "int64": "i8", "float16": "f2", "float": "f4", "double": "f8"}
        for name, dtype in names.items():
            model = samebit.load(made(f"g ({name}[n,m] x) => ({name}[m,n] y) {{ y = Transpose(x) }}"))
            x = normal((3, 5), 2).astype(dtype)
            y = model(x)
            self.assertEqual((y.dtype, y.tobytes()), (x.dtype, x.T.tobytes()), name)
            self.assertEqual(model(x[::2, ::-1]).tobytes(), x[::2, ::-1].T.tobytes())
            for shape in ((0, 5), (3, 0)):
                self.assertEqual(model(np.zeros(shape, dtype)).shape, shape[::-1])

    def test_scalars_and_lists(self):
        model = samebit.load(add_one("float"))
        self.assertEqual(model([1, 2.5]).tolist(), [2, 3.5])
        self.assertEqual(samebit.load(add_one("int64"))([2 ** 40]).tolist(), [2 ** 40 + 1])
        scalar = samebit.load(made("g (float x) => (float y) { y = Neg(x) }"))
        y = scalar(3)
        self.assertEqual((y.shape, float(y)), ((), -3))
        self.assertEqual(scalar(np.float32(2)).tolist(), -2)
        for wrong in ([1.5], [2 ** 70], ["a"], [[1], [2, 3]]):
            with self.assertRaises(samebit.Error):
                samebit.load(add_one("int64"))(wrong)

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_bfloat16(self):
        model = samebit.load(DOUBLE)
        x = normal((9,)).astype(ml_dtypes.bfloat16)
        y = model(x)
        self.assertEqual(y.dtype, ml_dtypes.bfloat16)
        self.assertEqual(y.tobytes(), (x + x).tobytes())
        self.assertEqual(model(x.view(np.uint16)).tobytes(), y.tobytes())

    def test_bfloat16_without_ml_dtypes(self):
        code = ("import sys\nsys.modules['ml_dtypes'] = None\nimport numpy, samebit\n"
                f"m = samebit.load({DOUBLE!r})\n"
                "y = m(numpy.array([0x3f80, 0x4000], numpy.uint16))\nprint(y.dtype, [hex(v) for v in y])\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stdout, "uint16 ['0x4000', '0x4080']\n", done.stderr)

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_small_types(self):
        """Each is told to be what ml_dtypes calls it, and its numbers are those of ml_dtypes."""
        from samebit._dtypes import _TYPES, tables

        known = [name for name, (_, bits, _) in _TYPES.items() if bits == "uint8" and name in tables().names.values()]
        self.assertGreater(len(known), 8)
        for name in known:
            dtype = np.dtype(getattr(ml_dtypes, _TYPES[name][0]))
            x = np.array([0.5, 1, 2, 0]).astype(dtype) if name != "f8e8m0" else np.array([0.5, 1, 2]).astype(dtype)
            tensor = samebit.tensor(x)
            self.assertEqual((tensor.dtype, tensor.address), (name, x.ctypes.data))
            self.assertEqual((tensor.numpy().dtype, tensor.numpy().tobytes()), (dtype, x.tobytes()))
        cast = samebit.load(made("g (float[n] x) => (float8e4m3fn[n] y) { y = Cast <to = 17> (x) }", opset=19))
        x = normal((50,)) * 8
        y = cast(x)
        self.assertEqual((y.dtype, y.tobytes()), (ml_dtypes.float8_e4m3fn, x.astype(ml_dtypes.float8_e4m3fn).tobytes()))

    def test_text(self):
        model = samebit.load(made("g (string[n] x) => (string[n] y) { y = Identity(x) }"))
        for given in (["a", "äö", ""], np.array(["a", "äö", ""]), np.array(["a", "äö", ""], object)):
            y = model(given)
            self.assertEqual((y.dtype, y.tolist()), (object, ["a", "äö", ""]))
        self.assertEqual(model(np.array([], object)).tolist(), [])
        with self.assertRaisesRegex(TypeError, "element of a tensor of text is int"):
            model(np.array(["a", 1], object))

    def test_sequences(self):
        model = samebit.load(made("g (seq(float[n]) s, float[m] x) => (seq(float[k]) t, int64 count) "
                                  "{ t = SequenceInsert(s, x)  count = SequenceLength(t) }"))
        x = normal((3,))
        given = [normal((2,)), normal((5,), 4)]
        t, count = model(given, x)
        self.assertEqual(int(count), 3)
        self.assertEqual([item.tobytes() for item in t], [item.tobytes() for item in [*given, x]])
        x[:] = 0
        self.assertNotEqual(t[2].tobytes(), x.tobytes())  # a copy of what was the caller's
        t, count = model([], x)
        self.assertEqual((len(t), int(count)), (1, 1))
        self.assertEqual(samebit.digest(t), model.session().run({"s": [], "x": x}) and samebit.digest([x]))
        with self.assertRaisesRegex(TypeError, "input s is a sequence: pass a list"):
            model(x, x)

    def test_optional(self):
        model = samebit.load(made("g (optional(float[n]) x) => (bool y) { y = OptionalHasElement(x) }", opset=18))
        self.assertTrue(model.inputs[0].optional)
        self.assertEqual([bool(model(None)), bool(model(normal((2,))))], [False, True])


class Mistakes(unittest.TestCase):
    """Each has the library's sentence, or one that names the input."""

    def refuse(self, kind, pattern, call):
        with self.assertRaisesRegex(samebit.Error, pattern) as raised:
            call()
        self.assertIsInstance(raised.exception, kind)
        return raised.exception

    def test_inputs(self):
        model = samebit.load(NETWORK)
        x = normal((2, 8))
        self.refuse(ValueError, "has no input z; it has x", lambda: model(z=x))
        self.refuse(ValueError, "input x is missing: the model takes x: f32", lambda: model())
        self.refuse(TypeError, "takes 1 inputs .x., and 2 are given", lambda: model(x, x))
        self.refuse(TypeError, "input x is given twice", lambda: model(x, x=x))
        wrong = self.refuse(ValueError, r"input x is f64\[2,8\] where the model takes f32", lambda: model(x.astype(float)))
        self.assertEqual(wrong.status, "shape mismatch")
        self.refuse(ValueError, r"input x is f32\[8\] where", lambda: model(x[0]))
        self.refuse(ValueError, r"input x is f32\[2,7\] where", lambda: model(x[:, 1:]))
        self.refuse(TypeError, "input x is object; pass an array", lambda: model(object()))
        self.refuse(TypeError, "complex128, which Samebit does not have", lambda: model(x.astype(complex)))
        self.refuse(ValueError, "has no output z; it has y", lambda: model.run({"x": x}, ["z"]))
        self.refuse(ValueError, "rank 13", lambda: model(np.zeros((1,) * 13, np.float32)))
        self.assertEqual(model(x).shape, (2, 4))

    def test_models(self):
        self.refuse(OSError, "nowhere.onnx", lambda: samebit.load("nowhere.onnx"))
        self.refuse(ValueError, "byte 0", lambda: samebit.load(b"no model"))
        self.refuse(TypeError, "from a path or from bytes", lambda: samebit.load(5))
        self.refuse(NotImplementedError, "Adagrad", lambda: samebit.load(
            (ROOT / "tests/python").exists() and made("g (float[n] x) => (float[n] y) { y = Adagrad(x) }")))
        self.refuse(ValueError, "the isa 'sse' is not known", lambda: samebit.load(NETWORK, isa="sse"))
        self.refuse(ValueError, "device 'gpu' is not one", lambda: samebit.load(NETWORK, device="gpu"))
        self.refuse(TypeError, "there is no option colour; there are", lambda: samebit.load(NETWORK).session(colour=1))
        self.refuse(ValueError, "no entry graph other", lambda: samebit.load(NETWORK, entry="other"))

    def test_limits(self):
        looping = samebit.load(LOOP, iteration_limit=50)
        x = np.zeros(4, np.float32)
        self.assertEqual(looping(50, x).tolist(), [0] * 4)
        self.refuse(samebit.LimitError, "50", lambda: looping(51, x))
        small = samebit.load(add_one(), memory_limit=100_000)
        self.refuse(MemoryError, "limit", lambda: small(np.zeros(10 ** 6, np.float32)))
        self.assertEqual(small(np.zeros(3, np.float32)).tolist(), [1] * 3)


class Threads(unittest.TestCase):
    def test_runs_overlap(self):
        """One run never ends by itself, and others are done meanwhile."""
        model = samebit.load(LOOP, threads=1)
        session = model.session()
        ended = []

        def endless():
            try:
                session(ENDLESS, np.zeros(4, np.float32))
            except samebit.Interrupted as failure:
                ended.append(failure.status)

        thread = threading.Thread(target=endless)
        thread.start()
        try:
            for count in range(5):
                self.assertEqual(model(count, np.ones(4, np.float32)).tolist(), [2.0 ** count] * 4)
            self.assertTrue(thread.is_alive())
            self.assertEqual(ended, [])
        finally:
            session.interrupt()
            thread.join(30)
        self.assertEqual(ended, ["interrupted"])
        self.assertEqual(session(1, np.ones(4, np.float32)).tolist(), [2] * 4)

    def test_ten_threads_share_a_model(self):
        model = samebit.load(NETWORK, threads=1)
        arrays = [normal((1 + seed % 4, 8), seed) for seed in range(40)]
        expected = [model(x).tobytes() for x in arrays]
        right = []
        together = threading.Barrier(10)

        def work(first):
            together.wait()
            for turn in range(60):
                index = (first * 7 + turn) % len(arrays)
                right.append(model(arrays[index]).tobytes() == expected[index])

        threads = [threading.Thread(target=work, args=(first,)) for first in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 600)
        self.assertLessEqual(len(model._pool.idle), 10)

    def test_threads_take_turns_in_one_session(self):
        session = samebit.load(NETWORK).session(threads=1)
        x = normal((3, 8))
        expected = session(x).tobytes()
        right = []
        threads = [threading.Thread(target=lambda: right.extend(session(x).tobytes() == expected for _ in range(50)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 200)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_fork(self):
        model = samebit.load(NETWORK, threads=2)
        x = normal((3, 8))
        expected = model(x).tobytes()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                os._exit(0 if model(x).tobytes() == expected else 1)
            finally:
                os._exit(2)
        status = os.waitpid(child, 0)[1]
        self.assertTrue(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status)
        self.assertEqual(model(x).tobytes(), expected)


class Interrupts(unittest.TestCase):
    def interrupted_after(self, session, seconds=0.2):
        """How long after Ctrl-C a run that never ends by itself was ended by KeyboardInterrupt."""
        sent = []

        def send():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(seconds, send)
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            session(ENDLESS, np.zeros(4, np.float32))
        taken = time.monotonic() - sent[0]
        timer.join()
        return taken

    def test_ctrl_c(self):
        model = samebit.load(LOOP)
        session = model.session(threads=1)
        self.assertLess(self.interrupted_after(session), 5)
        self.assertEqual(session(1, np.ones(4, np.float32)).tolist(), [2] * 4)  # not the next run too
        self.assertLess(self.interrupted_after(model), 5)
        self.assertEqual(model(1, np.ones(4, np.float32)).tolist(), [2] * 4)
        self.assertEqual(signal.set_wakeup_fd(-1), -1)

    def test_ctrl_c_behind_brief_runs(self):
        """Runs that take the same again are not watched any more when they are brief; one of which the data decide, always."""
        session = samebit.load(LOOP).session(threads=1)
        for _ in range(5):
            self.assertEqual(session(1, np.ones(4, np.float32)).tolist(), [2] * 4)
        self.assertFalse(_arrays._takes_the_same_again(session))
        self.assertLess(self.interrupted_after(session), 5)
        session = samebit.load(NETWORK).session(threads=1)
        expected = [session(normal((rows, 8))).tobytes() for rows in (3, 2)]  # rows of 2 are described now
        self.assertTrue(_arrays._takes_the_same_again(session))
        watched = []

        def watch(session, run, *arguments):
            watched.append(run)
            return run(*arguments)

        with mock.patch.object(_arrays, "interruptible", watch):
            for brief, rows, count in ((True, 2, 0), (False, 2, 1), (True, 3, 2)):  # of other shapes nothing is known yet
                session._fast_runs.brief = brief
                self.assertEqual(session(normal((rows, 8))).tobytes(), expected[3 - rows])
                self.assertEqual(len(watched), count)

    def test_a_handler_of_the_programs_own(self):
        session = samebit.load(LOOP).session(threads=1)
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append("handled"))
        try:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(samebit.Interrupted):
                session(ENDLESS, np.zeros(4, np.float32))
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(seen, ["handled"])

    def test_asyncio_still_sees_signals(self):
        model = samebit.load(NETWORK)

        async def main():
            caught = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, caught.set)
            model(normal((2, 8)))
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.wait_for(caught.wait(), 10)

        asyncio.run(main())


class States(unittest.TestCase):
    def setUp(self):
        self.model = samebit.load(RECURRENT)
        self.frames = [normal((2, 3), seed) for seed in range(6)]

    def by_hand(self, frames, h=None):
        h = np.zeros((2, 3), np.float32) if h is None else h
        results = []
        for x in frames:
            y, h = self.model(x, h)
            results.append(y.tobytes())
        return results

    def test_recurrence(self):
        session = self.model.session(state={"h": "hN"}, symbols={"b": 2})
        self.assertEqual([session.run({"x": x})["y"].tobytes() for x in self.frames], self.by_hand(self.frames))
        self.assertIsNone(session.run({"x": self.frames[0]})["hN"])
        state = session.state
        self.assertEqual(state.variables["h"].version, 7)
        self.assertEqual((list(state), len(state), "h" in state), (["h"], 1, True))
        state.reset()
        self.assertEqual((state["h"].tolist(), state.variables["h"].version), ([[0] * 3] * 2, 0))
        state["h"] = np.full((2, 3), 0.5, np.float32)
        self.assertEqual(session(self.frames[0])[0].tobytes(),
                         self.by_hand(self.frames[:1], np.full((2, 3), 0.5, np.float32))[0])
        self.assertEqual(state.counters().runs, 8)
        with self.assertRaisesRegex(TypeError, "cannot be passed on"):
            state.reset(slot="first")
        with self.assertRaisesRegex(ValueError, "no variable x; it has h"):
            state["x"]
        with self.assertRaisesRegex(ValueError, "h"):
            state["h"] = np.zeros((3, 3), np.float32)

    def test_files_and_slots(self):
        pairs = [samebit.Pair("h", "hN", slot_axis=0, initial=np.full((3,), 0.25, np.float32))]
        state = samebit.State(self.model, pairs, symbols={"b": 2})
        session = self.model.session(state=state)
        self.assertEqual(state["h"].tolist(), [[0.25] * 3] * 2)
        session(self.frames[0])
        path = pathlib.Path(tempfile.gettempdir()) / f"samebit-test-{os.getpid()}.state"
        try:
            state.save(path)
            kept = state["h"]
            session(self.frames[1])
            other = samebit.State(self.model, pairs, symbols={"b": 2})
            other.restore(path)
            self.assertEqual(other["h"].tobytes(), kept.tobytes())
            state.save(path, slot=1)
            other.restore(path, slot=0)
            self.assertEqual(other["h"][0].tobytes(), state["h"][1].tobytes())
        finally:
            path.unlink(missing_ok=True)
        other.copy_from(state)
        self.assertEqual(other["h"].tobytes(), state["h"].tobytes())
        other.copy_slot(0, 1)
        self.assertEqual(other["h"][1].tobytes(), state["h"][0].tobytes())
        other.reset(slot=1)
        self.assertEqual(other["h"][1].tolist(), [0.25] * 3)
        with self.assertRaisesRegex(ValueError, "slot"):
            other.reset(slot=7)

    def test_capacity(self):
        model = samebit.load(CACHE)
        session = model.session(state={"k": "kN"}, capacity={"past": (4, 16)})
        rows = normal((1, 9, 2), 5)
        cache = np.zeros((1, 0, 2), np.float32)
        at = 0
        for count in (3, 1, 1, 4):
            x = rows[:, at : at + count]
            expected, cache = model(x, cache)
            self.assertEqual(session.run({"x": x})["y"].tobytes(), expected.tobytes())
            at += count
        self.assertEqual(session.state.extent("past"), 9)
        self.assertEqual(session.exact_plans(), "")
        session.state.trim("past", 4)
        self.assertEqual(session.state["k"].tobytes(), rows[:, :4].tobytes())
        with self.assertRaisesRegex(samebit.Error, "past"):
            session.run({"x": normal((1, 13, 2))})


class Looking(unittest.TestCase):
    def setUp(self):
        self.x = normal((3, 8))
        self.model = samebit.load(NETWORK, passes=False)

    def test_inspect(self):
        graph = self.model.inspect(batch=5)
        self.assertEqual([node.op for node in graph.nodes if node.kernel != "constant"],
                         ["MatMul", "Mul", "Tanh", "Sigmoid"])
        product = graph.nodes[0] if graph.nodes[0].op == "MatMul" else graph.nodes[1]
        self.assertEqual((product.flop_count, graph.parameters), (2 * 5 * 8 * 4, 33))
        self.assertIn("f32[5,4]", [value.fact for value in graph.values])
        self.assertIn("batch", self.model.inspect().flops)
        with self.assertRaises(samebit.Error):
            self.model.inspect(batch=-1)

    def test_compare(self):
        recorded = self.model.record({"x": self.x})
        self.assertLessEqual({"product", "scaled", "bounded", "y"}, set(recorded))
        findings = self.model.compare({"x": self.x}, recorded)
        self.assertFalse(findings)
        self.assertEqual((findings.first, findings.missing), (None, []))
        self.assertFalse(self.model.compare({"x": self.x}))
        scaled = recorded["scaled"].copy()
        scaled[1, 2] = np.nextafter(scaled[1, 2], np.float32(100))
        planted = {**recorded, "scaled": scaled, "nowhere": scaled}
        findings = self.model.compare({"x": self.x}, planted)
        self.assertEqual((findings.first.value, findings.first.op, findings.missing), ("scaled", "Mul", ["nowhere"]))
        self.assertEqual((findings.first.comparison.different, findings.first.comparison.worst,
                          findings.first.comparison.worst_ulps), (1, 6, 1))
        self.assertIn("1 of 12 elements differ", str(findings))
        self.assertFalse(self.model.compare({"x": self.x}, planted, relative=1e-5))
        alone = self.model.compare({"x": self.x}, {"scaled": recorded["scaled"] * 0, "bounded": recorded["bounded"]})
        flowing = self.model.compare({"x": self.x}, {"scaled": recorded["scaled"] * 0, "bounded": recorded["bounded"]},
                                     cumulative=True)
        self.assertEqual(([f.value for f in alone.wrong], [f.value for f in flowing.wrong]),
                         (["scaled", "bounded"], ["scaled"]))
        odd = self.model.compare({"x": self.x}, {"scaled": recorded["scaled"].astype(float)})
        self.assertIn("f64", odd.first.why)

    def test_profile(self):
        profile = self.model.profile({"x": self.x}, runs=3, warmup=1)
        self.assertEqual({node.calls for node in profile.nodes}, {3})
        self.assertEqual(set(profile.operators()), {"MatMul", "Mul", "Tanh", "Sigmoid"})
        self.assertGreater(profile.run_ns, 0)
        self.assertIn("ms a run", str(profile))

    def test_placement(self):
        placed = self.model.placement({"x": self.x})
        self.assertEqual([node.op for node in placed], ["MatMul", "Mul", "Tanh", "Sigmoid"])
        self.assertFalse(any(node.on_device for node in placed))
        self.assertEqual(self.model.session().placement(), [])

    def test_an_observer_that_fails(self):
        def visit(event):
            raise ZeroDivisionError("mine")

        seen = []
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            self.model.session(observer=visit)(self.x)
        self.model.session(observer=seen.append)(self.x)
        self.assertEqual([event.op for event in seen if event.kernel != "constant"], ["MatMul", "Mul", "Tanh", "Sigmoid"])
        self.assertTrue(all(event.end_ns >= event.start_ns > 0 for event in seen))

    def test_arrays(self):
        found = samebit.compare(np.array([1, 2.0]), np.array([1, 2.5]), absolute=1)
        self.assertTrue(found)
        self.assertEqual((found.elements, found.different, found.outside, found.worst_error), (2, 1, 0, 0.5))
        self.assertFalse(samebit.compare(self.x, self.x))
        with self.assertRaises(samebit.ShapeError):
            samebit.compare(self.x, self.x[0])
        self.assertEqual(samebit.digest(self.x), samebit.digest(self.x.copy()))
        self.assertNotEqual(samebit.digest(self.x), samebit.digest(self.x[:2]))

    def test_queue(self):
        session = self.model.session(queue_depth=2)
        runs = [session.enqueue({"x": self.x}), session.enqueue({"x": self.x * 2})]
        with self.assertRaisesRegex(ValueError, "queue"):
            session.enqueue({"x": self.x})
        self.assertTrue(session.poll(runs[1]))
        self.assertEqual([session.wait(run)["y"].tobytes() for run in runs],
                         [self.model(x).tobytes() for x in (self.x, self.x * 2)])
        self.assertTrue(session.last_run().synchronous)
        self.assertEqual(session.graphs().segments, 0)

    def test_tensors(self):
        """samebit.Tensor through DLPack, both ways of exporting, and back without a copy."""
        pointer = _values.tensor_pointer(self.x[:, ::2])
        tensor = samebit.Tensor(pointer)
        self.assertEqual((tensor.shape, tensor.dtype, tensor.strides), ((3, 4), "f32", (8, 2)))
        imported = np.from_dlpack(tensor)
        self.assertEqual(imported.ctypes.data, self.x.ctypes.data)
        self.assertEqual(imported.tobytes(), self.x[:, ::2].tobytes())
        for version in ({}, {"max_version": (1, 0)}):
            capsule = tensor.__dlpack__(**version)
            again = samebit.Tensor(_values._take_over(capsule, None))
            self.assertEqual((again.address, again.strides), (tensor.address, tensor.strides))
            del again, capsule
            tensor.__dlpack__(**version)  # which nobody takes anything from
        self.assertEqual(self.model.run({"x": samebit.Tensor(_values.tensor_pointer(self.x))})["y"].tobytes(),
                         self.model(self.x).tobytes())
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=True)


if __name__ == "__main__":
    unittest.main()
