"""Several windows of the page at once, and operations that are wider than a window."""

from .browser import hook
from .case import PageCase

# A browser opens six connections to a coordinator. With so many windows, each with a stream and the
# log of an operation, there would be none left.
WINDOWS = 7


class WindowTests(PageCase):
    """Many windows are open, and all of them can be seen."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")
        self.windows = [self.page.driver.current_window_handle]
        self.addCleanup(self.close_windows)

    def close_windows(self):
        for window in self.windows[1:]:
            self.page.driver.switch_to.window(window)
            self.heard += self.page.complaints()
            self.page.driver.close()
        self.page.driver.switch_to.window(self.windows[0])

    def open_window(self, route):
        self.page.driver.switch_to.new_window("window")
        self.windows.append(self.page.driver.current_window_handle)
        self.page.open(route)

    def test_every_window_is_live_and_takes_commands(self):
        names = [f"hand{number}" for number in range(WINDOWS)]
        graph = self.api.submit("seen in many windows", {
            name: {"external": True} for name in names})["id"]
        self.page.go(f"#/graphs/{graph}/operations/{names[0]}")
        self.page.wait_title(names[0])
        for name in names[1:]:
            self.open_window(f"#/graphs/{graph}/operations/{name}")
            self.page.wait_title(name)
            self.page.wait_text(".heading .state", "executing")
        self.assertEqual(self.page.script("return document.visibilityState"), "visible")
        # The last window has a connection for nothing but requests: it says so, and is live. What
        # has finished needs no more than a request.
        self.page.wait_has('#log-phase[data-phase="waiting"]')
        self.api.post(f"graphs/{graph}/operations/{names[-1]}/complete", {"outcome": "succeeded"})
        self.page.wait_text(".heading .state", "succeeded")
        self.page.wait_has('#log-phase[data-phase="ended"]')
        for window, name in zip(self.windows[:-1], names):
            self.page.driver.switch_to.window(window)
            self.page.click(hook("cancel"))
            self.page.answer("cancel-dialog")
            self.done("Cancelled")
            self.page.wait_text(".heading .state", "cancelled")

    def test_a_window_takes_the_place_of_one_that_was_closed(self):
        names = [f"hand{number}" for number in range(WINDOWS)]
        graph = self.api.submit("seen in fewer windows", {
            name: {"external": True} for name in names})["id"]
        for name in names[1:]:
            self.open_window(f"#/graphs/{graph}/operations/{name}")
            self.page.wait_title(name)
        self.page.wait_has('#log-phase[data-phase="waiting"]')
        last = self.windows.pop()
        for window in self.windows[1:]:
            self.page.driver.switch_to.window(window)
            self.heard += self.page.complaints()
            self.page.driver.close()
        self.windows[1:] = [last]
        self.page.driver.switch_to.window(last)
        self.page.wait_has('#log-phase[data-phase="open"]')
        self.api.post(f"graphs/{graph}/cancel")


class WideTests(PageCase):
    """What is long is shown from its beginning, with the number of the rest."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def test_an_operation_with_many_dependencies(self):
        graph = self.api.submit("wide", {"part": {
            "forEach": "1..3000", "operation": "nothing"}})["id"]
        self.api.wait_status(graph, "finished")
        self.page.go(f"#/graphs/{graph}/operations/part")
        self.page.wait_title("part")
        self.page.wait_text("#more-dependencies", "and 2900 more. To see all: operon show")
        self.assertEqual(len(self.page.rows("#dependencies")), 100)

    def test_an_operation_without_a_box_of_its_own_is_found_by_its_name(self):
        graph = self.api.submit("folded", {
            f"step{number // 40}/job{number % 40}": {"external": True} for number in range(600)})
        self.page.go(f"#/graphs/{graph['id']}/picture")
        self.page.wait_text("#picture-summary", "600 operations in")
        self.page.write(hook("picture-search"), "step3/job7")
        self.page.wait_text("#picture-found", "No box has this in its title.")
        self.page.click("#picture-operation")
        self.page.wait_title("step3/job7")
        self.api.post(f"graphs/{graph['id']}/cancel")

    def test_what_never_ran_printed_nothing(self):
        graph = self.api.submit("skips", {"fails": {"run": "false"}, "skipped": {
            "run": "true", "dependencies": {"fails": "succeeded"}}})["id"]
        self.api.wait_status(graph, "failed")
        self.page.go(f"#/graphs/{graph}/operations/skipped")
        self.page.wait_text("#log-empty", "It printed nothing.")
