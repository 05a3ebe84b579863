"""Authors of real pages of LaTeXML's development version; tests/conformance scores other pages."""

from pipeline.corpus.parse import html


def test_the_development_version_of_latexml_is_read(shared_data):
    folder = shared_data / "latexml-head"
    names = ["Yoshinari Fujinuma", "Jordan Boyd-Graber", "Michael J. Paul"]
    authors = html.parse((folder / "1906.01926.html").read_bytes(), names).authors
    assert [(author.name, author.affiliations) for author in authors] == [
        ("Yoshinari Fujinuma", ("Computer Science", "University of Colorado")),
        ("Jordan Boyd-Graber", ("cs, iSchool, umiacs, lsc, University of Maryland",)),
        ("Michael J. Paul", ("Information Science", "University of Colorado")),
    ]
    authors = html.parse((folder / "2405.03064.html").read_bytes()).authors
    assert len(authors) == 6
    assert not any("Affiliation" in text for author in authors for text in author.affiliations)
