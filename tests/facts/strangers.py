"""Papers of strangers: real sources, converted here, and what the reader of LaTeX takes from them.

The reader knows the LaTeX of the suite's own sources. What it does not know in a stranger's, such
as a delimiter that it declares, becomes a fact that no page holds: a share here is a bound from below.
"""

import re
import tempfile
from pathlib import Path

from pipeline.corpus.parse import html
from pipeline.corpus.sources.archives import SourceError, choose_main_file, sources_of_month, unpack
from pipeline.corpus.sources.converter import find_converter
from pipeline.settings import load_settings
from tests.facts.facts import facts_of
from tests.facts.latex import group, read_source

_INPUT = re.compile(r"\\(?:input|include)\s*\{([^{}]+)\}")
_COMMENT = re.compile(r"(?<!\\)%.*\n?")
_MACRO = re.compile(
    r"\\(?:(?:(?:re|provide)?new|provide|re)command\*?|DeclareMathOperator\*?|def)\s*\{?(\\[A-Za-z]+)\}?"
    r"\s*(?:\[(\d)\]|((?:#\d)+))?\s*(?=\{)"
)


def strangers(folder, month, bindings, ids):
    """(arXiv id, facts; or why there are none) of each of these papers that gives a page."""
    converter = find_converter(load_settings(_env_file=None, bindings=bindings))
    sources = [source for source in sources_of_month(folder, month)[0] if source.arxiv_id in ids]
    for source in sources:
        with tempfile.TemporaryDirectory() as scratch:
            paper, out = Path(scratch, "paper"), Path(scratch, "out")
            paper.mkdir()
            out.mkdir()
            try:
                unpack(source.read(), paper)
                main_file, _ = choose_main_file(paper)
                page = converter.convert(paper, main_file, out).page
            except SourceError:
                continue
            yield source.arxiv_id, _facts(flatten(paper / main_file, paper), page)


def _facts(tex, page):
    try:
        source = read_source(tex)
    except (ValueError, IndexError) as error:
        return f"the reader stops: {type(error).__name__}: {str(error)[:80]}"
    source.drop_citations()
    return list(facts_of(source, html.parse(page), {}, ()))


def flatten(file, folder, depth=9):
    """The LaTeX of a file with that of the files it reads, and its own macros written out."""
    tex = _inputs_read(file, folder, depth)
    macros = {}
    for macro in _MACRO.finditer(tex):
        count = int(macro[2] or len(macro[3] or "") // 2)
        macros[macro[1]] = count, group(tex, macro.end())[0].replace("\\xspace", "")
    if not macros:
        return tex
    head, begin, body = tex.partition("\\begin{document}")
    for _ in range(3):  # macros in macros
        body = _written_out(body, macros)
    return head + begin + body


def _written_out(tex, macros):
    names = "|".join(re.escape(name) for name in macros)
    used = re.compile(rf"({names})(?![A-Za-z])(?:\{{\}})?")
    pieces, at = [], 0
    while macro := used.search(tex, at):
        pieces.append(tex[at : macro.start()])
        at = macro.end()
        count, text = macros[macro[1]]
        for number in range(1, count + 1):
            argument = re.compile(r"\s*(?:(?=\{)|(\\[A-Za-z]+|.))").match(tex, at)
            given, at = (argument[1], argument.end()) if argument[1] else group(tex, argument.end())
            text = text.replace(f"#{number}", given)
        pieces.append(text)
    return "".join([*pieces, tex[at:]])


def _inputs_read(file, folder, depth):
    tex = _COMMENT.sub("", file.read_text("utf-8", "replace"))

    def read(match):
        name = match[1].strip()
        for path in (folder / name, folder / f"{name}.tex"):
            if depth and path.is_file():
                return _inputs_read(path, folder, depth - 1)
        return ""

    return _INPUT.sub(read, tex)
