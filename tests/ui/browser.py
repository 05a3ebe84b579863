"""Headless Chromium: pages opened, read, clicked and looked at in both colours and at both
widths.
"""

import contextlib
import shutil
from contextlib import contextmanager

import pytest

from tests.processes import PATIENCE, end_with_tests, wait_until
from tests.required_tools import missing_tool

WIDTHS = (1280, 390)
# The backgrounds of all pages of reports, of annotators, and of `citeloom serve`.
COLOURS = {"light": "rgb(252, 251, 248)", "dark": "rgb(21, 23, 26)"}
# Chromium as root in a container, with nothing that calls home.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--window-size=1600,1200",
)  # fmt: skip


class Page:
    """A browser on the UI: goes to places, waits for what should be there, clicks by what is
    written on things.
    """

    def __init__(self, driver, url):
        self.driver, self.url = driver, url

    def open(self, path):
        """Go to a path of the UI."""
        self.driver.get(f"{self.url}{path}")

    def wait(self, happens, what):
        """Wait until something is true of the page; where it never is, the error shows its text."""
        try:
            wait_until(happens, what)
        except TimeoutError as error:
            raise AssertionError(f"{error}; the page says:\n{self.text}") from None

    @property
    def text(self):
        """All that is written on the page."""
        return self.driver.execute_script("return document.body.innerText")

    def find(self, xpath, seconds=PATIENCE):
        """The first displayed element of an XPath, as soon as there is one."""
        from selenium.common.exceptions import StaleElementReferenceException

        def displayed():
            try:
                found = self.driver.find_elements("xpath", xpath)
                return next((element for element in found if element.is_displayed()), None)
            except StaleElementReferenceException:
                return None

        return wait_until(displayed, xpath, seconds)

    def takes_click(self, xpath):
        """Click the first displayed element of an XPath; whether it took the click."""
        from selenium.common.exceptions import (
            ElementClickInterceptedException,
            StaleElementReferenceException,
        )

        try:
            self.find(xpath).click()
        except (ElementClickInterceptedException, StaleElementReferenceException):
            return False
        return True

    def click(self, xpath):
        """Click the first displayed element of an XPath, once it takes clicks."""
        self.wait(lambda: self.takes_click(xpath), f"click on {xpath}")

    def click_for(self, xpath, dialog):
        """Click what opens a dialog until the dialog is there: a page that is still being drawn
        forgets a click, and a dialog that opens late covers what is clicked.
        """

        def opened():
            self.takes_click(xpath)
            with contextlib.suppress(TimeoutError):
                return bool(self.find(dialog, seconds=5))
            return False

        self.wait(opened, dialog)

    def says(self, *words):
        """Wait until all of these are written on the page."""
        self.wait(lambda: all(word in self.text for word in words), ", ".join(words))


def tool(*names):
    """The path of the first of some programs; without any the test is not run."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        missing_tool(f"{names[0]} is not here: install Debian's chromium and chromium-driver")
    return found


def chrome_options(tmp_path_factory):
    """Options of a browser with a profile of its own."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    return options


@contextmanager
def chrome(options):
    """Chromium and its driver, which end with the block; Ctrl-C alone does not reach them, but ends
    the tests.
    """
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options.binary_location = tool("chromium", "chromium-browser", "google-chrome")
    service = Service(tool("chromedriver"), popen_kw={"start_new_session": True})
    driver = webdriver.Chrome(options=options, service=service)
    end_with_tests(service.process)
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def browse(url, tmp_path_factory):
    """A browser on a UI, ended afterwards."""
    with chrome(chrome_options(tmp_path_factory)) as driver:
        yield Page(driver, url)


def look(driver, width, colours="light"):
    """Set the width of the window, and the scheme of colours that its reader prefers."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": colours}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)


def click(driver, element):
    """Click an element once the middle of the window shows it: chromedriver's own scroll may stop
    at its edge.
    """
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', inline: 'center'})", element
    )
    element.click()


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def overflow(driver):
    """By how many pixels the page is wider than the window."""
    return driver.execute_script("return document.documentElement.scrollWidth - innerWidth")


def assert_no_alert(driver):
    from selenium.common.exceptions import NoAlertPresentException

    with pytest.raises(NoAlertPresentException):
        _ = driver.switch_to.alert.text
