"""YAML from outside is read with errors of one kind, and without numbers of a million digits."""

import pytest
import yaml

from pipeline.yaml_loader import PlainLoader


@pytest.mark.parametrize(
    "text", ['!!int ""', '!!float ""', '!!bool "x"', '!!timestamp "x"', "&a [*a]"]
)
def test_what_does_not_fit_its_tag_is_a_yaml_error(text):
    with pytest.raises(yaml.YAMLError):
        PlainLoader(text).get_single_data()


@pytest.mark.parametrize(
    "text", ["0x" + "f" * 5_000, "1" + ":01" * 5_000, "1" + ":01" * 500 + ".5"]
)
def test_a_long_number_is_text(text):
    assert PlainLoader(text).get_single_data() == text


def test_half_of_a_surrogate_pair_is_replaced():
    assert PlainLoader('"a\\ud800b"').get_single_data() == "a\ufffdb"
