"""Answers of arXiv that are meant to harm, or are no answers at all: refused in bounded memory,
whoever sent them.
"""

import pytest

from pipeline.arxiv.api import read_feed
from pipeline.arxiv.rate_limited_client import BrokenAnswer, parse_xml
from pipeline.errors import PermanentFailure
from tests.fake_arxiv import FEED, entry
from tests.processes import in_new_process

pytestmark = pytest.mark.slow

ROOT = "{http://www.w3.org/2005/Atom}feed"


def with_entities(declarations, content):
    return f"<!DOCTYPE feed [{declarations}]>{FEED.format(0, content)}".encode()


def laughs():
    """A billion laughs and some more: 1 KB that would become 10 TB."""
    entities = [f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 12)]
    return with_entities('<!ENTITY e0 "ha">' + "".join(entities), "&e11;")


def blow_up():
    """One entity of 100 KB, named 10,000 times."""
    return with_entities(f'<!ENTITY e "{"a" * 100_000}">', "&e;" * 10_000)


def elsewhere():
    """An entity that is a file of this machine."""
    return with_entities('<!ENTITY e SYSTEM "file:///etc/passwd">', "&e;")


def deep():
    return FEED.format(0, "<a>" * 1_000_000 + "</a>" * 1_000_000).encode()


def many():
    return FEED.format(0, "<a/>" * 7_000_000).encode()


def long():
    return FEED.format(0, f"<title>{'a' * 30_000_000}</title>").encode()


def attributes():
    names = " ".join(f'a{number}="1"' for number in range(1_000_000))
    return FEED.format(0, f"<a {names}>").encode()


HOSTILE = {
    "laughs": (laughs, PermanentFailure),
    "blow_up": (blow_up, PermanentFailure),
    "elsewhere": (elsewhere, PermanentFailure),
    "deep": (deep, BrokenAnswer),
    "many": (many, BrokenAnswer),
    "long": (long, BrokenAnswer),
    "attributes": (attributes, BrokenAnswer),
}


def refusal_of(body):
    try:
        read_feed(body)
    except (BrokenAnswer, PermanentFailure) as error:
        return type(error)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_refused_within_200_mb(name):
    make, refusal = HOSTILE[name]
    found, megabytes = in_new_process(refusal_of, make())
    assert found is refusal
    assert megabytes < 200


EMPTY = FEED.format(0, "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00" * 1000,
        b"Rate exceeded.",
        b"<html><body>Sorry</body></html>",
        b"\xef\xbb\xbf<!DOCTYPE html><html></html>",
        b"<?xml version='1.0'?>\n<!-- by a proxy -->\n<!DOCTYPE html SYSTEM 'x.dtd'><html/>",
        EMPTY.encode()[:-3],
        b"<?xml version='1.0' encoding='no-such'?>" + EMPTY.encode(),
        EMPTY.encode("utf-16")[:-9],
        FEED.format(0, "\x01").encode(),
        b"<?xml version='1.0' encoding='UTF-8'?>" + FEED.format(0, "caf\xe9").encode("latin-1"),
    ],
)
def test_what_is_no_whole_xml_may_be_better_the_next_time(body):
    with pytest.raises(BrokenAnswer):
        parse_xml(body, ROOT)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252", "us-ascii"]
)
def test_an_answer_in_any_encoding_that_it_declares_is_read(encoding):
    title = "On Gahler" if encoding == "us-ascii" else "On Gähler"
    told = entry("2403.00001").replace("<title>On\n  2403.00001", f"<title>{title}")
    head = f"<?xml version='1.0' encoding='{encoding.removesuffix('-sig')}'?>"
    feed = head + FEED.format(1, told)
    assert read_feed(feed.encode(encoding))["2403.00001"].title == title


def test_measures_leave_room_for_the_largest_true_answer():
    authors = "<author><name>A. One of a large collaboration</name></author>" * 3_000
    body = FEED.format(100, f"<entry>{authors}</entry>" * 100).encode()
    _, *entries = parse_xml(body, ROOT)
    assert len(entries) == 100


def test_a_paper_that_is_there_twice_counts_as_its_newest_version():
    feed = FEED.format(2, entry("2403.00001", 2) + entry("2403.00001", 1))
    assert read_feed(feed.encode())["2403.00001"].version == 2
