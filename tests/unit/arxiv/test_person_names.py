"""Names of people: form, parts, lists, comparison."""

from __future__ import annotations

import pytest

from pipeline.arxiv.person_names import (
    TITLES,
    KnownNames,
    PersonName,
    count_differences,
    is_name,
    parse_name,
    same_person,
    split_names,
    without_titles,
)


@pytest.mark.parametrize(
    "text",
    [
        "Ann Lee",
        "A. B. Lee",
        "Allison J.B. Chaney",
        "JOHN SMITH",
        "Hal Daumé III",
        "John Smith, Jr.",
        "Benjamin Van Durme",
        "Danny Arlen de Jesús Gómez-Ramírez",
        "Sean O’Brien",
        "N. d'Ambrumenil",
        "Rami al-Rfou",
        "Wen-Li Sørby",
        "王伟",
        "김 민준",
        "Łukasz Kaiser",
        "John “Jack” Roe",
        "Wei Wang (王伟)",
        "Иван Петров",
        "JD Smith",
    ],
)
def test_what_can_be_a_name(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ann",
        "University of X",
        "ETH Zürich",
        "Boulder, CO",
        "iSchool",
        "ann@x.edu",
        "Room 12",
        "Wand.ai",
        "Mathematics and Physics",
        "J. L.",
        "Stanford",
        "a b",
        "van der",
        "University, of, X",
        "https://x.org y",
    ],
)
def test_what_cannot_be_a_name(text: str) -> None:
    assert not is_name(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ann Lee", PersonName("Ann", "Lee")),
        ("Lee, Ann", PersonName("Ann", "Lee")),
        ("Roe, Jr., Bob J.", PersonName("Bob J.", "Roe", "Jr.")),
        ("Bob Roe, Jr.", PersonName("Bob", "Roe", "Jr.")),
        ("Hal Daumé III", PersonName("Hal", "Daumé", "III")),
        ("Benjamin Van Durme", PersonName("Benjamin", "Van Durme")),
        ("van den Berg, Jan", PersonName("Jan", "van den Berg")),
        ("Plato", PersonName("", "Plato")),
        ("", PersonName("", "")),
    ],
)
def test_a_name_has_parts(text: str, name: PersonName) -> None:
    assert parse_name(text) == name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ann Lee, Bob Roe, and Cid Moe", ["Ann Lee", "Bob Roe", "Cid Moe"]),
        ("Ann Lee & Bob Roe", ["Ann Lee", "Bob Roe"]),
        ("Lee, Ann; Roe, Bob", ["Ann Lee", "Bob Roe"]),
        ("Lee, Ann and Roe, Bob", ["Ann Lee", "Bob Roe"]),
        (
            "Lee, Ann, Roe, Bob, and Van Durme, Benjamin",
            ["Ann Lee", "Bob Roe", "Benjamin Van Durme"],
        ),
        ("Lee, A., Roe, B. J., and Moe, C.", ["A. Lee", "B. J. Roe", "C. Moe"]),
        ("Lee A, Roe BJ", ["Lee A", "Roe BJ"]),
        ("Bob Roe, Jr., Ann Lee", ["Bob Roe, Jr.", "Ann Lee"]),
        ("Ann Lee, Bob Roe and Cid Moe, Dan Poe", ["Ann Lee", "Bob Roe", "Cid Moe", "Dan Poe"]),
        ("Ann Lee et al.", ["Ann Lee"]),
        ("", []),
    ],
)
def test_a_list_of_names_is_split(text: str, names: list[str]) -> None:
    assert list(split_names(text)) == names


@pytest.mark.parametrize("example", [example for _, example in TITLES])
def test_titles_are_no_part_of_a_name(example: str) -> None:
    left = [part.strip() for part in without_titles(example).split(" and ")]
    assert left[0].strip(" ,") == "Ann Lee"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Allison J.B. Chaney", "Allison J. B. Chaney"),
        ("J. Boyd-Graber", "Jordan Boyd-Graber"),
        ("Jordan Boyd Graber", "Jordan Boyd-Graber"),
        ("João Sacramento", "Joao Sacramento"),
        ("Li Dong", "Dong Li"),
        ("David Blei", "David M. Blei"),
        ("Hal Daumé III", "Hal Daumé"),
        ("Teresa Quispe Mamani", "Teresa Quispe"),
        ("Wen-Hao Zhang", "Wenhao Zhang"),
        ("Benjamin Van Durme", "Durme Benjamin Van"),
    ],
)
def test_two_prints_of_one_name(one: str, other: str) -> None:
    assert same_person(one, other)
    assert same_person(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Wei Wang", "Wen Wang"),
        ("Ann Lee", "Ann Roe"),
        ("Ann Lee", "University of X"),
        ("", "Ann Lee"),
        ("Lee", "Ann"),
    ],
)
def test_two_names(one: str, other: str) -> None:
    assert not same_person(one, other)


def test_names_of_one_list_alone_are_counted() -> None:
    assert (
        count_differences(["J. Boyd-Graber", "Wei Wang"], ["Jordan Boyd-Graber", "Wen Wang"]) == 2
    )
    assert count_differences(["Ann Lee"], ["Ann B. Lee", "Bob Roe"]) == 1
    assert count_differences([], ["Ann Lee"]) == count_differences(["Ann Lee"], []) == 0


def test_a_known_name_is_found_in_another_print() -> None:
    known = KnownNames(["Jordan Boyd-Graber", "Wei Wang", "Wen Wang"])
    assert known.match("J. Boyd-Graber") == "Jordan Boyd-Graber"
    assert known.match("Wen Wang") == "Wen Wang"
    assert known.match("University of Wang") is None
