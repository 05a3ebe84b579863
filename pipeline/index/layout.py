"""What a collection is made for, which of its points never change: vectors of one model, and how they are compressed.

Two layouts never share a collection: each has one of its own, named after the layout, and an alias says which of them
searches ask.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from pipeline.corpus.passages.text import Form
from pipeline.embedding.lexical import MEAN_LENGTH
from pipeline.embedding.lexical import VERSION as LEXICAL_VERSION

Quantization = Literal["int8", "binary", "none"]
# Names of the vectors in a collection: a model's dense and, of BGE-M3, its sparse and ColBERT vectors; stemmed words.
VectorName = Literal["dense", "lexical", "sparse", "colbert"]
DENSE: VectorName = "dense"
LEXICAL: VectorName = "lexical"
SPARSE: VectorName = "sparse"
COLBERT: VectorName = "colbert"


@dataclass(frozen=True, slots=True)
class Layout:
    """A collection's identity.

    model: whose vectors they are. dimensions: of the dense vector. sparse and colbert: whether points have the model's
    sparse and ColBERT vectors too. form: what was above a passage in the text that was embedded. mean_length: words
    of a passage that the weights of lexical vectors take for usual. lexical: version of these weights.
    """

    model: str
    dimensions: int
    sparse: bool = False
    form: Form = "sections"
    colbert: bool = False
    quantization: Quantization = "int8"
    mean_length: int = MEAN_LENGTH
    lexical: int = LEXICAL_VERSION

    def collection(self, alias: str) -> str:
        """The name of the collection of this layout, such as citeloom-all-minilm-l6-v2-1f0c2a9b."""
        content = json.dumps(asdict(self), sort_keys=True).encode()
        model = re.sub(r"[^a-z0-9.]+", "-", self.model.lower()).strip("-.")[:40]
        return f"{alias}-{model}-{hashlib.sha256(content).hexdigest()[:8]}"

    @property
    def vector_names(self) -> list[VectorName]:
        """The vectors of a point."""
        return [DENSE, LEXICAL, *([SPARSE] if self.sparse else []), *([COLBERT] if self.colbert else [])]

    def describe(self) -> str:
        """For a message."""
        return (
            f"{self.model}, {self.dimensions} dimensions, {self.form} embedded, sparse vectors "
            f"{'on' if self.sparse else 'off'}, ColBERT {'on' if self.colbert else 'off'}, "
            f"quantization {self.quantization}, lexical weights {self.lexical} for {self.mean_length} words"
        )

    @staticmethod
    def from_mapping(values: Mapping[str, Any]) -> Layout:
        """The layout that `dataclasses.asdict` wrote. Raises KeyError for what is missing."""
        return Layout(**{field.name: values[field.name] for field in fields(Layout)})
