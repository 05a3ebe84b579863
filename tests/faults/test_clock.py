"""A clock that jumps by months, to and fro, all through a run."""

from tests.assets.conftest import MONTHS
from tests.faults.accounts import Watch, count_wrong
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
    wrong = count_wrong(calm, watch)
    tell(jumps_of_seconds=JUMPS, redone=len(again.made), **wrong)
    assert again.made == []
    assert not any(wrong.values())
