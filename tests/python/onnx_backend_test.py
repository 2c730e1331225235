"""onnx_backend_test.py [--only TEXT] [--verbose] [--require N]: the standard's own runner, onnx.backend.test.BackendTest,
over samebit.backend. It runs every case that the installed onnx has, on the CPU, and compares by the standard's tolerances.

All cases are run but the models of `real`, which are downloaded. A case that fails is an error, unless the manifests of
tests/conformance say why it cannot pass (recorded random numbers, say); those are counted apart. So are cases with an operator or
an element type that Samebit does not have, which it refuses by name: what is missing is printed.

Exit status 1 when a case fails, or fewer than N pass.
"""

import argparse
import collections
import pathlib
import re
import sys
import unittest
import warnings

try:
    import numpy
    import onnx
    import onnx.backend.test
except ImportError:
    print("SKIPPED: onnx is not installed")
    sys.exit(77)

import samebit
import samebit.backend

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = sorted((ROOT / "tests/conformance").glob("manifest*.txt"))


class Runner(onnx.backend.test.BackendTest):
    """The standard's runner, which compares sequences too.

    Its own comparison calls itself for each item of a sequence, as for a list of outputs: it asks the recorded item for its
    length, which a scalar has not, whatever a backend returns (onnx's own backend leaves test_loop16_seq_none out), and takes
    the rows of others one by one. Here an item is an array like any output.
    """

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        if isinstance(ref_outputs, numpy.ndarray):
            ref_outputs, outputs = [ref_outputs], [outputs]
        super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir=model_dir)


def explained():
    """{name of a case: why it cannot pass} of the manifests."""
    reasons = {}
    for manifest in MANIFESTS:
        for line in manifest.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, reason = line.partition("\t")
                reasons[name.strip()] = reason.strip()
    return reasons


class Results(unittest.TestResult):
    """Counts by what became of a case."""

    def __init__(self, reasons, verbose):
        super().__init__()
        self.reasons = reasons
        self.verbose = verbose
        self.passed = []
        self.unsupported = {}
        self.explained = {}

    def name(self, test):
        return test.id().rsplit(".", 1)[-1]

    def addSuccess(self, test):
        self.passed.append(self.name(test))

    def note(self, test, failure, otherwise):
        name = self.name(test)
        reason = self.reasons.get(name[: -len("_cpu")])
        if isinstance(failure[1], samebit.UnsupportedError):
            self.unsupported[name] = str(failure[1])
        elif reason is not None:
            self.explained[name] = reason
        else:
            otherwise(test, failure)
        if self.verbose:
            print(f"{name}: {failure[1]}")

    def addError(self, test, failure):
        self.note(test, failure, super().addError)

    def addFailure(self, test, failure):
        self.note(test, failure, super().addFailure)


def cases(only):
    """The runner's tests of the CPU, and how many are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, while the cases are made
        runner = Runner(samebit.backend.SamebitBackend, __name__)
    suite, left_out = unittest.TestSuite(), 0
    for group, tests in runner.test_cases.items():
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(tests):
            name = test.id().rsplit(".", 1)[-1]
            if not name.endswith("_cpu") or not re.search(only, name):
                continue
            if group == "OnnxBackendRealModelTest":
                left_out += 1
            else:
                suite.addTest(test)
    return suite, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name this matches")
    parser.add_argument("--verbose", action="store_true", help="a line for each case that does not pass")
    parser.add_argument("--require", type=int, default=1, metavar="N", help="exit status 1 when fewer pass")
    arguments = parser.parse_args()
    suite, left_out = cases(arguments.only)
    results = Results(explained(), arguments.verbose)
    suite.run(results)
    wrong = results.failures + results.errors
    for test, trace in wrong:
        print(f"FAILED {results.name(test)}: {trace.strip().splitlines()[-1]}")
    missing = collections.Counter(re.sub(r"^.*?: ", "", reason) for reason in results.unsupported.values())
    for reason, count in missing.most_common():
        print(f"unsupported, {count} cases: {reason}")
    for reason, count in collections.Counter(results.explained.values()).most_common():
        print(f"explained, {count} cases: {reason}")
    print(f"onnx {onnx.__version__}: {results.testsRun} cases, {len(results.passed)} passed, {len(wrong)} failed, "
          f"{len(results.explained)} that the manifests explain, {len(results.unsupported)} with what Samebit does not have; "
          f"{left_out} models that are downloaded were not run")
    return 1 if wrong or len(results.passed) < arguments.require else 0


if __name__ == "__main__":
    sys.exit(main())
