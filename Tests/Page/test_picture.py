"""The picture and the timeline under a mouse: wheel, drag and click."""

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

from .browser import hook
from .case import PageCase


class MouseTests(PageCase):
    def setUp(self):
        super().setUp()
        self.page.log_in("ann")
        self.graph = self.api.submit("under the mouse", {
            "first": {"run": "sleep 0.3"},
            **{f"branch {number}": {"run": "sleep 0.1", "dependencies": ["first"]}
               for number in range(8)}})["id"]
        self.api.wait_status(self.graph, "finished", 60)

    def actions(self):
        return ActionChains(self.page.driver)

    def element(self, selector):
        return self.page.driver.find_element(By.CSS_SELECTOR, selector)

    def box(self):
        """What part of the drawing is in view: x, y, width and height."""
        return [float(part) for part in self.page.attribute("#picture", "viewBox").split()]

    def drawn(self):
        return self.page.script("return document.querySelector('#timeline').toDataURL()")

    def test_picture(self):
        self.page.go(f"#/graphs/{self.graph}/picture")
        self.page.wait("the boxes are there", lambda: self.page.script(
            "return document.querySelectorAll('#picture .box').length") == 9)
        self.page.wait("a part is in view", lambda: self.page.attribute("#picture", "viewBox"))
        whole = self.box()
        picture = self.element("#picture")

        # The wheel zooms, and what is under the mouse stays there.
        self.actions().scroll_from_origin(
            ScrollOrigin.from_element(picture, 100, 40), 0, -300).perform()
        self.page.wait("it is larger", lambda: self.box()[2] < whole[2] * 0.6)
        near = self.box()
        size = self.page.script(
            "const {clientWidth, clientHeight} = document.querySelector('#picture');"
            "return [clientWidth, clientHeight]")
        for place, offset in ((0, 100), (1, 40)):
            share = 0.5 + offset / size[place]
            self.assertAlmostEqual(whole[place] + share * whole[place + 2],
                                   near[place] + share * near[place + 2], delta=2)

        # A drag moves the drawing with the mouse, and is no click on the box where it ends.
        route = self.page.route()
        self.actions().move_to_element_with_offset(picture, 0, 0).click_and_hold() \
            .move_by_offset(-60, 20).move_by_offset(-20, 0).release().perform()
        self.page.wait("it has moved", lambda: self.box()[0] > near[0])
        moved = self.box()
        scale = size[0] / near[2]
        self.assertAlmostEqual(moved[0] - near[0], 80 / scale, delta=2)
        self.assertAlmostEqual(moved[1] - near[1], -20 / scale, delta=2)
        self.assertEqual(moved[2:], near[2:])
        self.assertEqual(self.page.route(), route)

        # A click, and nothing else, opens what is under the mouse.
        self.page.click(hook("zoom-all"))
        self.page.wait("everything is seen", lambda: self.box() == whole)
        self.element("#picture .box").click()
        self.page.wait("the operation is open", lambda: "/operations/" in self.page.route())

    def test_timeline(self):
        self.page.go(f"#/graphs/{self.graph}/timeline")
        self.page.wait_row("#longest", "Operation", "first", State="succeeded")
        whole = self.page.text("#timeline-span")
        timeline = self.element("#timeline")
        origin = ScrollOrigin.from_element(timeline)

        self.actions().key_down(Keys.CONTROL).scroll_from_origin(origin, 0, -300) \
            .key_up(Keys.CONTROL).perform()
        self.page.wait("a shorter span is seen",
                       lambda: self.page.text("#timeline-span") != whole)
        near = self.page.text("#timeline-span")
        drawn = self.drawn()
        self.actions().move_to_element(timeline).click_and_hold() \
            .move_by_offset(-80, 0).release().move_to_element(self.element("h1")).perform()
        self.page.wait("it has moved", lambda: self.drawn() != drawn)
        moved = self.page.text("#timeline-span")
        self.assertNotEqual(moved, near)
        self.assertEqual(moved.partition(": ")[2], near.partition(": ")[2])
