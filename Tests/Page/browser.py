"""One headless Chromium, and the words in which the tests speak of the page."""

import base64
import time

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException, ElementNotInteractableException, NoSuchElementException,
    StaleElementReferenceException)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from .api import PATIENCE, wait_for
from .cluster import TOKENS
from .memory import renderers

# Runs in each document before its own scripts: what must never happen is noted.
WATCH = """
window.__ran = [];
window.__seen = [];
for (const name of ["alert", "confirm", "prompt", "print"]) {
    window[name] = () => { window.__ran.push(name); };
}
addEventListener("securitypolicyviolation", (event) => {
    window.__seen.push(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
addEventListener("error", (event) => { window.__seen.push(`error ${event.message}`); }, true);
addEventListener("unhandledrejection", (event) => {
    window.__seen.push(`rejection ${event.reason?.stack ?? event.reason}`);
});
"""


def hook(name):
    """The selector of what `data-test` names."""
    return f'[data-test="{name}"]'


class Browser:
    """The browser. Texts are read in one step, because the page may draw at any moment."""

    def __init__(self, url, scratch):
        self.url = url
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                         "--disable-gpu", "--window-size=1280,900", "--lang=en-US",
                         "--enable-precise-memory-info", "--js-flags=--expose-gc",
                         f"--user-data-dir={scratch}/chromium"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService("/usr/bin/chromedriver")
        self.driver = webdriver.Chrome(options, service)
        self.driver.set_script_timeout(120)
        self.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def command(self, name, **arguments):
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def script(self, text, *arguments):
        """The value of a script in the page."""
        return self.driver.execute_script(text, *arguments)

    # Where it is

    def open(self, route="#/graphs"):
        """Opens an address in a fresh document, as a link in a new tab does."""
        self.driver.get("about:blank")
        self.driver.get(self.url + "/" + route)

    def go(self, route):
        """Follows a link within the page."""
        self.script("location.hash = arguments[0]", route)

    def route(self):
        """The fragment of the address."""
        return self.script("return location.hash")

    def size(self, width, height=900):
        """Sets the size of the window."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """Prefers light or dark."""
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": name},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    # What it shows

    def text(self, selector):
        """The text of the first element, or nothing if there is none."""
        return self.script(
            "return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def texts(self, selector):
        """The texts of all elements."""
        return self.script("return [...document.querySelectorAll(arguments[0])]"
                           ".map((one) => one.textContent)", selector)

    def has(self, selector):
        """Whether there is such an element."""
        return self.script("return document.querySelector(arguments[0]) !== null", selector)

    def attribute(self, selector, name):
        """An attribute of the first element."""
        return self.script("return document.querySelector(arguments[0])"
                           "?.getAttribute(arguments[1]) ?? null", selector, name)

    def rows(self, selector):
        """The rows of a table: for each the texts of its cells by column."""
        return self.script("""
            return [...document.querySelectorAll(`${arguments[0]} tbody tr`)].map((row) => (
                Object.fromEntries([...row.cells].map((cell) => (
                    [cell.dataset.label, cell.textContent])))));""", selector)

    def row(self, selector, column, name):
        """The row of a table whose cell of a column is a text, or contains it."""
        rows = self.rows(selector)
        return next((row for row in rows if row[column] == name),
                    next((row for row in rows if name in row[column]), None))

    # Waiting

    def wait(self, what, condition, seconds=PATIENCE):
        """Waits for anything; the error says what the page shows instead."""
        try:
            return wait_for(what, condition, seconds)
        except AssertionError as error:
            shown = self.script("return document.body.innerText")
            raise AssertionError(f"{error}; at {self.route()} the page shows:\n{shown}") from None

    def wait_has(self, selector):
        """Waits for an element."""
        self.wait(f"there is {selector}", lambda: self.has(selector))

    def wait_none(self, selector):
        """Waits until an element is gone."""
        self.wait(f"there is no {selector}", lambda: not self.has(selector))

    def wait_text(self, selector, text):
        """Waits until the first element contains a text, and returns the whole text of it."""
        return self.wait(f"{selector} contains “{text}”", lambda: (
            (shown := self.text(selector)) is not None and text in shown and (shown or " ")))

    def wait_row(self, selector, column, name, **cells):
        """Waits for a row; `cells` are what other columns must contain."""
        def look():
            row = self.row(selector, column, name)
            return row if row and all(text in row[label] for label, text in cells.items()) else 0
        return self.wait(f"{selector} has “{name}” with {cells}", look)

    def wait_title(self, title):
        """Waits for a view by its heading."""
        self.wait(f"the heading is “{title}”", lambda: self.text("#main h1") == title)

    # Doing

    def find(self, selector):
        """The first element, for keys and clicks."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def act(self, selector, action):
        """Does something with an element, when it is there and can be reached."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return action(self.find(selector))
            except (StaleElementReferenceException, NoSuchElementException,
                    ElementClickInterceptedException, ElementNotInteractableException) as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{selector} cannot be used: {error.msg}") from None
                time.sleep(0.05)

    def click(self, selector):
        """Clicks an element."""
        self.act(selector, lambda element: element.click())

    def click_in_row(self, selector, column, name, button):
        """Clicks a button in the row of a table."""
        self.wait_row(selector, column, name)

        def look():
            return self.script("""
                const [table, column, name, button] = arguments;
                const rows = [...document.querySelectorAll(`${table} tbody tr`)];
                const text = (row) => row.querySelector(`[data-label="${column}"]`).textContent;
                const row = rows.find((row) => text(row) === name)
                    ?? rows.find((row) => text(row).includes(name));
                const found = row?.querySelector(`[data-test="${button}"]`);
                found?.scrollIntoView({ block: "center" });
                found?.click();
                return found != null;""", selector, column, name, button)
        self.wait(f"{name} has {button}", look)

    def write(self, selector, text):
        """Replaces the text of an input."""
        def replace(element):
            element.clear()
            element.send_keys(text)
        self.act(selector, replace)

    def choose(self, selector, value):
        """Chooses an option."""
        self.act(selector, lambda element: Select(element).select_by_value(value))

    def press(self, *keys):
        """Presses keys where the focus is, also if what has it is just drawn anew."""
        def press(key):
            try:
                self.driver.switch_to.active_element.send_keys(key)
            except (ElementNotInteractableException, StaleElementReferenceException):
                return False
            return True
        for key in keys:
            self.wait("what has the focus takes a key", lambda key=key: press(key))

    def answer(self, dialog, **fields):
        """Answers an open question: fills its fields, and sends it."""
        self.wait_has(f"#{dialog}[open]")
        for name, value in fields.items():
            selector = f"#{dialog} {hook(f'field-{name}')}"
            kind = self.script("const one = document.querySelector(arguments[0]);"
                               "return one?.type", selector)
            if kind == "select-one":
                self.choose(selector, value)
            elif kind == "checkbox":
                if self.script("return document.querySelector(arguments[0]).checked",
                               selector) != value:
                    self.click(selector)
            else:
                self.write(selector, value)
        self.click(f"#{dialog} {hook('submit')}")

    def close_dialog(self):
        """Closes the open dialog by Escape."""
        self.press(Keys.ESCAPE)
        self.wait_none("dialog[open]")

    # Who it is

    def log_in(self, name="ann", route="#/graphs"):
        """Opens an address as somebody, with a login if it is somebody else so far."""
        self.open(route)
        self.wait("the page has started", lambda: self.has("#login[open]") or self.has("#who"))
        if self.has("#who") and not (self.text("#who") or "").startswith(name):
            self.click(hook("logout"))
        elif self.has("#who"):
            return
        self.type_token(TOKENS[name][1])
        self.wait_none("#login")

    def type_token(self, token):
        """Fills in the login."""
        self.wait_has("#login[open]")
        self.write("#token", token)
        self.click(f"#login {hook('submit')}")

    # What it complains of

    def complaints(self):
        """What the browser has said against the page since the last call."""
        lines = [entry["message"] for entry in self.driver.get_log("browser")
                 if entry["level"] in ("SEVERE", "WARNING")]
        seen = self.script("const seen = window.__seen ?? []; window.__seen = []; return seen")
        return lines + seen

    def heap(self):
        """The JavaScript heap in MiB, garbage collected."""
        self.command("HeapProfiler.collectGarbage")
        usage = self.command("Runtime.getHeapUsage")
        return usage["usedSize"] / 2 ** 20

    def memory(self):
        """The resident memory of the tab in MB.

        The tab has a process of its own. It is the largest of those that render pages: the others
        are a spare one, and those of documents that the browser keeps for its Back button.
        """
        return max(renderers(self.driver.service.process.pid))

    def save(self, path):
        """Saves a picture of the whole page."""
        height = self.script("return document.documentElement.scrollHeight")
        width = self.script("return innerWidth")
        data = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip={
            "x": 0, "y": 0, "width": width, "height": min(height, 4000), "scale": 1})["data"]
        path.write_bytes(base64.b64decode(data))

    def quit(self):
        """Ends the browser."""
        self.driver.quit()
