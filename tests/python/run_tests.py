"""run_tests.py MODULE…: runs modules of unittest. Exit status 77 when nothing ran, because all of them need a package
that is not installed."""
import sys
import unittest

if __name__ == "__main__":
    suite = unittest.TestSuite()
    try:
        for name in sys.argv[1:]:
            suite.addTest(unittest.defaultTestLoader.loadTestsFromName(name))
    except unittest.SkipTest as reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.wasSuccessful() and result.testsRun == 0:
        print("no tests found")
        sys.exit(1)
    sys.exit(not result.wasSuccessful())
