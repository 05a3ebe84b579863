"""A page as arXiv's own site shows it: LaTeXML's article with the site around it.

The frame of 2024 was written from memory; that of 2026 has the elements of a page of September
2026, in other words: `site_2024.html` and `site_2026.html`.
"""

from pathlib import Path

SITE = "https://arxiv.org/html"


def site_page(body, arxiv_id="2610.00001"):
    """A paper's page on the site, as the site had it in 2024."""
    article = (
        '<article class="ltx_document ltx_authors_1line">'
        f'<h1 class="ltx_title ltx_title_document">A Page</h1>{body}</article>\n'
    )
    return around(article, 2024, arxiv_id).encode()


def around(page, year, arxiv_id="2610.00001"):
    """The site's page around the article of a page; links within are whole addresses there."""
    start, end = page.find("<article"), page.rfind("</article>")
    if start < 0 or end < 0:
        return page
    article = page[start : end + len("</article>")].replace(
        'href="#', f'href="{SITE}/{arxiv_id}v1#'
    )
    frame = (Path(__file__).parent / f"site_{year}.html").read_text()
    return frame.replace("ARXIV_ID", arxiv_id).replace("SITE", SITE).replace("ARTICLE", article)
