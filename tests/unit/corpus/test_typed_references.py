"""Headings of lists of references that authors typed by hand."""

import pytest

from pipeline.corpus.parse.typed_references import is_title_of_references

LISTS = """
References|REFERENCES|6. References|VII. References|A References|References:|References cited
Cited references|List of References|References and Notes|References and further reading
References & Further Reading|References/Bibliography|References and suggested readings
Selected bibliography|Annotated Bibliography|Literature cited|Works cited|Literatur
Literaturverzeichnis|Literatur und Quellen|Bibliographie|Références|RÉFÉRENCES
Références bibliographiques|Bibliografía|Bibliografía y referencias|Referências|Bibliografia
Riferimenti bibliografici|Literatuurlijst|Piśmiennictwo|Literatura|Kaynakça|Irodalomjegyzék
Список литературы|Список літератури|参考文献|引用文献|参考資料|참고문헌|المراجع
"""
OTHERS = """
Reference implementation|Sources|Notes|Further reading|Literature review|Reference frames
References in C++|Referenced data sets|Quellencode|Related work and references therein
Bibliographic coupling|Literature and culture|Bibliography of a woman|Resources
"""


def headings(text):
    return [title for line in text.split("\n") for title in line.split("|") if title]


@pytest.mark.parametrize("title", headings(LISTS))
def test_a_list_of_references_is_known_by_its_heading(title):
    assert is_title_of_references(title)


@pytest.mark.parametrize("title", headings(OTHERS))
def test_other_headings_are_none_of_a_list(title):
    assert not is_title_of_references(title)
