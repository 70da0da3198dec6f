"""Addresses that can be sent, the browser's own Back, and the keys."""

import urllib.request

from selenium.webdriver.common.keys import Keys

from .browser import hook
from .case import PageCase
from .scene import GRAPH, VIEWS, Scene

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class LinkTests(PageCase):
    """Links and history."""

    def setUp(self):
        super().setUp()
        Scene.make()
        self.page.log_in("ann")

    def test_each_view_opens_by_its_address(self):
        for view in VIEWS:
            with self.subTest(view=view):
                route, selector = Scene.route(view)
                self.page.open(route)
                self.page.wait_has(selector)
                self.assertEqual(self.page.route(), route)
                title = self.page.text("#main h1")
                self.assertEqual(self.page.driver.title, f"{title} – Operon")
                self.assertEqual(len(self.page.texts("[aria-current=page]")),
                                 2 if self.page.has(".tabs") else 1)

    def test_policy_of_all_files(self):
        names = ["page/" + path.rsplit("/", maxsplit=1)[-1] for path in self.page.script(
            "return performance.getEntriesByType('resource').map((one) => one.name)")
            if "/page/" in path]
        self.assertIn("page/page.js", names)
        for name in ("", *names):
            request = urllib.request.Request(f"{self.page.url}/{name}", headers={
                "Accept": "text/html"})
            with urllib.request.urlopen(request) as answer:
                self.assertEqual(answer.headers["Content-Security-Policy"], POLICY, name)
                self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff", name)

    def test_new_tab(self):
        driver = self.page.driver
        first = driver.current_window_handle
        driver.switch_to.new_window("tab")
        try:
            driver.get(self.page.url + "/" + Scene.route("graph")[0])
            self.page.wait_has("#operations")
        finally:
            driver.close()
            driver.switch_to.window(first)

    def test_back_and_forward(self):
        self.page.open("#/graphs")
        route, _ = Scene.route("graph")
        self.page.wait_has("#graphs")
        # Other tests may have submitted more graphs than a page has.
        self.page.write(hook("filter-name"), GRAPH)
        self.page.click(f'#graphs a[href="{route}"]')
        self.page.wait_has("#counts")
        self.page.click(hook("tab-operations"))
        self.page.wait_has(hook("filter-prefix"))
        self.page.choose(hook("filter-outcome"), "failed")
        self.page.wait("the filter is used", lambda: len(self.page.rows("#operations")) == 1)
        self.page.click("#operations .name")
        self.page.wait_title("broken")
        self.page.driver.back()
        self.page.wait("the filter is still there", lambda: (
            self.page.has("#operations") and len(self.page.rows("#operations")) == 1))
        self.assertEqual(self.page.find(hook("filter-outcome")).get_attribute("value"), "failed")
        self.page.driver.back()
        self.page.wait_has("#counts")
        self.page.driver.back()
        self.page.wait_title("Graphs")
        self.page.driver.forward()
        self.page.wait_has("#counts")

    def test_pages_of_operations(self):
        graph = self.api.submit("with pages", {
            f"{number:03}": {"operation": "nothing"} for number in range(450)})["id"]
        self.api.wait_status(graph, "finished")
        self.page.go(f"#/graphs/{graph}/operations")
        for first, last in (("000", "199"), ("200", "399"), ("400", "449")):
            self.page.wait(f"the page from {first} to {last}", lambda: (
                (rows := self.page.rows("#operations")) and rows[0]["Operation"] == first
                and rows[-1]["Operation"] == last))
            if last != "449":
                self.page.click(hook("next"))
        self.assertFalse(self.page.has(hook("next")))
        self.page.driver.back()
        self.page.wait_row("#operations", "Operation", "200")
        self.page.click(hook("first"))
        self.page.wait_row("#operations", "Operation", "000")


class KeyTests(PageCase):
    """The keys of the whole page."""

    def setUp(self):
        super().setUp()
        Scene.make()
        self.page.log_in("ann")
        self.page.wait_has("#graphs")

    def focus(self):
        """What has the focus."""
        return self.page.script("const one = document.activeElement;"
                                "return one.dataset.test ?? one.id ?? one.tagName")

    def test_help(self):
        self.page.press("?")
        self.page.wait_has("#help[open]")
        self.assertIn("go to the queues", self.page.text("#help"))
        self.page.close_dialog()
        self.page.click(hook("keys"))
        self.page.wait_has("#help[open]")
        self.page.click(f"#help {hook('close')}")
        self.page.wait_none("#help")
        self.assertEqual(self.focus(), "keys")

    def test_filter(self):
        self.page.press("/")
        self.page.wait("the filter has the focus", lambda: self.focus() == "filter-name")
        self.page.press("g", "q", "?", "/")
        self.assertEqual(self.page.find(hook("filter-name")).get_attribute("value"), "gq?/")
        self.assertFalse(self.page.has("dialog[open]"))

    def test_going(self):
        for key, title in (("q", "Queues and keys"), ("w", "Workers"), ("t", "Triggers"),
                           ("c", "Cluster"), ("g", "Graphs")):
            self.page.press(f"g{key}")
            self.page.wait_title(title)

    def test_keys_can_be_turned_off(self):
        self.page.press("?")
        self.page.wait_has("#help[open]")
        self.page.click(hook("keys-on"))
        self.page.close_dialog()
        self.page.press("g", "q")
        self.page.press("?")
        self.assertFalse(self.page.has("#help[open]"))
        self.assertEqual(self.page.route(), "#/graphs")
        self.page.open("#/graphs")
        self.page.wait_has("#graphs")
        self.page.press("?")
        self.assertFalse(self.page.has("#help[open]"))
        self.page.click(hook("keys"))
        self.page.wait_has("#help[open]")
        self.page.click(hook("keys-on"))
        self.page.close_dialog()
        self.page.press("?")
        self.page.wait_has("#help[open]")
        self.page.close_dialog()

    def test_escape_and_focus(self):
        route, _ = Scene.route("graph")
        self.page.go(route)
        self.page.wait_has("#counts")
        self.page.click(hook("cancel"))
        self.page.wait_has("#cancel-dialog[open]")
        self.page.press("g", "q", "?")
        self.assertEqual(self.page.route(), route)
        self.page.press(Keys.ESCAPE)
        self.page.wait_none("dialog[open]")
        self.assertEqual(self.focus(), "cancel")

    def test_focus_comes_to_the_heading(self):
        self.page.click(hook("nav-workers"))
        self.page.wait_title("Workers")
        self.page.wait("the heading has the focus", lambda: self.page.script(
            "return document.activeElement.tagName") == "H1")

    def test_skip_link(self):
        self.page.open("#/graphs")
        self.page.wait_has("#graphs")
        self.page.script("document.querySelector('a.skip').focus()")
        self.page.press(Keys.ENTER)
        self.page.wait("the content has the focus", lambda: self.focus() == "main")
        self.assertEqual(self.page.route(), "#/graphs")
