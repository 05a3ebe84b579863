"""Pages as another version of LaTeXML, or arXiv's site, would write them: other markup for the same
text.

The forms are those of LaTeXML's development version of 2026, of latexml-oxide, and of arXiv's pages
of September 2026.
"""

import random
import re
from functools import cache

from tests.conftest import PROJECT
from tests.unit.corpus.arxiv_site import around
from tests.unit.corpus.building import pages_of

SHARED = PROJECT.parent / "shared" / "data"

_TAG = re.compile(r"<([A-Za-z][\w:-]*)((?:\s+[\w:-]+=\"[^\"]*\")+)(\s*/?)>")
_ATTRIBUTE = re.compile(r"[\w:-]+=\"[^\"]*\"")
_PARAGRAPH = re.compile(r'(<p\b[^>]*class="ltx_p"[^>]*>)(.*?)(</p>)', re.DOTALL)
_LINK = re.compile(r'(<a\b[^>]*href="#bib[^"]*"[^>]*>[^<]*</a>)')
_TABULAR = re.compile(r'<table\b[^>]*class="ltx_tabular.*?</table>', re.DOTALL)
_PARA = re.compile(r'<div\b[^>]*class="ltx_para[ "]')
_NAMES = {
    "\N{NO-BREAK SPACE}": ("&nbsp;", "&#160;", "&#xA0;"),
    "–": ("&ndash;", "&#8211;"),
    "—": ("&mdash;", "&#x2014;"),
    "’": ("&rsquo;", "&#8217;"),
    "“": ("&ldquo;", "&#8220;"),
    "”": ("&rdquo;", "&#8221;"),
    "é": ("&eacute;", "&#233;"),
    "ü": ("&uuml;", "&#xfc;"),
}
# Classes that LaTeXML adds to elements without another meaning, and one that nobody knows.
_EXTRA = ("ltx_centering", "ltx_noindent", "ltx_align_center", "ltx_novelty", "ltx_flex_size_1")
UNKNOWN_TEXT = "zebras quagga okapi unheard words"


def _some(rng, share=0.5):
    return lambda: rng.random() < share


def attribute_order(page, rng):
    """Attributes in another order."""

    def shuffled(match):
        attributes = _ATTRIBUTE.findall(match[2])
        rng.shuffle(attributes)
        return f"<{match[1]} {' '.join(attributes)}{match[3]}>"

    return _TAG.sub(shuffled, page)


def entities(page, rng):
    """Letters as entities, each in one of its spellings."""
    start = page.find("<body")
    letters = re.compile("|".join(_NAMES))
    return page[:start] + letters.sub(lambda match: rng.choice(_NAMES[match[0]]), page[start:])


def intent(page, rng):
    """MathML with intents and arguments, as for readers aloud."""
    page = re.sub(
        r"<math ", lambda _: rng.choice(('<math intent=":literal" ', "<math ")), page
    ).replace("<mrow>", '<mrow intent="$a" arg="b">')
    return re.sub(r"(<math [^>]*)>", r'\1 data-latex="x">', page)


def site_frame(page, rng):
    """The site around the article, and links as whole addresses."""
    return around(page, rng.choice((2024, 2026)))


def whole_addresses(page, rng):
    """Links within the page as whole addresses."""
    return page.replace('href="#', 'href="https://arxiv.org/html/2609.00001v1#')


def more_classes(page, rng):
    """One more class at some elements, known or not."""
    chosen = _some(rng, 0.2)
    return re.sub(
        r'class="(ltx_(?:p|para|section|td|tr|text|emph|bibitem|bibblock|tabular|item|cite|ref)\b)',
        lambda match: f'class="{match[1]} {rng.choice(_EXTRA)}' if chosen() else match[0],
        page,
    )


def unknown_inline(page, rng):
    """Text in elements whose class nobody knows."""
    chosen = _some(rng)
    return re.sub(
        r'class="ltx_text(?=[ "])',
        lambda match: 'class="ltx_wording' if chosen() else match[0],
        page,
    )


def unknown_block(page, rng):
    """A block that nobody knows, with text of its own."""
    places = [match.start() for match in _PARA.finditer(page)]
    if not places:
        return page
    at = rng.choice(places)
    block = f'<div class="ltx_novelty"><p class="ltx_p">{UNKNOWN_TEXT}</p></div>'
    return page[:at] + block + page[at:]


