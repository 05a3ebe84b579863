"""Five real targets of related work with the works that they cite, from the data set rwsg-prv, as
tasks.
"""

import json

from pipeline.related_work.importers import NameYearCitations, item_text, make_imported_task
from pipeline.related_work.task import FileReference


def read_real_targets(shared_data, month=None):
    return [_read(file, month) for file in sorted((shared_data / "related_work").glob("*.json"))]


def _read(file, month):
    content = json.loads(file.read_bytes())
    root, works = content["root"], [_reference(leaf) for leaf in content["leaves"]]
    citations = NameYearCitations(works)
    section = citations.mark(root["relatedwork"])
    text = f"# {root['title']}\n\n{_sections(root)}"
    identifier = f"real-{file.stem}"
    return make_imported_task(
        identifier, month, root["title"], text, section, works, unmatched=citations.unmatched
    )


def _sections(paper):
    return (
        f"## Abstract\n\n{paper['abstract'].strip()}\n\n##"
        f" Introduction\n\n{paper['introduction'].strip()}"
    )


def _reference(leaf):
    title, authors, year = " ".join(leaf["title"].split()), tuple(leaf["author"]), leaf["year"]
    known = {"title": title, "authors": authors, "year": year}
    if leaf["introduction"].strip():
        return FileReference(**known, source="full_text", text=_sections(leaf))
    if leaf["abstract"].strip():
        return FileReference(**known, source="abstract", text=leaf["abstract"].strip())
    return FileReference(**known, source="item", text=item_text(authors, year, title))
