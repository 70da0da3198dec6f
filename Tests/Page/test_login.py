"""Who may see the page, and who may act on it."""

from selenium.webdriver.common.keys import Keys

from .api import Api
from .browser import hook
from .case import PageCase
from .cluster import TOKENS


class LoginTests(PageCase):
    """The login, its scopes and its end."""

    def log_out(self):
        """Begins without a login."""
        self.page.open()
        self.page.wait("the page has started", lambda: (
            self.page.has("#login[open]") or self.page.has("#who")))
        if self.page.has("#who"):
            self.page.click(hook("logout"))
        self.page.wait_has("#login[open]")

    def test_wrong_token_then_right_token(self):
        self.allow_status(401)
        self.log_out()
        self.assertFalse(self.page.has("#graphs"), "a list is shown before the login")
        self.page.type_token("wrong")
        self.page.wait_has(f"#login {hook('refused')}")
        self.assertTrue(self.page.text(f"#login {hook('refused')}").strip())
        self.page.press(Keys.ESCAPE, Keys.ESCAPE)
        self.page.wait_has("#login[open]")
        self.page.type_token(TOKENS["ann"][1])
        self.page.wait_none("#login")
        self.page.wait_title("Graphs")
        self.assertEqual(self.page.text("#who").strip(), "ann")

    def test_code_of_operon_page_works_once(self):
        self.allow_status(401)
        address = self.cluster.run("page", "--output", "quiet").strip()
        self.assertIn("#code=", address)
        self.log_out()
        fragment = address[address.index("#"):]
        self.page.open(fragment)
        self.page.wait_text("#who", "ann")
        self.assertEqual(self.page.route(), "#/graphs")
        self.page.wait_title("Graphs")
        self.page.click(hook("logout"))
        self.page.wait_has("#login[open]")
        self.page.open(fragment)
        self.page.wait_has("#login[open]")
        self.assertNotIn("code", self.page.script("return location.href"))
        self.assertFalse(self.page.has("#who"))

    def test_code_has_the_rights_of_its_token(self):
        address = self.cluster.run("page", "--output", "quiet", token="bob").strip()
        self.log_out()
        self.page.open(address[address.index("#"):])
        self.page.wait_text("#who", "bob (may only read)")

    def test_reader_is_offered_no_action(self):
        graph = self.api.submit("for readers", {
            "hand": {"external": True}, "later": {"run": "true", "dependencies": ["hand"]}})
        self.api.add_trigger("trigger for readers", {"a": {"operation": "nothing"}})
        self.api.wait_state(graph["id"], "hand", "executing")
        routes = [("#/graphs", "#graphs"), (f"#/graphs/{graph['id']}", "#operations"),
                  (f"#/graphs/{graph['id']}/operations/hand", "#attempts"),
                  (f"#/graphs/{graph['id']}/operations/later", "#operation-facts"),
                  ("#/queues", "#queues"), ("#/queues/default", "#queue-facts"),
                  ("#/workers", "#workers"), ("#/triggers", "#triggers"),
                  ("#/triggers/trigger%20for%20readers", "#trigger-facts")]
        actions = ", ".join(hook(name) for name in (
            "cancel", "suspend", "resume", "retry", "complete", "priority", "drain", "fire",
            "queue-limits", "key-limits"))
        for name, count in (("bob", False), ("ann", True)):
            self.page.log_in(name)
            for route, selector in routes[1:]:
                with self.subTest(name=name, route=route):
                    self.page.go(route)
                    self.page.wait_has(selector)
                    self.page.wait(f"actions are {'shown' if count else 'hidden'} for {name}",
                                   lambda: self.page.has(actions) == count, 10)
        self.api.post(f"graphs/{graph['id']}/cancel")

    def test_who_may_submit_is_offered_to_cancel_what_is_her_own(self):
        own = Api(self.cluster.url, TOKENS["sue"][1]).submit("of sue", {
            "first": {"external": True}, "second": {"external": True}})["id"]
        other = self.api.submit("of ann", {"hand": {"external": True}})["id"]
        self.page.log_in("sue")
        self.page.wait_text("#who", "sue (may only submit)")
        actions = ", ".join(hook(name) for name in ("cancel", "suspend", "retry", "complete"))
        for route, state in (("", "running"), ("/operations/hand", "executing")):
            self.page.go(f"#/graphs/{other}{route}")
            self.page.wait_text(".heading .state", state)
            self.assertFalse(self.page.has(actions))
        self.page.go(f"#/graphs/{own}/operations/first")
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog")
        self.done("Cancelled")
        self.page.wait_text(".heading .state", "cancelled")
        self.page.go(f"#/graphs/{own}")
        self.page.wait_has(hook("cancel"))
        self.assertFalse(self.page.has(", ".join(hook(name) for name in ("suspend", "retry"))))
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog")
        self.done("Cancelled")
        self.api.post(f"graphs/{other}/cancel")

    def test_logout_ends_the_session(self):
        self.page.log_in("ann")
        self.allow_status(401)
        cookies = self.page.driver.get_cookies()
        self.assertEqual([cookie["httpOnly"] for cookie in cookies], [True])
        self.assertEqual(cookies[0].get("sameSite"), "Strict")
        self.assertNotIn(TOKENS["ann"][1], str(cookies))
        self.page.click(hook("logout"))
        self.page.wait_has("#login[open]")
        self.assertFalse(self.page.has("#graphs"))
        self.page.driver.add_cookie({key: cookies[0][key] for key in ("name", "value", "path")})
        self.page.open()
        self.page.wait_has("#login[open]")
        self.page.driver.delete_all_cookies()

    def test_expiry_shows_the_login_over_the_page(self):
        graph = self.api.submit("seen before and after", {"hand": {"external": True}})
        route = f"#/graphs/{graph['id']}"
        self.page.log_in("ann", route)
        self.page.wait_title("seen before and after")
        self.page.script("window.__same = true")
        self.allow_status(401)
        self.allow("net::ERR_")
        self.cluster.restart_coordinator()
        self.page.wait_has("#login[open]")
        self.assertEqual(self.page.text("#main h1"), "seen before and after")
        self.page.type_token(TOKENS["ann"][1])
        self.page.wait_none("#login")
        self.page.wait_none("#banner")
        self.assertEqual(self.page.route(), route)
        self.api.post(f"graphs/{graph['id']}/cancel", {"reason": "seen after the login"})
        self.page.wait_text("#graph-progress", "seen after the login")
        self.assertTrue(self.page.script("return window.__same"), "the page was loaded again")
