"""The README's table of troubles: each is brought about, and gone once what its row says was typed.

Half a minute of processor time, hence of `make test-faults`.
"""

from __future__ import annotations

import pytest

from tests.assets.test_operations_chapter import BLOCKS, MENDED, TROUBLES, Session, session  # noqa: F401 - a fixture


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_the_chapter_says_to_do_about_a_trouble_mends_it(session: Session) -> None:  # noqa: F811 - the fixture
    in_blocks = {line.text for line in BLOCKS}
    for trouble, (bring_about, is_mended) in MENDED.items():
        bring_about(session)
        assert not is_mended(session), trouble
        for line in TROUBLES[trouble]:
            if line.text not in in_blocks:
                session.type(line)
        assert is_mended(session), trouble
