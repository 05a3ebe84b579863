"""Points as a Qdrant server reads them, composed from columns: the message UpsertPoints for gRPC, JSON for HTTP.

No number becomes a Python object, while qdrant-client makes one of each of a point's 1,024 floats. For gRPC, vectors
are copied as they lie in memory; field numbers are those of Qdrant's points.proto, which never change, and a test
reads the bytes back with qdrant-client's classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipeline.index.passage_index import COLBERT, DENSE, LEXICAL, SPARSE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.sparse import SparseRows
    from pipeline.index.batch import PointBatch

# UpsertPoints, PointStruct, Vectors, NamedVectors.
_COLLECTION, _WAIT, _POINTS = 1, 2, 3
_ID, _PAYLOAD, _VECTORS = 1, 3, 4
_UUID, _NAMED, _ENTRIES = 2, 2, 1
# Of a map's entry, which is a message too.
_KEY, _VALUE = 1, 2
# Vector, and the kinds of vectors.
_OF_DENSE, _OF_SPARSE, _OF_MANY = 101, 102, 103
_NUMBERS, _INDICES, _ROWS = 1, 2, 1


def upsert_message(collection: str, points: PointBatch) -> bytes:
    """An UpsertPoints message that asks for an answer only when the points are in."""
    head = _field(_COLLECTION, collection.encode()) + _varint(_WAIT << 3) + b"\x01"
    payloads, vectors = _Payloads(), _vectors(points)
    ids = (_field(_ID, _field(_UUID, identifier.encode())) for identifier in points.ids)
    parts = zip(ids, map(payloads.encode, points.payloads), vectors, strict=True)
    return b"".join([head, *(_field(_POINTS, b"".join(point)) for point in parts)])


def upsert_body(points: PointBatch) -> bytes:
    """The body of an upsert over HTTP. Floats have the fewest digits that give back the same 32 bits."""
    import numpy as np
    import orjson

    vectors: dict[str, Any] = {
        DENSE: np.ascontiguousarray(points.dense),
        LEXICAL: [_terms(points.lexical, number) for number in range(len(points))],
    }
    if points.sparse is not None:
        vectors[SPARSE] = [_terms(points.sparse, number) for number in range(len(points))]
    if points.colbert is not None:
        vectors[COLBERT] = [points.tokens(number) for number in range(len(points))]
    batch = {"ids": list(points.ids), "vectors": vectors, "payloads": list(points.payloads)}
    return orjson.dumps({"batch": batch}, option=orjson.OPT_SERIALIZE_NUMPY)


def _terms(rows: SparseRows, number: int) -> dict[str, Any]:
    vector = rows.row(number)
    return {"indices": vector.ids, "values": vector.weights}


class _Payloads:
    """Payloads as map entries. Passages of a paper share most of theirs, so an entry is made once in a batch."""

    def __init__(self) -> None:
        from qdrant_client.conversions.conversion import json_to_value

        self._value = json_to_value
        self._made: dict[tuple[str, Hashable], bytes] = {}

    def encode(self, payload: Mapping[str, Any]) -> bytes:
        """The entries of one point."""
        return b"".join([self._entry(key, value) for key, value in payload.items()])

    def _entry(self, key: str, value: Any) -> bytes:
        identity = _identity(key, value)
        if identity is None:
            return self._made_anew(key, value)
        made = self._made.get(identity)
        if made is None:
            made = self._made[identity] = self._made_anew(key, value)
        return made

    def _made_anew(self, key: str, value: Any) -> bytes:
        content = self._value(value).SerializeToString()
        return _field(_PAYLOAD, _field(_KEY, key.encode()) + _field(_VALUE, content))


def _identity(key: str, value: Any) -> tuple[str, Hashable] | None:
    """What tells an entry from others; None where equal values may differ on the wire, as 1, 1.0 and True do."""
    kind = type(value)
    if kind is str or kind is int:
        return key, value
    if kind is list and all(type(each) is str for each in value):
        return key, tuple(value)
    return None


def _vectors(points: PointBatch) -> Iterator[bytes]:
    """Each point's named vectors."""
    named = [_framed(DENSE, _dense(points)), _framed(LEXICAL, _sparse(points.lexical))]
    if points.sparse is not None:
        named.append(_framed(SPARSE, _sparse(points.sparse)))
    if points.colbert is not None and points.colbert_offsets is not None:
        named.append(_framed(COLBERT, _many(points.colbert, points.colbert_offsets)))
    for entries in zip(*named, strict=True):
        yield _field(_VECTORS, _field(_NAMED, b"".join(entries)))


