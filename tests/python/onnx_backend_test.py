"""onnx_backend_test.py [--only TEXT] [--verbose] [--require N]: the standard's own runner, onnx.backend.test.BackendTest,
over samebit.backend. It runs every case that the installed onnx has, on the CPU, and compares by the standard's tolerances.

What is left out: cases that tests/conformance/manifest.txt excludes, with the reason there, and what cannot be run here:
the models of `real`, which are downloaded. Cases with an operator or an element type that Samebit does not have are refused
by its message, which lists them; they are counted apart and named, so that nothing is skipped in silence.

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
    import onnx
    import onnx.backend.test
except ImportError:
    print("SKIPPED: onnx is not installed")
    sys.exit(77)

import samebit
import samebit.backend

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "tests/conformance/manifest.txt"


def excluded():
    """{name of a case: why} of the manifest."""
    reasons = {}
    for line in MANIFEST.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition("\t")
            reasons[name.strip()] = reason.strip()
    return reasons


class Results(unittest.TestResult):
    """Counts by what became of a case."""

    def __init__(self, verbose):
        super().__init__()
        self.verbose = verbose
        self.passed = []
        self.unsupported = {}

    def name(self, test):
        return test.id().rsplit(".", 1)[-1]

    def addSuccess(self, test):
        self.passed.append(self.name(test))

    def addError(self, test, failure):
        if isinstance(failure[1], samebit.UnsupportedError):
            self.unsupported[self.name(test)] = str(failure[1])
        else:
            super().addError(test, failure)
        if self.verbose:
            print(f"{self.name(test)}: {failure[1]}")

    def addFailure(self, test, failure):
        super().addFailure(test, failure)
        if self.verbose:
            print(f"{self.name(test)}: {failure[1]}")


def cases(reasons, only):
    """The runner's tests of the CPU, and how many were left out by the manifest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, while the cases are made
        runner = onnx.backend.test.BackendTest(samebit.backend.SamebitBackend, __name__)
    suite, left_out = unittest.TestSuite(), collections.Counter()
    for group, tests in runner.test_cases.items():
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(tests):
            name = test.id().rsplit(".", 1)[-1]
            if not name.endswith("_cpu") or not re.search(only, name):
                continue
            if group == "OnnxBackendRealModelTest":
                left_out["models that are downloaded"] += 1
            elif name[: -len("_cpu")] in reasons:
                left_out["in tests/conformance/manifest.txt"] += 1
            else:
                suite.addTest(test)
    return suite, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name this matches")
    parser.add_argument("--verbose", action="store_true", help="a line for each case that does not pass")
    parser.add_argument("--require", type=int, default=1, metavar="N", help="exit status 1 when fewer pass")
    arguments = parser.parse_args()
    suite, left_out = cases(excluded(), arguments.only)
    results = Results(arguments.verbose)
    suite.run(results)
    wrong = results.failures + results.errors
    for test, trace in wrong:
        print(f"FAILED {results.name(test)}: {trace.strip().splitlines()[-1]}")
    missing = collections.Counter(re.sub(r"^.*?: ", "", reason) for reason in results.unsupported.values())
    for reason, count in missing.most_common():
        print(f"unsupported, {count} cases: {reason}")
    print(f"onnx {onnx.__version__}: {results.testsRun} cases, {len(results.passed)} passed, {len(wrong)} failed, "
          f"{len(results.unsupported)} with what Samebit does not have; left out: "
          + (", ".join(f"{count} {why}" for why, count in left_out.items()) or "none"))
    return 1 if wrong or len(results.passed) < arguments.require else 0


if __name__ == "__main__":
    sys.exit(main())
