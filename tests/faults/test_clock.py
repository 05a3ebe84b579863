"""A clock that jumps by months, to and fro, all through a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.assets.conftest import MONTHS, Place
from tests.faults.accounts import Watch, compare
from tests.faults.conftest import Tell
from tests.faults.zygote import Fault, Zygote

JUMPS = (3_600, 90 * 86_400)


def test_a_clock_that_jumps_changes_nothing(
    zygote: Zygote, calm: Place, make: Callable[..., Place], tmp_path: Path, tell: Tell
) -> None:
    place = make(tmp_path / "data")
    watch = Watch(place.root)
    for month, jump in zip(MONTHS, (*JUMPS, JUMPS[0]), strict=True):
        zygote.start(dict(place.variables), [month], [], Fault(clock=jump))
        end = zygote.end()
        assert end.done, end
        watch.look()
    zygote.start(dict(place.variables), list(MONTHS), [])
    again = zygote.end()
    after = compare(calm.root, place.root)
    tell(
        jumps_of_seconds=JUMPS,
        redone=len(again.made),
        lost=after.lost,
        duplicated=after.duplicated,
        torn=watch.torn,
    )
    assert again.made == []
    assert after.none
    assert watch.torn == 0