def _framed(name: str, vectors: Iterator[bytes]) -> Iterator[bytes]:
    """Vectors under a name."""
    key = _field(_KEY, name.encode())
    for vector in vectors:
        yield _field(_ENTRIES, key + _field(_VALUE, vector))


def _dense(points: PointBatch) -> Iterator[bytes]:
    content, size = _floats(points.dense), points.dense.shape[1] * 4
    for start in range(0, len(points) * size, size):
        yield _field(_OF_DENSE, _field(_NUMBERS, content[start : start + size]))


def _sparse(rows: SparseRows) -> Iterator[bytes]:
    weights = _floats(rows.weights)
    indices, ends = _varints(rows.ids)
    offsets = rows.offsets.tolist()
    # Where the packed ids of each point begin and end, in bytes.
    bounds = [0 if not offset else ends[offset - 1] for offset in offsets]
    for number in range(len(rows)):
        numbers = _field(_NUMBERS, weights[offsets[number] * 4 : offsets[number + 1] * 4])
        yield _field(_OF_SPARSE, numbers + _field(_INDICES, indices[bounds[number] : bounds[number + 1]]))


def _many(tokens: NDArray[np.float32], offsets: NDArray[np.int64]) -> Iterator[bytes]:
    """Vectors that are lists of rows: the rows of all points are framed in one array, and cut from it."""
    import numpy as np

    content, size = _floats(tokens), tokens.shape[1] * 4
    prefix = _tag(_NUMBERS) + _varint(size)
    prefix = _tag(_ROWS) + _varint(len(prefix) + size) + prefix
    rows = np.empty((len(tokens), len(prefix) + size), np.uint8)
    rows[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    rows[:, len(prefix) :] = np.frombuffer(content, np.uint8).reshape(len(tokens), size)
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield _field(_OF_MANY, rows[start:end].tobytes())


def _floats(numbers: NDArray[np.float32]) -> memoryview:
    """Numbers as they are sent: 32 bits each, little-endian."""
    import numpy as np

    return np.ascontiguousarray(numbers, "<f4").reshape(-1).view(np.uint8).data


def _varints(numbers: NDArray[np.uint32]) -> tuple[bytes, list[int]]:
    """Numbers in groups of seven bits, lowest first, as protobuf packs them; and where each ends, in bytes."""
    import numpy as np

    lengths = np.ones(len(numbers), np.int64)
    for bits in (7, 14, 21, 28):
        lengths += numbers >> bits > 0
    ends = np.cumsum(lengths)
    packed = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for place in range(int(lengths.max(initial=0))):
        there = lengths > place
        more = np.where(lengths[there] > place + 1, 0x80, 0)
        packed[(ends - lengths)[there] + place] = (numbers[there] >> (7 * place) & 0x7F) | more
    return packed.tobytes(), ends.tolist()


def _field(number: int, content: bytes | memoryview) -> bytes:
    """A field that has a length: text, bytes or a message."""
    return b"".join((_tag(number), _varint(len(content)), content))


def _tag(number: int) -> bytes:
    return _varint(number << 3 | 2)


# Nearly all are tags and lengths, of which there are few: 21 microseconds a point came down to 15.
@lru_cache(maxsize=1 << 13)
def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
