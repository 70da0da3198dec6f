"""Runs the tests; scripts/check-observability starts the broker."""

import signal
import sys
import unittest

MODULES = ("traces", "alerts")


def main():
    """The whole run, or the tests whose names contain one of the arguments."""
    # A signal must not leave a process behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{text}*" for text in sys.argv[1:]] or None
    suite = loader.loadTestsFromNames([f"Observability.test_{name}" for name in MODULES])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.testsRun:
        sys.exit("there is no such test")
    return 0 if result.wasSuccessful() else 1


sys.exit(main())
