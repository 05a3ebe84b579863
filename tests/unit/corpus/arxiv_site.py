"""A page as arXiv's own site shows it: LaTeXML's article with the site around it.

The frame of 2024 was written from memory; that of 2026 has the elements of a page of September
2026, in other words.
"""

_HEAD_2024 = """<!DOCTYPE html>
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
_FOOT_2024 = """</div>
<footer class="ltx_page_footer"><div class="ltx_page_logo">Generated on Mon Oct 5 by LaTeXML</div></footer>
</div>
<footer id="footer" class="ltx_document"><h2>Instructions for reporting errors</h2><p>We are improving HTML papers.</p>
<ul><li>Click the "Report Issue" button.</li></ul></footer>
<div class="modal" role="dialog"><form><label for="x">Description</label><textarea id="x"></textarea></form></div>
</body></html>
"""
_HEAD_2026 = """<!DOCTYPE html><html lang="en" data-theme="light">
<head>
<meta http-equiv="content-type" content="text/html; charset=UTF-8">
<title>A Page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/browse/0.3.4/css/arxiv-html-papers.css">
<script src="/static/browse/0.3.4/js/arxiv-html-papers.js"> </script>
<script>initializeReadingPreferences();</script>
</head>
<body>
<dialog id="modal-form" aria-labelledby="modal-title" closedby="any">
  <form id="modal-form-content" method="dialog"><header class="modal-header"><h5 id="modal-title">Report an Issue</h5>
  <button type="submit" formnovalidate="" aria-label="Close">×</button></header>
  <label for="form_title">Title:</label><input id="form_title" name="form_title" required="" placeholder="Title">
  <textarea id="description" required="" maxlength="500" placeholder="at most 500 characters"></textarea></form>
</dialog><div class="ds-announcement" id="announcement-banner" role="region">
  <img src="https://arxiv.org/static/base/1.0.1/images/icon.svg" alt="" width="300">
  <span class="ds-announcement-text">An announcement of the site.</span></div>
<header class="arxiv-html-header"><div class="html-header-logo"><a href="https://arxiv.org/"><span class="sr-only">Back
  to the site</span></a></div><!--TOC, dark mode, links-->
  <nav class="html-header-nav"><a class="header-button" href="https://arxiv.org/abs/{id}v1">
  <svg role="presentation" viewBox="0 0 512 512"><path d="M502 278c12-12 12-32 0-45z"></path></svg>
  <span class="desktop-only">Back to the abstract</span></a></nav>
</header><nav class="ltx_page_navbar"><nav class="ltx_TOC"><ol class="ltx_toclist">
<li class="ltx_tocentry ltx_tocentry_abstract"><a href="{site}/{id}v1#abstract1" title="In A Page" class="ltx_ref"><span
 class="ltx_text ltx_ref_title">Abstract</span></a></li></ol></nav></nav>
<div class="ltx_page_main">
<div id="infobox" class="infobox"><a id="license-tr" href="https://info.arxiv.org/help/license">License: CC BY 4.0</a>
  <div id="watermark-tr">
arXiv:{id}v1 [cs.CL] 02 Sep 2026</div>
</div><div class="ltx_page_content">
"""
_FOOT_2026 = """</div>
</div><footer class="ltx_page_footer"><div class="ltx_page_logo">Made by LaTeXML</div>
  <div class="keyboard-glossary"><h2>How to report errors</h2><p>Choose one of these ways:</p>
  <ul><li>Press the button <span class="mobile-only">(<svg role="presentation" viewBox="0 0 640 640"><path d="M2 2z"></path>
  </svg>)</span> in the header.</li></ul></div>
</footer><footer class="ds-site-footer"><div class="ds-site-footer-ack">Thanks to <strong>all funders</strong>.</div></footer>
<div id="fixed-buttons-container"><a class="header-button" title="Leave the reading mode"><svg viewBox="0 0 4 4"></svg></a></div>

</body></html>
"""
_FRAMES = {2024: (_HEAD_2024, _FOOT_2024), 2026: (_HEAD_2026, _FOOT_2026)}
SITE = "https://arxiv.org/html"


def site_page(body, arxiv_id="2610.00001", title="A Page", year=2024):
    """A paper's page on the site, as the site had it in a year."""
    article = (
        '<article class="ltx_document ltx_authors_1line">'
        f'<h1 class="ltx_title ltx_title_document">{title}</h1>{body}</article>\n'
    )
    return around(article, year, arxiv_id).encode()


def around(page, year, arxiv_id="2610.00001"):
    """The site's page around the article of a page; links within are whole addresses there."""
    start, end = page.find("<article"), page.rfind("</article>")
    if start < 0 or end < 0:
        return page
    article = page[start : end + len("</article>")].replace(
        'href="#', f'href="{SITE}/{arxiv_id}v1#'
    )
    head, foot = _FRAMES[year]
    return f"{head.format(id=arxiv_id, site=SITE)}{article}\n{foot}"
