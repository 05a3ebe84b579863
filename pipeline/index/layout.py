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

Quantization = Literal["int8", "binary", "none"]


@dataclass(frozen=True, slots=True)
class Layout:
    """A collection's identity.

    model: whose vectors they are. dimensions: of the dense vector. sparse_idf: whether sparse scores are multiplied by
    the terms' inverse document frequency. form: what stood above a passage in the text that was embedded. colbert:
    whether points have ColBERT vectors too.
    """

    model: str
    dimensions: int
    sparse_idf: bool
    form: str = "sections"
    colbert: bool = False
    quantization: Quantization = "int8"

    def collection(self, alias: str) -> str:
        """The name of the collection of this layout, such as citeloom-all-minilm-l6-v2-1f0c2a9b."""
        content = json.dumps(asdict(self), sort_keys=True).encode()
        model = re.sub(r"[^a-z0-9.]+", "-", self.model.lower()).strip("-.")[:40]
        return f"{alias}-{model}-{hashlib.sha256(content).hexdigest()[:8]}"

    def describe(self) -> str:
        """For a message."""
        return (
            f"{self.model}, {self.dimensions} dimensions, {self.form} embedded, sparse IDF "
            f"{'on' if self.sparse_idf else 'off'}, ColBERT {'on' if self.colbert else 'off'}, "
            f"quantization {self.quantization}"
        )

    @staticmethod
    def from_mapping(values: Mapping[str, Any]) -> Layout:
        """The layout that `dataclasses.asdict` wrote. Raises KeyError for what is missing."""
        return Layout(**{field.name: values[field.name] for field in fields(Layout)})
