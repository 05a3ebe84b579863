"""A page as arXiv's own site shows it: LaTeXML's article with the site around it.

Written from memory of the site's form in 2024 and 2025: no real page could be had where this was
made.
"""

from __future__ import annotations

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta content="text/html; charset=utf-8" http-equiv="content-type"/>
<title>A Page</title>
<!--Generated on Mon Oct 5 09:00:00 2026 by LaTeXML (version 0.8.8) http://dlmf.nist.gov/LaTeXML/.-->
<meta content="width=device-width, initial-scale=1, shrink-to-fit=no" name="viewport"/>
<link href="/static/browse/0.3.4/css/ar5iv.0.7.9.min.css" rel="stylesheet" type="text/css"/>
<script src="/static/browse/0.3.4/js/addons.js"></script>
<base href="/html/{id}v1/"/></head>
<body>
<header class="desktop_header"><a href="#main">Skip to main content</a><button type="button">Dark mode</button></header>
<nav class="ltx_page_navbar"><nav class="ltx_TOC"><h2>Table of Contents</h2>
<ol class="ltx_toclist"><li class="ltx_tocentry ltx_tocentry_section"><a class="ltx_ref" href="{site}/{id}v1#S1">
<span class="ltx_text ltx_ref_title"><span class="ltx_tag ltx_tag_ref">1 </span>Methods</span></a></li></ol></nav></nav>
<div class="ltx_page_main">
<div class="ltx_page_content">
<div class="package-alerts ltx_document" role="status" aria-label="Conversion errors have been found">
<button aria-label="Dismiss alert" onclick="closePopup()"><svg width="20" height="20"><path d="M4 4 L 16 16"></path>
</svg></button><p>HTML conversions <a href="https://info.arxiv.org/about.html">sometimes display errors</a>.</p>
<ul aria-label="Unsupported packages used in this paper"><li>failed: quillmargin</li></ul></div>
<div id="target-section" class="section"><a id="license-tr" href="https://info.arxiv.org/">License: CC BY</a>
<div id="watermark-tr">arXiv:{id}v1 [cs.CL] 05 Oct 2026</div></div>
<script>function closePopup() {{ if (1 < 2) document.querySelector(".package-alerts").remove(); }}</script>
"""
_FOOT = """</div>
<footer class="ltx_page_footer"><div class="ltx_page_logo">Generated on Mon Oct 5 by LaTeXML</div></footer>
</div>
<footer id="footer" class="ltx_document"><h2>Instructions for reporting errors</h2><p>We are improving HTML papers.</p>
<ul><li>Click the "Report Issue" button.</li></ul></footer>
<div class="modal" role="dialog"><form><label for="x">Description</label><textarea id="x"></textarea></form></div>
</body></html>
"""
SITE = "https://arxiv.org/html"


def site_page(body: str, arxiv_id: str = "2610.00001", title: str = "A Page") -> bytes:
    """A paper's page on the site; links within it are whole addresses, as the site writes them."""
    article = (
        '<article class="ltx_document ltx_authors_1line">'
        f'<h1 class="ltx_title ltx_title_document">{title}</h1>{body}</article>\n'
    )
    linked = article.replace('href="#', f'href="{SITE}/{arxiv_id}v1#')
    return (_HEAD.format(id=arxiv_id, site=SITE) + linked + _FOOT).encode()
