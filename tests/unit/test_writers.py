"""Writers: names, names shown beside others, and those that a setting means."""

import pytest

from pipeline.engine.systems import System, Writers
from pipeline.errors import SettingError
from pipeline.llm.models import settings_for
from pipeline.settings import load_settings
from pipeline.tables.writers import full_name, parse_writer, short_names

SYSTEMS = {
    "chatcite": System(name="chatcite", settings=("llm_model",), prompts=()),
    "lead": System(name="lead", settings=(), prompts=(), calls_model=False),
}
WRITERS = Writers(
    SYSTEMS, "systems", "chatcite", without_model="notes", former={"extractive": "write lead"}
)
SETTINGS = load_settings(llm_url="http://127.0.0.1:9/v1", llm_model="small", _env_file=None)


def writers(*names):
    settings = SETTINGS.model_copy(update={"systems": names})
    return [writer.name for writer, _ in WRITERS.lookup_all(settings)]


@pytest.mark.parametrize("name", ["chatcite@gpt-4", "lead", "chatcite@org/model@2"])
def test_a_name_and_its_writer_are_the_same(name):
    assert parse_writer(name).name == name


def test_a_system_without_a_model_means_the_default_one_or_none():
    assert writers("lead", "chatcite") == ["chatcite@small", "lead"]
    assert writers("chatcite@gpt-4", "chatcite", "chatcite@small") == [
        "chatcite@gpt-4",
        "chatcite@small",
    ]


def test_unknown_systems_and_models_that_are_not_called_are_wrong_settings():
    for names in (("oracle",), ("oracle@gpt-4",), ("lead@gpt-4",), ()):
        with pytest.raises(SettingError, match="CITELOOM_SYSTEMS names"):
            writers(*names)
    with pytest.raises(SettingError, match="--system"):
        WRITERS.lookup("oracle@gpt-4", SETTINGS)
    with pytest.raises(SettingError, match="names extractive, which was removed: write lead"):
        writers("extractive")


def test_the_settings_of_a_model_have_its_name_and_context(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text('["gpt-4"]\nurl = "http://127.0.0.1:9/v1"\ncontext = 1234\n')
    settings = SETTINGS.model_copy(update={"models": file})
    large = settings_for(settings, "gpt-4")
    assert (large.llm_model, large.llm_context) == ("gpt-4", 1234)
    assert settings_for(settings, None) == settings_for(settings, "small") == settings
    with pytest.raises(SettingError, match="CITELOOM_SYSTEMS names the model gpt-5"):
        settings_for(settings, "gpt-5", "CITELOOM_SYSTEMS")


def test_a_model_is_shown_where_its_system_has_several():
    assert short_names(["chatcite@a", "chatcite@b", "few_shot@a", "lead"]) == {
        "chatcite@a": "chatcite@a",
        "chatcite@b": "chatcite@b",
        "few_shot@a": "few_shot",
        "lead": "lead",
    }
    assert full_name("few_shot", ["few_shot@a", "chatcite@a"]) == "few_shot@a"
    assert full_name("chatcite", ["chatcite@a", "chatcite@b"]) == "chatcite"
