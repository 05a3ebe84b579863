"""`citeloom serve` in headless Chromium: from a search to BibTeX, by mouse and keys, in both
colours and widths.
"""

import shutil
import signal
import subprocess
import tarfile
import urllib.request
from itertools import product
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

from pipeline.index.opening import close_indexes
from tests.processes import (
    environment_without_settings,
    family,
    free_port,
    listening,
    start_logged,
    wait_until,
)
from tests.required_tools import missing_tool
from tests.ui.browser import COLOURS, WIDTHS, background, look, overflow, tool
from tests.unit.doors.corpus import FUSION, RETRIEVAL, make_corpus, passage_id

pytestmark = [pytest.mark.ui, pytest.mark.slow]

AXE = "axe-core@4.14.1"
QUERY = "/search?" + urlencode({"q": "reciprocal rank fusion of two ranked lists"})
PAGES = (
    "/",
    QUERY,
    "/search?q=asdf+qwer",
    f"/paper/{FUSION}",
    f"/paper/{RETRIEVAL}",
    "/ask?q=What+does+fusion+merge",
    "/corpus",
    "/nothing",
)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A `citeloom serve` on the small corpus, and its process."""
    tool("chromedriver")
    folder = tmp_path_factory.mktemp("serve")
    make_corpus(folder / "data")
    close_indexes()
    port = free_port()
    environment = {**environment_without_settings(), "CITELOOM_DATA": str(folder / "data")}
    log = folder / "serve.log"
    process = start_logged(["serve", "--port", str(port)], folder, environment, log)
    url = f"http://127.0.0.1:{port}"

    def answers():
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/style.css", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    wait_until(answers, "an answer of citeloom serve")
    yield SimpleNamespace(url=url, process=process)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0, log.read_text()


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        missing_tool("npm is not here, which brings axe-core")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        [npm, "pack", AXE, "--silent"], cwd=folder, capture_output=True, text=True
    )
    if packed.returncode:
        missing_tool(f"npm could not bring {AXE}: {packed.stderr[-200:]}")
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


def show(page, path, width=1280, colours="light"):
    """Open a page at a width and in a scheme of colours."""
    look(page.driver, width, colours)
    page.open(path)


def run(page, script):
    return page.driver.execute_script(script)


def test_a_hit_leads_to_its_passage_whose_paper_has_bibtex_to_copy(page):
    show(page, "/")
    page.find("//input[@id='q']").send_keys("reciprocal rank fusion of two ranked lists\n")
    page.says("Papers 1 to", "About Fusion of")
    page.click("(//a[@class='hit-link'])[1]")
    page.says("Noël Ada Lovelace", "Outline")
    assert run(page, "return location.hash") == f"#p-{passage_id(5)}"
    assert "Ranks outdo scores" in run(page, "return document.querySelector(':target').textContent")
    run(
        page,
        "navigator.clipboard.writeText = text => { window.copied = text; return"
        " Promise.resolve(); }",
    )
    page.click("//button[@data-copy]")
    page.says("Copied.")
    assert "@misc{lovelace2024fusion," in run(page, "return window.copied")


def test_results_can_be_walked_by_keys(page):
    show(page, QUERY)

    def press(key):
        page.driver.switch_to.active_element.send_keys(key)
        return str(
            run(page, "return document.activeElement.id || document.activeElement.textContent")
        )

    first, second = press("j"), press("j")
    assert press("k") == first != second
    assert press("/") == "q"


def test_every_page_holds_in_both_colours_and_at_both_widths_and_axe_finds_no_serious_fault(
    page, axe
):
    faults = []
    for path, width, colours in product(PAGES, WIDTHS, COLOURS):
        show(page, path, width, colours)
        assert background(page.driver) == COLOURS[colours], path
        assert overflow(page.driver) <= 0, (path, width)
        run(page, axe)
        results = page.driver.execute_async_script(
            "const done = arguments[0];axe.run().then(done, error => done({violations:"
            " [{id: String(error)}]}))"
        )
        faults += [
            (path, width, colours, fault["id"], fault.get("nodes"))
            for fault in results["violations"]
            if fault.get("impact") in (None, "serious", "critical")
        ]
    assert faults == []


def test_the_server_listens_on_loopback_alone(running):
    assert set(listening(family(running.process.pid))) == {"127.0.0.1"}
