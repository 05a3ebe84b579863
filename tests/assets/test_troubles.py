"""The table of troubles in operate.md: each is brought about, and fixed by the commands of its row.

Half a minute of processor time, hence of `make test-faults`.
"""

from __future__ import annotations

import pytest

from tests.assets.test_operations_chapter import BLOCKS, MENDED, TROUBLES, Session, session  # noqa: F401 - a fixture


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_commands_of_a_row_fix_its_trouble(session: Session) -> None:  # noqa: F811 - the fixture
    in_blocks = {line.text for line in BLOCKS}
    for trouble, (bring_about, is_mended) in MENDED.items():
        bring_about(session)
        assert not is_mended(session), trouble
        for line in TROUBLES[trouble]:
            if line.text not in in_blocks:
                session.type(line)
        assert is_mended(session), trouble
