"""arXiv's archives and categories, and how their names are written.

The lists are arXiv's category taxonomy (https://arxiv.org/category_taxonomy) and the archives that
it closed (https://info.arxiv.org/help/arxiv_identifier.html), which old records still name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

_CATEGORY = re.compile(r"([a-z-]+)(?:\.([a-z-]+))?", re.IGNORECASE | re.ASCII)

# An archive without subjects is a category itself (quant-ph). astro-ph, cond-mat and physics are
# both.
SUBJECTS: Mapping[str, str] = {
    "astro-ph": "CO EP GA HE IM SR",
    "cond-mat": "dis-nn mes-hall mtrl-sci other quant-gas soft stat-mech str-el supr-con",
    "cs": (
        "AI AR CC CE CG CL CR CV CY DB DC DL DM DS ET FL GL GR GT HC IR IT LG LO MA MM MS NA NE NI"
        " OH OS PF PL RO SC SD SE SI SY"
    ),
    "econ": "EM GN TH",
    "eess": "AS IV SP SY",
    "gr-qc": "",
    "hep-ex": "",
    "hep-lat": "",
    "hep-ph": "",
    "hep-th": "",
    "math": (
        "AC AG AP AT CA CO CT CV DG DS FA GM GN GR GT HO IT KT LO MG MP NA NT OA OC PR QA RA RT SG"
        " SP ST"
    ),
    "math-ph": "",
    "nlin": "AO CD CG PS SI",
    "nucl-ex": "",
    "nucl-th": "",
    "physics": (
        "acc-ph ao-ph app-ph atm-clus atom-ph bio-ph chem-ph class-ph comp-ph data-an ed-ph flu-dyn"
        " gen-ph geo-ph hist-ph ins-det med-ph optics plasm-ph pop-ph soc-ph space-ph"
    ),
    "q-bio": "BM CB GN MN NC OT PE QM SC TO",
    "q-fin": "CP EC GN MF PM PR RM ST TR",
    "quant-ph": "",
    "stat": "AP CO ME ML OT TH",
}
CLOSED_ARCHIVES = (
    "acc-phys", "adap-org", "alg-geom", "ao-sci", "atom-ph", "bayes-an", "chao-dyn", "chem-ph",
    "cmp-lg", "comp-gas", "dg-ga", "funct-an", "mtrl-th", "patt-sol", "plasm-ph", "q-alg",
    "solv-int", "supr-con",
)  # fmt: skip
# What people write for an archive whose name is an abbreviation.
_IN_WORDS = {
    "cs": "computer science",
    "econ": "economics",
    "eess": "electrical engineering and systems science",
    "math": "mathematics",
    "q-bio": "quantitative biology",
    "q-fin": "quantitative finance",
    "stat": "statistics",
}


def normalize_category(category: str) -> str | None:
    """A category as arXiv writes it, from any case; None if the text has another form.

    Archives are in small letters, subjects of two letters in capitals (cs.CL), longer ones in small
    letters (physics.optics). Whether arXiv has such a category is for `is_category` to say.
    """
    match = _CATEGORY.fullmatch(category.strip())
    if match is None:
        return None
    archive, subject = match[1].lower(), match[2]
    if subject is None:
        return archive
    return f"{archive}.{subject.upper() if len(subject) == 2 else subject.lower()}"


def is_category(category: str) -> bool:
    """Whether arXiv has, or had, an archive or category of this normalized name."""
    archive, dot, subject = category.partition(".")
    if dot:
        return subject in SUBJECTS.get(archive, "").split()
    return archive in SUBJECTS or archive in CLOSED_ARCHIVES


def nearest_categories(text: str) -> list[str]:
    """Up to three archives or categories that a wrong name may mean, the likeliest first."""
    query = text.strip().lower()
    archive, dot, _ = query.partition(".")
    if dot and SUBJECTS.get(archive):
        names = [f"{archive}.{subject}" for subject in SUBJECTS[archive].split()]
    else:
        names = [*SUBJECTS, *CLOSED_ARCHIVES]
    by_lowercase = {name.lower(): name for name in names}
    near = [by_lowercase[name] for name in get_close_matches(query, by_lowercase, n=3, cutoff=0.6)]
    in_words = []
    if len(query) > 3:
        in_words = [name for name, words in _IN_WORDS.items() if words.startswith(query[:8])]
    return list(dict.fromkeys([*in_words, *near]))[:3]
