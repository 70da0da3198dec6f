"""Whether everybody can use the page: axe-core on every view and every dialog, in light and dark,
on a wide and on a narrow screen. With --screenshots, they are saved, too."""

from selenium.webdriver.common.keys import Keys

from .browser import hook
from .case import PageCase, World
from .scene import VIEWS, Scene

WIDTHS = (1280, 360)
SCHEMES = ("light", "dark")
COLOURS = ["color-contrast", "link-in-text-block"]

# Each dialog: the view that it is opened on, and what opens it.
DIALOGS = {
    "help": ("graphs", hook("keys")),
    "suspend-dialog": ("graph", hook("suspend")),
    "retry-dialog": ("graph", hook("retry")),
    "cancel-dialog": ("graph", hook("cancel")),
    "cancel-dialog of an operation": ("running", hook("cancel")),
    "complete-dialog": ("external", hook("complete")),
    "priority-dialog": ("waiting", hook("priority")),
    "queue-limits-dialog": ("queue", hook("queue-limits")),
    "key-limits-dialog": ("queues", hook("key-limits")),
    "drain-dialog": ("workers", hook("drain")),
    "fire-dialog": ("fired", hook("fire")),
}


class AccessTests(PageCase):
    """What axe-core finds."""

    def setUp(self):
        super().setUp()
        Scene.make()
        self.page.log_in("ann")
        self.addCleanup(self.reset)

    def reset(self):
        """The screen of the other tests."""
        self.page.scheme("light")
        self.page.command("Emulation.clearDeviceMetricsOverride")
        self.page.command("Emulation.setEmulatedMedia", features=[])

    def axe(self, rules):
        """What axe-core has against what is shown, in a line for each element."""
        if self.page.script("return window.axe === undefined"):
            self.page.script(World.axe)
        return self.page.driver.execute_async_script("""
            const done = arguments[arguments.length - 1];
            const how = { resultTypes: ["violations"], preload: false };
            if (arguments[0]) how.runOnly = { type: "rule", values: arguments[0] };
            axe.run(document, how).then((result) => {
                done(result.violations.flatMap((rule) => rule.nodes.map((node) => (
                    `${rule.id} (${rule.impact}): ${node.target.join(" ")}: `
                    + `${node.html.slice(0, 160)}: ${node.failureSummary}`))));
            }, (error) => done([String(error)]));""", rules)

    def look(self, name):
        """Looks at what is shown in all schemes and sizes."""
        for width in WIDTHS:
            self.page.size(width)
            for scheme in SCHEMES:
                self.page.scheme(scheme)
                with self.subTest(name=name, width=width, scheme=scheme):
                    # Only colours depend on the scheme.
                    rules = None if scheme == SCHEMES[0] else COLOURS
                    self.assertEqual(self.axe(rules), [])
                    wide = self.page.script(
                        "return document.documentElement.scrollWidth - innerWidth")
                    self.assertLessEqual(wide, 0, "the page is wider than the screen")
                if World.screenshots:
                    file = f"{name.replace(' ', '-')}-{width}-{scheme}.png"
                    self.page.save(World.screenshots / file)

    def test_views(self):
        for view in VIEWS:
            route, selector = Scene.route(view)
            self.page.size(WIDTHS[0])
            self.page.go(route)
            self.page.wait_has(selector)
            if self.page.has("#output"):
                self.page.script("for (const one of document.querySelectorAll('details'))"
                                 " one.open = true")
                self.page.wait_none("details .empty")
            self.look(view)

    def test_dialogs(self):
        for name, (view, button) in DIALOGS.items():
            route, selector = Scene.route(view)
            self.page.size(WIDTHS[0])
            self.page.go(route)
            self.page.wait_has(selector)
            self.page.click(button)
            self.page.wait_has(f"#{name.split(' ', maxsplit=1)[0]}[open]")
            self.look(name)
            self.page.close_dialog()

    def test_empty_and_missing(self):
        self.allow_status(404)
        graph = self.api.ask("POST", "graphs?open=true", {
            "name": "empty", "operations": {}})["id"]
        for name, route, selector in (
                ("no graphs", "#/graphs?name=none", hook("graphs-empty")),
                ("no timeline", f"#/graphs/{graph}/timeline", hook("timeline-empty")),
                ("no such graph", "#/graphs/no%20such%20graph", hook("problem")),
                ("no such address", "#/no/such/address", "#main h1"),
                ("refusal", "#/queues/default", "#queue-facts")):
            self.page.size(WIDTHS[0])
            self.page.go(route)
            self.page.wait_has(selector)
            if name == "refusal":
                self.allow_status(400)
                self.page.click(hook("queue-limits"))
                self.page.answer("queue-limits-dialog", rate="often")
                self.page.wait_has("#queue-limits-dialog [data-test=refused]")
            self.look(name)
        self.page.press(Keys.ESCAPE)
        self.page.size(WIDTHS[0])
        self.addCleanup(self.api.ask, "POST", "queues/default/resume")
        self.page.click(hook("suspend"))
        self.page.answer("suspend-dialog")
        self.done("Suspended queue")
        self.look("done")
        self.api.post(f"graphs/{graph}/cancel")

    def test_notice_on_a_narrow_screen(self):
        self.page.size(WIDTHS[1])
        self.page.go("#/queues/default")
        self.addCleanup(self.api.ask, "POST", "queues/default/resume")
        self.page.click(hook("suspend"))
        self.page.answer("suspend-dialog")
        self.done("Suspended queue")
        size = self.page.find("#status p").size
        self.assertGreater(size["width"], size["height"], "the sentence is a narrow column")

    def test_reader_and_login(self):
        self.allow_status(401)
        self.page.log_in("bob")
        self.page.wait_has("#graphs")
        self.look("reader")
        self.page.size(WIDTHS[0])
        self.page.click(hook("logout"))
        self.page.wait_has("#login[open]")
        self.look("login")
        self.page.size(WIDTHS[0])
        self.page.type_token("wrong")
        self.page.wait_has(f"#login {hook('refused')}")
        self.look("login refused")


class BannerTests(AccessTests):
    """The banner of a coordinator that does not answer."""

    expected = ("net::ERR_", "status of 401")
    test_views = test_dialogs = test_empty_and_missing = None
    test_reader_and_login = test_notice_on_a_narrow_screen = None

    def test_banner(self):
        self.page.wait_has("#graphs")
        self.cluster.kill_coordinator()
        self.page.wait_has("#banner")
        self.look("banner")
        self.cluster.start_coordinator()
        self.page.wait_has("#login[open]")
        self.look("login over the page")
