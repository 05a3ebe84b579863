"""arXiv's terms for fetching pages, shown to the user before the first request.

Sources: https://info.arxiv.org/help/api/tou.html, https://info.arxiv.org/help/bulk_data.html,
https://info.arxiv.org/help/robots.html, read in the versions of 2025.
"""

from __future__ import annotations

TERMS = """\
Fetching pages from arXiv is off until you accept its terms. In short:
- Rate: at most one request in three seconds over one connection, for all machines under your control together; citeloom
  keeps to that on this machine, and you on the others. Indiscriminate automated downloads are not permitted, and nobody
  should fetch the whole corpus so: it is for catching up with new months. arXiv denies access to those who go on.
- Copyright stays with the authors or their publishers; arXiv cannot pass it on. You may keep and use what you fetch for
  personal use or research. You must not store and serve it to others, or republish it, unless the paper's own licence
  or its copyright holder allows that. What you build from full texts must link back to arXiv.
- Set CITELOOM_ARXIV_USER_AGENT to a contact, so that arXiv can reach you. For harvesting, arXiv asks for its mirror
  export.arxiv.org: if that serves the pages, set CITELOOM_HTML_URL=https://export.arxiv.org/html.
The whole terms: https://info.arxiv.org/help/api/tou.html and https://info.arxiv.org/help/bulk_data.html
To accept them: give the option --accept-terms"""
