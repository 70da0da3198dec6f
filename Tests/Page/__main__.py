"""Starts the cluster and the browser, runs the tests, and stops everything."""

import argparse
import os
import pathlib
import signal
import sys
import time
import unittest

from .browser import Browser
from .case import World
from .cluster import Cluster
from .soak import LEAST_MINUTES, PACE, keep, soak

# In this order: what leaves much behind in the coordinator comes last.
MODULES = ("login", "views", "links", "access", "graph_actions", "operation_actions",
           "cluster_actions", "live", "windows", "timeline", "picture", "narrow", "trace", "hostile",
           "large")


class TimedResult(unittest.TextTestResult):
    """Says after each test how long it took."""

    def startTest(self, test):
        self.since = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.stream.writeln(f"    {time.monotonic() - self.since:.1f} s")


def main():
    """The whole run."""
    parser = argparse.ArgumentParser(prog="check-page")
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="DIR",
                        help="save every view there, light and dark")
    parser.add_argument("--limits", action="store_true",
                        help="fail if views of a graph of 100,000 operations take too long; for "
                             "release builds")
    parser.add_argument("--million", action="store_true",
                        help="also test a graph of a million operations; for release builds")
    parser.add_argument("--soak", type=int, metavar="MINUTES",
                        help="run no test: keep pages open for so many minutes while graphs come "
                             "and go, and fail if what they take grows")
    parser.add_argument("--pace", type=float, default=PACE, metavar="SECONDS",
                        help=f"with --soak: between two small graphs; {PACE} without")
    parser.add_argument("tests", nargs="*", metavar="TEST",
                        help="only the tests whose names contain one of these texts")
    arguments = parser.parse_args()
    if arguments.soak is not None and arguments.soak < LEAST_MINUTES:
        parser.error(f"--soak takes at least {LEAST_MINUTES} minutes")
    if not 0 < arguments.pace <= 60:
        parser.error("--pace takes up to 60 seconds")
    # A signal must not leave a coordinator or a browser behind. A test takes any other exception,
    # SystemExit too, for a failure of its own, and the run would go on.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    files = {path.stem.removeprefix("test_")
             for path in pathlib.Path(__file__).parent.glob("test_*.py")}
    if files != set(MODULES):
        sys.exit(f"MODULES and the files of tests differ: {files ^ set(MODULES)}")
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    World.screenshots = arguments.screenshots
    World.limits = arguments.limits
    World.million = arguments.million
    World.axe = pathlib.Path(os.environ["OPERON_PAGE_AXE"]).read_text(encoding="utf-8")
    scratch = os.environ["OPERON_PAGE_SCRATCH"]
    World.cluster = Cluster(scratch, os.environ["OPERON_BIN"], os.environ["OPERON_PAGE_BROKER"],
                            os.environ["OPERON_PAGE_WORKERS_BROKER"],
                            keep=str(keep(arguments.pace)) if arguments.soak else None)
    try:
        World.cluster.start_coordinator()
        World.cluster.start_worker("worker-a", "--slots", "4", "--label", "region=eu",
                                   "--resources", "licences=3")
        World.cluster.start_worker("worker-b", "--slots", "4")
        World.browser = Browser(World.cluster.url, scratch)
        if arguments.soak:
            return soak(arguments.soak, arguments.pace)
        loader = unittest.TestLoader()
        loader.testNamePatterns = [f"*{text}*" for text in arguments.tests] or None
        suite = loader.loadTestsFromNames([f"Page.test_{name}" for name in MODULES])
        result = unittest.TextTestRunner(verbosity=2, resultclass=TimedResult).run(suite)
    finally:
        if World.browser:
            World.browser.quit()
        World.cluster.stop()
    if not result.testsRun:
        sys.exit("there is no such test")
    return 0 if result.wasSuccessful() else 1


sys.exit(main())
