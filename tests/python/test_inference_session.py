"""ONNX Runtime's interface, and onnx.backend's, beside ONNX Runtime itself where it is installed."""
import pathlib
import types
import unittest

from models import NETWORK, RECURRENT, made  # noqa: I001

import numpy as np
import onnx

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

import samebit
import samebit.backend

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"


class InferenceSessions(unittest.TestCase):
    def test_run(self):
        session = samebit.InferenceSession(str(DIGITS / "digits.onnx"), providers=["CPUExecutionProvider"])
        images = np.load(DIGITS / "samples.npy")
        results = session.run(None, {"image": images})
        self.assertIsInstance(results, list)
        self.assertEqual(samebit.digest(*results), (DIGITS / "digest.txt").read_text().strip())
        for names in ([], ["probabilities"]):
            self.assertEqual(session.run(names, {"image": images}, None)[0].tobytes(), results[0].tobytes())
        several = samebit.InferenceSession(RECURRENT)
        feed = {"x": np.ones((1, 3), np.float32), "h": np.zeros((1, 3), np.float32)}
        self.assertEqual(len(several.run(None, feed)), 2)
        self.assertEqual(several.run(["hN", "y"], feed)[1].tobytes(), several.run(["y"], feed)[0].tobytes())

    def test_descriptions(self):
        kinds = made("g (float[a,3] f, int64 i, string[n] s, seq(bool) b, optional(float16[k]) o, bfloat16[2] h, double[q] d) "
                     "=> (float[a,3] y) { y = Identity(f) }", opset=18)
        session = samebit.InferenceSession(kinds)
        self.assertEqual([(arg.name, arg.type) for arg in session.get_inputs()], [
            ("f", "tensor(float)"), ("i", "tensor(int64)"), ("s", "tensor(string)"), ("b", "seq(tensor(bool))"),
            ("o", "optional(tensor(float16))"), ("h", "tensor(bfloat16)"), ("d", "tensor(double)")])
        self.assertEqual([arg.shape for arg in session.get_inputs()][:2], [["a", 3], []])
        self.assertEqual([(arg.name, arg.shape) for arg in session.get_outputs()], [("y", ["a", 3])])
        self.assertEqual(session.get_overridable_initializers(), [])

    @unittest.skipIf(onnxruntime is None, "onnxruntime is not installed")
    def test_beside_onnx_runtime(self):
        """What it says of models is what ONNX Runtime says."""
        more = ', producer_name: "maker", domain: "d", model_version: 7, doc_string: "says", metadata_props: ["k": "v"]'
        described = made("named (float[n,4] x, int32[m] z) => (float[n,4] y, int32[m] w) { y = Abs(x) w = Neg(z) }", more=more)
        for contents in (described, RECURRENT, NETWORK, (DIGITS / "digits.onnx").read_bytes()):
            ours = samebit.InferenceSession(contents)
            theirs = onnxruntime.InferenceSession(contents, providers=["CPUExecutionProvider"])
            for get in ("get_inputs", "get_outputs"):
                self.assertEqual([(arg.name, arg.type, arg.shape) for arg in getattr(ours, get)()],
                                 [(arg.name, arg.type, arg.shape) for arg in getattr(theirs, get)()])
            said = theirs.get_modelmeta()
            self.assertEqual(ours.get_modelmeta().version, said.version % (2 ** 63 - 1))  # which there means none
            for field in ("producer_name", "graph_name", "domain", "description", "custom_metadata_map"):
                self.assertEqual(getattr(ours.get_modelmeta(), field), getattr(said, field), field)
            self.assertEqual(ours.get_providers(), theirs.get_providers())
        x = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        ours = samebit.InferenceSession(NETWORK, options)
        self.assertEqual(ours.model._settings.threads, 1)
        self.assertIn("Tanh", [node.op for node in ours.model.inspect().nodes])
        theirs = onnxruntime.InferenceSession(NETWORK, providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(ours.run(None, {"x": x})[0], theirs.run(None, {"x": x})[0], rtol=1e-6)

    def test_options(self):
        options = samebit.SessionOptions()
        options.intra_op_num_threads = 2
        options.execution_mode = "whatever"
        session = samebit.InferenceSession(NETWORK, options)
        self.assertEqual((session.model._settings.threads, session.get_session_options()), (2, options))
        self.assertNotIn("Tanh", [node.op for node in session.model.inspect().nodes])
        level = types.SimpleNamespace(value=0)
        self.assertIn("Tanh", [node.op for node in samebit.InferenceSession(
            NETWORK, types.SimpleNamespace(graph_optimization_level=level)).model.inspect().nodes])

    def test_refusals(self):
        with self.assertRaisesRegex(ValueError, "TensorrtExecutionProvider is none of Samebit's providers"):
            samebit.InferenceSession(NETWORK, providers=["TensorrtExecutionProvider"])
        session = samebit.InferenceSession(NETWORK)
        with self.assertRaisesRegex(TypeError, "a dict of name and value"):
            session.run(None, [np.zeros((1, 8), np.float32)])
        with self.assertRaisesRegex(ValueError, "input x is missing"):
            session.run(None, {})
        with self.assertRaisesRegex(ValueError, "no input q; it has x"):
            session.run(None, {"q": 1})
        for call in (session.io_binding, session.run_with_iobinding):
            with self.assertRaisesRegex(NotImplementedError, "device_outputs=True"):
                call()


class Backends(unittest.TestCase):
    def test_node(self):
        node = onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2)
        a, b = samebit.backend.run_node(node, [np.arange(6, dtype=np.float32)])
        self.assertEqual((a.tolist(), b.tolist()), ([0, 1, 2], [3, 4, 5]))
        a, b = samebit.backend.run_node(onnx.helper.make_node("Split", ["x"], ["a", "b"]), [np.arange(4)], opset_version=13)
        self.assertEqual(b.tolist(), [2, 3])

    def test_model(self):
        model = onnx.load_from_string(RECURRENT)
        prepared = samebit.backend.prepare(model, threads=1)
        results = prepared.run([np.zeros((1, 3), np.float32)] * 2)
        self.assertEqual((results.y.tolist(), results[1].tolist()), ([[0] * 3], [[0] * 3]))
        self.assertEqual(len(samebit.backend.run_model(model, [np.zeros((1, 3), np.float32)] * 2)), 2)

    def test_devices(self):
        self.assertTrue(samebit.backend.supports_device("CPU"))
        self.assertFalse(samebit.backend.supports_device("CUDA:99"))


if __name__ == "__main__":
    unittest.main()
