"""Sentences of papers that can stand in a related-work section, and those that cannot."""

import pytest

from pipeline.related_work.sentence_rewriting import (
    author_names,
    citable_sentence,
    follow_up,
)

THREE = ("Yuang Zhao", "Chuhan Wu", "Qinglin Jia")


@pytest.mark.parametrize(
    ("sentence", "cited"),
    [
        (
            (
                "In this paper, we propose a calibration method that adjusts its intensity to the"
                " data."
            ),
            (
                "Zhao et al. [Reference 3] propose a calibration method that adjusts its intensity"
                " to the data."
            ),
        ),
        (
            (
                "However, to address these two problems, we also show that our method learns from"
                " what users give us."
            ),
            "Zhao et al. [Reference 3] show that their method learns from what users give them.",
        ),
        (
            "This paper presents a survey of methods that calibrate neural networks.",
            "Zhao et al. [Reference 3] present a survey of methods that calibrate neural networks.",
        ),
        (
            "This paper presents a survey of methods and shows where they fail.",
            (
                "The paper of Zhao et al. [Reference 3] presents a survey of methods and shows"
                " where they fail."
            ),
        ),
        (
            "1. We propose min-$p$ sampling, which takes $2.3\\times$ the time of $k$-means.",
            (
                "Zhao et al. [Reference 3] propose min-$p$ sampling, which takes $2.3\\times$ the"
                " time of $k$-means."
            ),
        ),
        (
            "We introduce SimCSE, a simple contrastive framework for sentence embeddings.",
            "SimCSE [Reference 3] is a simple contrastive framework for sentence embeddings.",
        ),
        (
            (
                "To this end, we propose a framework for new views of scenes, called ViewCrafter,"
                " which needs few images."
            ),
            (
                "ViewCrafter [Reference 3] is a framework for new views of scenes, which needs few"
                " images."
            ),
        ),
        (
            "We introduce SimCSE, a simple contrastive framework, and evaluate it on seven tasks.",
            (
                "Zhao et al. [Reference 3] introduce SimCSE, a simple contrastive framework, and"
                " evaluate it on seven tasks."
            ),
        ),
        (
            r"We propose \textit{\textbf{P}ose} nets that gain 3\% of accuracy on data.",
            "Zhao et al. [Reference 3] propose Pose nets that gain 3% of accuracy on data.",
        ),
        (
            "Neural networks are rarely calibrated when they are large.",
            "Neural networks are rarely calibrated when they are large [Reference 3].",
        ),
    ],
)
def test_a_sentence_names_its_subject_and_keeps_what_it_states(sentence, cited):
    assert citable_sentence(sentence, 3, THREE) == cited


@pytest.mark.parametrize(
    "sentence",
    [
        "This shows that calibration helps in most of the settings.",
        "It outperforms all other methods by a large margin.",
        "As Table 3 shows, calibration helps in most of the settings.",
        "The loss is bounded by $x^2$ in all of the settings.",
        "Calibration was studied before [12] in most of the settings.",
        "Earlier work (Smith et al., 2019) calibrates neural networks as well.",
        "Our code is available at https://example.org/code for everyone.",
        "Can large networks be calibrated without any loss of accuracy?",
        "We see that these methods fail on data that is long-tailed.",
        "As humans, we know the faces of people that we meet.",
        "I present a method that calibrates networks of any size.",
        "Too short.",
        "We propose a method (with an open bracket that calibrates networks.",
    ],
)
def test_a_sentence_that_cannot_stand_alone_is_refused(sentence):
    assert citable_sentence(sentence, 3, THREE) is None


def test_a_single_author_is_quoted_and_unknown_ones_are_the_authors():
    sentence = "We consider the problem of total variation in compressive sensing."
    assert (
        citable_sentence(sentence, 1, ("Xin Yuan",)) == f"Yuan [Reference 1] writes: “{sentence}”"
    )
    assert (
        citable_sentence(sentence, 1, ())
        == "The authors of [Reference 1] consider the problem of total variation in compressive"
        " sensing."
    )


def test_a_sentence_behind_another_on_the_same_paper_speaks_of_its_authors_as_they():
    assert (
        follow_up("Our experiments show that calibration works.", 3, THREE)
        == "Their experiments show that calibration works [Reference 3]."
    )
    assert (
        follow_up("Finally, we show that calibration works on our data.", 3, THREE)
        == "They show that calibration works on their data [Reference 3]."
    )
    assert follow_up("Our experiments show that calibration works.", 3, ("Xin Yuan",)) is None


@pytest.mark.parametrize(
    ("authors", "names"),
    [
        ((), ""),
        (("Yarin Gal",), "Gal"),
        (("Yarin Gal", "Zoubin Ghahramani"), "Gal and Ghahramani"),
        (THREE, "Zhao et al."),
    ],
)
def test_authors_are_named_as_in_a_text(authors, names):
    assert author_names(authors) == names
