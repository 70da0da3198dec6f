"""What all tests have: the cluster, the browser, and a look at the console after each test."""

import re
import unittest


class World:
    """The one cluster and the one browser of a run; `__main__` fills it in."""

    cluster = None
    browser = None
    axe = None
    screenshots = None
    limits = False
    million = False


class PageCase(unittest.TestCase):
    """A test of the page. It fails if the browser complained of anything it had not expected."""

    # Lines that a test of this class provokes, as regular expressions.
    expected = ()
    maxDiff = None

    @property
    def cluster(self):
        """The coordinator and the workers."""
        return World.cluster

    @property
    def api(self):
        """The API, with the token that may do everything."""
        return World.cluster.api

    @property
    def page(self):
        """The browser."""
        return World.browser

    def setUp(self):
        self.allowed = [re.compile(text) for text in self.expected]
        self.heard = []
        self.page.complaints()
        self.addCleanup(self.check_console)

    def allow(self, *patterns):
        """Allows lines of the browser's console that this test provokes."""
        self.allowed += [re.compile(text) for text in patterns]

    def allow_status(self, *statuses):
        """Allows the browser's own line for an answer with these statuses."""
        for status in statuses:
            self.allow(rf"/v1/\S* - Failed to load resource: .* status of {status}")

    def check_console(self):
        """Fails if the browser complained, or if anything ran that a client had sent."""
        self.heard += self.page.complaints()
        bad = [line for line in self.heard
               if not any(pattern.search(line) for pattern in self.allowed)]
        self.assertEqual(bad, [], "the browser complained")
        self.assertEqual(self.page.script("return window.__ran ?? []"), [],
                         "text of a client was run as a script")

    def done(self, text):
        """Waits until the status region says that something was done."""
        self.page.wait_text("#status", text)

    def refused(self, text):
        """Waits until an open question says why the coordinator refused."""
        self.page.wait_text("dialog[open] [data-test=refused]", text)

    def until(self, what, condition):
        """Waits until the coordinator agrees."""
        return self.page.wait(what, condition)
