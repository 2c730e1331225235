"""The two engines that the CPU benchmark times, behind one small interface.

An engine loads a model with a number of threads and gives a session. A session is fed once with
named numpy arrays, outside the time that counts; `run()` then is what is timed, and `outputs()`
copies the last run's results to numpy arrays, in the model's order of outputs.
"""

import json
import pathlib
import sys
import tempfile

import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402


class OnnxRuntimeSession:
    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3  # declared shapes that do not hold are a warning in every run
        self.prepare(options)
        self.session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
        self.names = [output.name for output in self.session.get_outputs()]
        self.inputs = {}
        self.results = []

    def prepare(self, options):
        """For those who want other options than the benchmark's."""

    def feed(self, inputs):
        self.inputs = inputs

    def run(self):
        # Inputs are read in place and outputs are handed over: no copy is timed.
        self.results = self.session.run(self.names, self.inputs)

    def outputs(self):
        return dict(zip(self.names, self.results))

    def close(self):
        self.session = None


class ProfiledOnnxRuntimeSession(OnnxRuntimeSession):
    """Records how long each node takes; `end()` gives the events."""

    def prepare(self, options):
        options.enable_profiling = True
        options.profile_file_prefix = str(pathlib.Path(tempfile.gettempdir()) / "profile")

    def end(self):
        path = pathlib.Path(self.session.end_profiling())
        events = json.loads(path.read_text())
        path.unlink()
        return events


class OnnxRuntime:
    name = "onnxruntime"

    def version(self):
        return onnxruntime.__version__

    def load(self, path, threads):
        return OnnxRuntimeSession(path, threads)


class SamebitSession:
    """`device` is None for the CPU; with `resident`, inputs lie on it and outputs stay there."""

    def __init__(self, path, threads, isa="best", device=None, resident=False, graphs="auto"):
        self.model = samebit.load(path, device, isa=isa, device_outputs=resident)
        self.session = self.model.session(threads=threads, graphs=graphs)
        self.device = device if resident else None
        self.inputs = {}
        self.results = {}

    def feed(self, inputs):
        # Arrays, as the peer gets them: both read them where they lie.
        self.inputs = inputs
        if self.device is not None:
            self.inputs = {name: samebit.tensor(array, self.device) for name, array in inputs.items()}

    def run(self):
        self.results = self.session.run(self.inputs)

    def outputs(self):
        return dict(self.results)

    def digest(self):
        """What `samebit run --digest` prints for the last run."""
        return samebit.digest(*self.results.values())

    def close(self):
        self.inputs, self.results = {}, {}
        self.session.close()


class Samebit:
    """`isa` limits the instruction set; the peer takes what the machine has."""

    name = "samebit"

    def __init__(self, path, isa="best"):
        samebit.open_library(path)
        samebit.load  # imports what loading takes, which is no part of a load: the peer's is imported by now
        self.isa = isa

    def version(self):
        return f"{samebit.version()}, numerics {samebit.numerics_version()}, {samebit.isa() if self.isa == 'best' else self.isa}"

    def load(self, path, threads, **options):
        return SamebitSession(path, threads, self.isa, **options)
