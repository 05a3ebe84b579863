"""Assets of the corpus: from sources and zips to papers, passages and who cites whom."""

from assets.stage_asset import month_asset, month_checks
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.references.stages import CITATIONS, REFERENCES
from pipeline.corpus.sources.stage import PAGES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS

pages = month_asset(PAGES)
dump_members = month_asset(DUMP_MEMBERS)
metadata = month_asset(METADATA)
papers = month_asset(PAPERS)
passages = month_asset(PASSAGES)
references = month_asset(REFERENCES)
citations = month_asset(CITATIONS)

papers_checks = month_checks(PAPERS)
passages_checks = month_checks(PASSAGES)
