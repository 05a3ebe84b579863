"""What the licences of the source forbid of an export, in words that the card and the command share."""

from __future__ import annotations

from pipeline.ops.export.rights import OPEN_LICENCES, Texts

_SAMPLE = (
    "The papers are the sample corpus of citeloom: people, systems and numbers in them are invented, arXiv has never "
    "given their ids, and they are under Apache-2.0."
)
_SOURCE = (
    "The pages come from the ar5iv data set of SIGMathLing, whose licence lets one compute on them and bars "
    "republishing them; pages of later months may be arXiv's own. Most papers are on arXiv under a licence that lets "
    "arXiv alone distribute them."
)
_METADATA = (
    "The table metadata is descriptive metadata, which arXiv puts under CC0 1.0: titles, abstracts, names of authors "
    "and the like, as arXiv has them. Ids, anchors, counts, hashes and measures hold no words of a page."
)
_AGREEMENT = (
    "An author's licence does not lift what you agreed to with SIGMathLing: settle with them that words of their pages "
    "may be published before you publish these."
)
_TEXTS = {
    Texts.NONE: (
        "No words of a page are in this export, and no vectors of them, which give words away. Under these terms it "
        "may leave the machine."
    ),
    Texts.OPEN: (
        "Words and vectors are here of those papers alone whose own licence lets anyone pass them on, also changed "
        f"({', '.join(OPEN_LICENCES.values())}); of all others they are null. The column license says which it is: "
        "the authors have to be named, and what is made of a paper under CC BY-SA stays under it. It is the licence of "
        "the newest version that the metadata snapshot knows; the page may be of an earlier one."
    ),
    Texts.ALL: (
        "DO NOT PUBLISH: this export holds words and vectors of every paper, whatever its licence, e-mail addresses "
        "of authors, and what models and people wrote about papers. It is for the machine that it was made on. The "
        "column license says under which licence a row's paper is."
    ),
}


def terms(texts: Texts, *, sample: bool) -> list[str]:
    """Paragraphs that say what may leave the machine. sample: whether the papers are those of the sample corpus."""
    source = [_SAMPLE] if sample else [_SOURCE, _METADATA]
    settle = [_AGREEMENT] if texts is Texts.OPEN and not sample else []
    return [*source, _TEXTS[texts], *settle]
