"""Assets of the search index: vectors, and the audited load into Qdrant."""

from assets.stage_asset import month_asset, month_checks
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.index.stages import INDEX_RECEIPTS

embeddings = month_asset(EMBEDDINGS)
index_receipts = month_asset(INDEX_RECEIPTS)

embeddings_checks = month_checks(EMBEDDINGS)
index_receipts_checks = month_checks(INDEX_RECEIPTS)
