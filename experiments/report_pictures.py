"""Takes pictures in headless Chromium: of a month's report that `citeloom run` made, or of a running `citeloom serve`.

    .venv/bin/python -m experiments.report_pictures data/demo/reports/2024-05 pictures [TASK]
    .venv/bin/python -m experiments.report_pictures http://127.0.0.1:8080 pictures

`<place>-<light or dark>.png` of: the top of the overall index, to the end of Table 1 (`index`); Figures 4, 5 and 3, as
far as the month has them (`criteria`, `preference`, `stability`); a task with an opened sentence (`sentence`). TASK is
a part of the name of the task's page; without it the page with most supported sentences is taken. Of a server, the page
of results (`search`) on the demo's corpus. Needs chromium and chromedriver on the path.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from PIL import Image
from selectolax.lexbor import LexborHTMLParser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTH = 1280
# A page of a repository loads pictures without being asked: 200 KB each, which text on a plain ground keeps with room.
MOST_BYTES = 200_000
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking",
)  # fmt: skip
_QUERY = "does fusing dense and lexical rankings help?"
# In the order of the page; a month in which nobody voted or nothing was repeated lacks some.
_FIGURES = ("criteria", "preference", "stability")
# Of a sentence that opens: first one that is supported with its quote found, then one that is supported, then any.
_SENTENCES = (".sentence:has(.v-supported):has(mark)", ".sentence:has(.v-supported)", ".sentence:has(.panel)")


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


def show(driver: Chrome, address: str, height: int, *, dark: bool) -> None:
    """Open an address in a window of this height."""
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preferred = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preferred]})
    driver.get("about:blank")
    driver.get(address)


def top_of(driver: Chrome, selector: str) -> int:
    """Where an element begins on its page, in pixels; -1 where there is none."""
    asked = "const e = document.querySelector(arguments[0]); return e ? e.getBoundingClientRect().top + scrollY : -1"
    return int(driver.execute_script(asked, selector))


def region(driver: Chrome, first: str, end: str, most: int) -> tuple[int, int]:
    """Top and height of what lies from one element to before another, or to the page's end."""
    top = top_of(driver, first) - 24
    below = top_of(driver, end)
    bottom = below if below > top else int(driver.execute_script("return document.documentElement.scrollHeight"))
    return max(top, 0), min(bottom - max(top, 0), most)


def take(driver: Chrome, file: Path, top: int, height: int) -> None:
    """Keep this part of the page: in all its colours where they fit into MOST_BYTES, else in fewer."""
    from base64 import b64decode

    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
    told = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    file.write_bytes(b64decode(told["data"]))
    with Image.open(file) as picture:
        picture.convert("RGB").save(file, optimize=True)
    for colours in (256, 64, 16):
        if file.stat().st_size <= MOST_BYTES:
            break
        with Image.open(file) as picture:
            picture.convert("RGB").quantize(colours, Image.Quantize.MAXCOVERAGE).save(file, optimize=True)
    print(f"{file} {file.stat().st_size:,} bytes")


def chosen_task(folder: Path, wanted: str) -> tuple[Path, str]:
    """The page of a task and the anchor of a sentence to open on it."""
    named = (page for page in sorted(folder.glob("task-*.html")) if wanted in page.name)
    pages = [page for page in named if not page.stem.endswith("-written")]
    if not pages:
        sys.exit(f"{folder} has no page of a task{f' with {wanted} in its name' if wanted else ''}")
    read = {page: LexborHTMLParser(page.read_text()) for page in pages}
    best = max(pages, key=lambda page: len(read[page].css("a.said.v-supported")))
    for selector in _SENTENCES:
        sentence = read[best].css_first(selector)
        link = sentence.css_first("a.said") if sentence is not None else None
        if link is not None:
            return best, str(link.attributes["href"]).removeprefix("#")
    return best, "sections"


def take_all(folder: Path, output: Path, wanted: str) -> None:
    """All pictures of a report's folder."""
    task, sentence = chosen_task(folder, wanted)
    with browser() as driver:
        for dark in (False, True):
            scheme = "dark" if dark else "light"
            show(driver, (folder.parent / "index.html").as_uri(), 900, dark=dark)
            take(driver, output / f"index-{scheme}.png", *region(driver, "body", "#table-table_2", 1_600))
            show(driver, (folder / "index.html").as_uri(), 900, dark=dark)
            for place in (figure for figure in _FIGURES if top_of(driver, f"#{figure} ~ figure") >= 0):
                take(driver, output / f"{place}-{scheme}.png", *region(driver, f"#{place}", f"#{place} ~ h3", 1_200))
            show(driver, f"{task.as_uri()}#{sentence}", 900, dark=dark)
            take(driver, output / f"sentence-{scheme}.png", 0, 900)


def take_served(url: str, output: Path) -> None:
    """The page of results of a server."""
    with browser() as driver:
        for dark in (False, True):
            show(driver, f"{url}/search?{urlencode({'q': _QUERY})}", 900, dark=dark)
            take(driver, output / f"search-{'dark' if dark else 'light'}.png", 0, 760)


def main() -> None:
    """Take the pictures of the folder or the server that was named."""
    is_server = len(sys.argv) == 3 and sys.argv[1].startswith("http")
    if not is_server and (len(sys.argv) not in (3, 4) or not (Path(sys.argv[1]) / "index.html").is_file()):
        sys.exit(__doc__)
    output = Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    if is_server:
        take_served(sys.argv[1].rstrip("/"), output)
        return
    take_all(Path(sys.argv[1]).resolve(), output, sys.argv[3] if len(sys.argv) == 4 else "")


if __name__ == "__main__":
    main()