def wrapped_words(page, rng):
    """The words of a paragraph within one more element."""
    chosen = _some(rng)
    return _PARAGRAPH.sub(
        lambda match: (
            f'{match[1]}<span class="ltx_text">{match[2]}</span>{match[3]}'
            if chosen()
            else match[0]
        ),
        page,
    )


def wrapped_blocks(page, rng):
    """Tables within boxes of a flexible layout."""
    chosen = _some(rng)

    def wrapped(match):
        inner = f'<div class="ltx_flex_figure"><div class="ltx_flex_cell">{match[0]}</div></div>'
        return inner if chosen() and match[0].count("<table") == 1 else match[0]

    return _TABULAR.sub(wrapped, page)


def wrapped_links(page, rng):
    """Links of citations within one more element."""
    chosen = _some(rng)
    return _LINK.sub(
        lambda match: f'<span class="ltx_text">{match[0]}</span>' if chosen() else match[0], page
    )


def white_space(page, rng):
    """Line breaks between blocks, and where a footnote begins."""
    page = re.sub(r"(</(?:p|div|section|figure|li|tr|table)>)[ \n]*", r"\1\n   \n", page)
    page = re.sub(r"(<(?:section|div|figure|ul|ol|tbody|tr)\b[^>]*>)[ \n]*", r"\1\n  ", page)
    return page.replace('</sup><span class="ltx_tag ltx_tag_note">', "</sup>\n  "
                        '<span class="ltx_tag ltx_tag_note">')  # fmt: skip


def heading_levels(page, rng):
    """Headings one level deeper, as where a page has no title of its own."""
    return re.sub(
        r"<(/?)h([2-5])\b(.*?)>", lambda match: f"<{match[1]}h{int(match[2]) + 1}{match[3]}>", page
    )


def other_elements(page, rng):
    """The same classes at other elements: `div` for `section` and `figure`, `span` for `cite`."""
    pairs = (("section", "div"), ("figure", "div"), ("figcaption", "div"), ("cite", "span"))
    for name, other in rng.sample(pairs, 2):
        page = re.sub(rf"<(/?){name}\b", rf"<\1{other}", page)
    return page


def front_matter(page, rng):
    """Front matter of May 2026: named contacts, names beside their ORCID, ids at the abstract."""
    page = re.sub(
        r'(<span class="ltx_contact ltx_role_(affiliation|email|address)">)'
        r'(?!\s*<span class="ltx_contact_name")',
        lambda match: f'{match[1]}<span class="ltx_contact_name">{match[2].title()}:&nbsp;</span>',
        page,
    )
    page = re.sub(
        r'<span class="ltx_personname">((?:(?!</?span).)*?)</span>',
        r'<span class="ltx_annotated_personname"><span class="ltx_personname">\1</span></span>',
        page,
        flags=re.DOTALL,
    )
    return page.replace('<div class="ltx_abstract">', '<div id="abstract1" class="ltx_abstract">')


def publication_notes(page, rng):
    """Publication data of 2026 behind the title, which is no text of the paper."""
    notes = (
        '<span class="ltx_pubnotes ltx_pubnotes_meta"><span class="ltx_pubnotes_content">'
        '<span class="ltx_pubnote ltx_role_copyright"><span class="ltx_note_name">Copyright: '
        "</span>none</span></span></span>"
    )
    return page.replace("</h1>", f"</h1>{notes}", 1)


def title_notes(page, rng):
    """A note on the title, within the heading as since May 2026."""
    note = (
        '<span class="ltx_pubnotes"><span class="ltx_pubnotes_content">'
        '<span class="ltx_pubnote ltx_role_thanks"><span class="ltx_note_name">Thanks:&nbsp;</span>'
        f"{UNKNOWN_TEXT}</span></span></span>"
    )
    return re.sub(
        r'(<h1 class="ltx_title ltx_title_document">.*?)(</h1>)',
        lambda match: f"{match[1]}{note}{match[2]}",
        page,
        count=1,
        flags=re.DOTALL,
    )


def author_notes(page, rng):
    """Thanks of the first author as a contact, as since May 2026."""
    contact = (
        '<span class="ltx_author_notes"><span class="ltx_author_notes_content">'
        '<span class="ltx_contact ltx_role_thanks"><span class="ltx_contact_name">Thanks:&nbsp;'
        f"</span>{UNKNOWN_TEXT}</span></span></span>"
    )
    return re.sub(
        r'(<span class="ltx_personname">(?:(?!</?span).)*?</span>)(?!\s*<span class="ltx_author_n)',
        lambda match: match[1] + contact,
        page,
        count=1,
        flags=re.DOTALL,
    )


