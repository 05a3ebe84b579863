"""A clock that jumps by months, to and fro, all through a run."""

from tests.assets.conftest import MONTHS
from tests.faults.accounts import Watch, compare
from tests.faults.zygote import Fault

JUMPS = (3_600, 90 * 86_400)


def test_a_clock_that_jumps_changes_nothing(zygote, calm, make, tmp_path, tell):
    place = make(tmp_path / "data")
    watch = Watch(place.root)
    for month, jump in zip(MONTHS, (*JUMPS, JUMPS[0]), strict=True):
        end = zygote.run(place, [month], fault=Fault(clock=jump))
        assert end.done, end
        watch.look()
    again = zygote.run(place, MONTHS)
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
