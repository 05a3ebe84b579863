"""The page on scale holds what its script prints, and the script follows what it is told."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from experiments import scale
from experiments.scale import page
from experiments.scale_costs import Assumed, Corpus, corpus_costs, machines, number

ASSUMED = Assumed()


def hours(assumed: Assumed, stage: str, machine: int, *, whole: bool = False) -> float:
    """What a stage takes on one of the three machines."""
    costs = {cost.name: cost for cost in corpus_costs(Corpus.of(whole, assumed), assumed)}
    return costs[stage].hours(machines(assumed)[machine])


def test_the_page_holds_what_the_script_prints() -> None:
    assert scale.PAGE.read_text() == page(ASSUMED), "python -m experiments.scale --write makes the tables anew"


def test_every_assumption_says_what_it_rests_on_and_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(each.metadata["basis"] for each in fields(Assumed))
    scale.main(["--gpu-hour", "8", "--nodes", "8"])
    assert capsys.readouterr().out == page(replace(ASSUMED, gpu_hour=8, nodes=8))


def test_a_figure_that_no_result_has_is_named() -> None:
    with pytest.raises(KeyError, match=r"results/load\.json has no figure 'points a fortnight'"):
        number("load", "points a fortnight")


def test_embedding_takes_what_was_measured_on_two_cores_and_on_a_gpu() -> None:
    # 366,232 pages × 0.35 × 34 passages × 314 tokens, at 549.5 tokens/s.
    assert hours(ASSUMED, "embeddings", 0) == pytest.approx(366_232 * 0.35 * 34 * 18_857 / 60 / 549.5 / 3_600)
    assert hours(ASSUMED, "embeddings", 1) == pytest.approx(366_232 * 0.35 * 34 * 18_857 / 60 / 496_252 / 3_600)


def test_arxivs_pace_is_the_same_on_every_machine_and_knows_no_category() -> None:
    every = replace(ASSUMED, category_share=1)
    taken = {hours(each, "or by arXiv's API", machine) for each in (ASSUMED, every) for machine in range(3)}
    assert taken == {366_232 / 100 * 3 / 3_600}


def test_more_nodes_cost_more_and_take_less() -> None:
    one, many = machines(ASSUMED)[1:]
    (cost,) = (each for each in corpus_costs(Corpus.of(True, ASSUMED), ASSUMED) if each.name == "papers")
    assert cost.hours(many) == pytest.approx(cost.hours(one) / ASSUMED.node_doubling**2)
    assert cost.hours(many) * many.nodes > cost.hours(one)
