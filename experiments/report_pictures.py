"""Take pictures of a page in headless Chromium, one in light and one in dark colours.

    .venv/bin/python -m experiments.report_pictures PAGE NAME [HEIGHT]

PAGE: an address, or a file such as data/demo/reports/2024-05/index.html; with #ANCHOR behind it the
picture begins at
that part of the page. HEIGHT: of the picture in pixels, 900 by default. Writes NAME-light.png and
NAME-dark.png. Needs chromium and chromedriver on the path.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTH = 1280
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
)


@contextmanager
def browser() -> Iterator[Chrome]:
    """A headless Chromium with a profile of its own, which goes when it ends."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    found = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not all(found):
        sys.exit("chromium and chromedriver are needed: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(found[0])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(str(found[1])))
        try:
            yield driver
        finally:
            driver.quit()


def take(driver: Chrome, address: str, file: Path, height: int, *, dark: bool) -> None:
    """Open an address in a window of this height, and keep what it shows."""
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preferred = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preferred]})
    driver.get("about:blank")
    driver.get(address)
    driver.save_screenshot(str(file))
    with Image.open(file) as picture:
        picture.convert("RGB").save(file, optimize=True)
    print(f"{file} {file.stat().st_size:,} bytes")


def main() -> None:
    """Take both pictures of the page that was named."""
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    page, name, *height = sys.argv[1:]
    if not page.startswith("http"):
        path, _, anchor = page.partition("#")
        page = Path(path).resolve().as_uri() + (f"#{anchor}" if anchor else "")
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    with browser() as driver:
        for scheme in ("light", "dark"):
            file = Path(f"{name}-{scheme}.png")
            take(driver, page, file, int(height[0]) if height else 900, dark=scheme == "dark")


if __name__ == "__main__":
    main()