def fewer_ids(page, rng):
    """Elements within a sentence without ids."""
    return re.sub(r'<(span|em|p|td|th|tr) id="[^"]*"', r"<\1", page)


def fewer_classes(page, rng):
    """Only the first of several classes, where the others repeat what the place says."""
    page = re.sub(
        r" ltx_(?:title|tag|theorem)_(?:section|subsection|subsubsection|appendix)\b", "", page
    )
    return re.sub(
        r" ltx_(?:citemacro_\w+|align_\w+(?::\S)?|role_refnum|font_(?:bold|typewriter))(?![\w-])",
        "",
        page,
    )


def span_tables(page, rng):
    """Tables whose rows and cells are spans, as LaTeXML writes them within a line."""
    names = re.compile(r"<(/?)(?:table|tbody|thead|tfoot|tr|td|th)\b")
    return _TABULAR.sub(
        lambda match: (
            names.sub(r"<\1span", match[0]) if match[0].count("<table") == 1 else match[0]
        ),
        page,
    )


def foreign_objects(page, rng):
    """HTML within SVG with its size as custom properties, as since 2025."""
    return re.sub(
        r"<foreignObject [^>]*>",
        '<foreignObject style="--ltx-fo-width:5em;--ltx-fo-height:1em" height="9" overflow="visible"'
        ' transform="matrix(1 0 0 -1 0 7)" width="70">',
        page,
    )


def comments(page, rng):
    """Comments between blocks."""
    return _PARA.sub(lambda match: f"<!-- a comment -->{match[0]}", page, count=2)


# What each may change: nothing at all, the account alone (what counts as seen), or words too.
WHOLLY_SAME = (
    attribute_order, entities, intent, more_classes, unknown_inline, whole_addresses, white_space,
    heading_levels, wrapped_words, wrapped_blocks, wrapped_links, other_elements, comments,
    fewer_ids, fewer_classes, span_tables, foreign_objects,
)  # fmt: skip
SAME_TEXT = (site_frame, front_matter, publication_notes)
MORE_TEXT = (unknown_block, title_notes, author_notes)
MUTATIONS = (*WHOLLY_SAME, *SAME_TEXT, *MORE_TEXT)


@cache
def sample_pages():
    """The pages of the repository: the sample corpus, the styles, and the facts suite's."""
    examples = PROJECT / "examples"
    styles = [
        (page.stem, page.read_bytes()) for page in sorted((examples / "styles/pages").glob("*"))
    ]
    return (*pages_of(examples / "dump"), *styles, *pages_of(examples / "facts"))


@cache
def given_pages():
    """The real pages in shared/data, where it is at hand."""
    folders = [SHARED / name for name in ("dump", "dump2", "dump3")]
    pages = [page for folder in folders if folder.is_dir() for page in pages_of(folder)]
    newest = sorted((SHARED / "latexml-head").glob("*.html"))
    return (*pages, *((page.stem, page.read_bytes()) for page in newest))


def mutate(content, mutations, seed):
    """A page after mutations, the same for the same seed."""
    rng, page = random.Random(seed), content.decode("utf-8", "replace")
    for mutation in mutations:
        page = mutation(page, rng)
    return page.encode()


def texts(paper):
    """What a reader sees of a paper: title, abstract, authors, headings, blocks, references."""
    return (
        paper.title,
        paper.abstract,
        paper.authors,
        [(section.title, section.path) for section in paper.sections],
        [(block.kind, block.section_path, block.text, block.cited_keys) for block in paper.blocks],
        paper.bibliography,
    )


def words(paper):
    """The words of a paper in their order, without those of UNKNOWN_TEXT."""
    blocks = [
        word for block in paper.blocks for word in block.text.replace(UNKNOWN_TEXT, " ").split()
    ]
    items = [item.raw for item in paper.bibliography]
    return [*(paper.title or "").split(), *(paper.abstract or "").split(), *blocks, *items]


def lost_outside_ledger(before, after):
    """Characters that a mutation made vanish without an entry in the ledger; 0 for the best."""
    unexplained = [
        paper.losses.get("unaccounted", 0) + max(0, _balance(paper)) for paper in (before, after)
    ]
    return max(0, unexplained[1] - unexplained[0])


def _balance(paper):
    return paper.chars_seen - paper.chars_kept - sum(paper.losses.values())
