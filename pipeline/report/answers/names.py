"""Names of files of the report's pages of answers."""

from __future__ import annotations

import hashlib
import re

ANSWERS_PAGE = "answers.html"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
_LIKE_A_DIGEST = re.compile(r"-[0-9a-f]{8}$")


def question_file(question_id: str) -> str:
    """The name of a question's page: `question-<id>.html`, one per question on every file system.

    An id that another could be taken for (capitals), or that a name of ours could be, gets a digest behind it.
    """
    if _PLAIN.fullmatch(question_id) and not _LIKE_A_DIGEST.search(question_id):
        return f"question-{question_id}.html"
    readable = re.sub(r"[^a-z0-9.]+", "-", question_id.lower()).strip("-.")[:60]
    return f"question-{readable}-{hashlib.sha256(question_id.encode()).hexdigest()[:8]}.html"
