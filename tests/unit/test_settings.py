"""Settings: where they come from, and what is refused."""

import tempfile
from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.llm.models import models_of
from pipeline.settings import SAMPLE_DUMP, Settings, load_settings
from pipeline.settings.categories import nearest_categories
from pipeline.settings.models_file import read_key
from pipeline.settings.settings import BUNDLED_LLM
from pipeline.settings.validators import profile_names, profile_values
from tests.cases import cases, cases_beside
from tests.sentinels import is_secret

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]


def refusal(**settings):
    """The lines of the message with which these settings are refused."""
    with pytest.raises(SettingError) as caught:
        load_settings(**settings)
    return str(caught.value).splitlines()


def test_the_sample_and_a_real_dump_never_share_a_data_root(tmp_path):
    assert load_settings().data_root == tmp_path / "data" / "demo"
    assert load_settings(dump_dir=tmp_path).data_root == tmp_path / "data" / "corpus"
    assert load_settings(data=tmp_path / "mine").data_root == tmp_path / "mine"


@pytest.fixture
def own_env_file(monkeypatch, tmp_path):
    """The `.env` of the user, which is yet to be written."""
    file = tmp_path / ".env"
    file.touch()
    monkeypatch.setenv("CITELOOM_ENV_FILE", str(file))
    return file


def test_the_environment_and_dotenv_are_read(monkeypatch, own_env_file):
    own_env_file.write_text(
        'CITELOOM_LLM_MODEL="m-${HOME}"\nciteloom_max_tasks=7\nCITELOOM_SUBSETS=error\nOTHER=${HOME}\n'
    )
    monkeypatch.setenv("citeloom_subsets", "no_problem, warning")
    settings, other = load_settings(), read_key("OTHER")
    # Values are no templates.
    assert settings.llm_model == "m-${HOME}"
    assert other.get_secret_value() == "${HOME}"
    assert settings.max_tasks == 7
    assert settings.subsets == ("no_problem", "warning")
    assert settings.dump_dir == SAMPLE_DUMP


def test_empty_means_none(monkeypatch):
    monkeypatch.setenv("CITELOOM_QDRANT_URL", "")
    monkeypatch.setenv("CITELOOM_METADATA_SNAPSHOT", "")
    assert load_settings().qdrant_url is None
    assert load_settings().metadata_snapshot is None


@cases("unit/cases.toml", "a_wrong_setting_is_named", ("name", "value", "said"))
def test_a_wrong_setting_is_named_and_a_password_in_it_not_shown(monkeypatch, name, value, said):
    monkeypatch.setenv(f"CITELOOM_{name}", value)
    (line,) = refusal()
    assert line.startswith(f"CITELOOM_{name}: {said or ''}")
    assert "sesame" not in line


def test_writers_of_answers_are_called_as_now_where_one_has_an_earlier_name():
    earlier = load_settings(answer_systems="arxivbot@m,arxivbot_report,direct")
    assert earlier.answer_systems == ("arxivbot_fused@m", "arxivbot", "direct")
    now = ("arxivbot", "arxivbot_fused@m")
    assert load_settings(answer_systems=now).answer_systems == now


def test_the_bundled_model_has_defaults_of_its_own():
    bundled = load_settings()
    served = load_settings(llm_url="http://127.0.0.1:9/v1", llm_model="some")
    assert {name: getattr(bundled, name) for name in BUNDLED_LLM} == BUNDLED_LLM
    assert all(getattr(served, name) == Settings.model_fields[name].default for name in BUNDLED_LLM)
    assert (bundled.bundled_llm, served.bundled_llm) == (True, False)


@pytest.mark.parametrize("profile", profile_names())
def test_a_profile_fills_settings_and_those_of_the_environment_win(monkeypatch, profile):
    assert profile_values(profile).keys() <= Settings.model_fields.keys()
    monkeypatch.setenv("CITELOOM_PROFILE", profile)
    monkeypatch.setenv("CITELOOM_JUDGE_REPEATS", "7")
    settings = load_settings()
    assert settings.judge_repeats == 7
    assert settings.llm_url is not None
    # A paper is about sections or about answers: nothing is paid for the other.
    assert [settings.max_tasks, settings.max_questions].count(0) == 1
    named = (*settings.systems, *settings.answer_systems, *settings.judges)
    models = {name.rpartition("@")[2] for name in named if "@" in name} | {*settings.judges}
    assert models <= models_of(settings).keys()


def test_candidate_sets_that_are_too_deep_are_refused():
    (line,) = refusal(candidate_sets="[" * 100_000)
    assert line.startswith("CITELOOM_CANDIDATE_SETS: ")


def test_an_endpoint_without_a_model_is_refused():
    for model in ({}, {"llm_model": ""}):
        (line,) = refusal(llm_url="http://127.0.0.1:9/v1", **model)
        assert line.startswith("CITELOOM_LLM_MODEL: ")


class TestCategories:
    def test_they_are_written_as_arxiv_does(self):
        settings = load_settings(
            _env_file=None, categories="CS.cl, cs.CL,stat,Physics.Optics,cmp-lg"
        )
        assert settings.categories == ("cs.CL", "stat", "physics.optics", "cmp-lg")

    @cases("unit/cases.toml", "one_that_arxiv_does_not_have_is_refused", ["text", "meant"])
    def test_one_that_arxiv_does_not_have_is_refused_with_the_nearest(self, text, meant):
        (line,) = refusal(categories=f"cs,{text}")
        assert line.startswith("CITELOOM_CATEGORIES: ")
        assert meant in nearest_categories(text)
        assert meant in line.partition("did you mean")[2]


class TestNames:
    def test_an_unknown_name_is_refused_with_the_nearest_setting_and_its_place(
        self, monkeypatch, own_env_file
    ):
        own_env_file.write_text("\nCITELOOM_LLM_KEY=sesame-sentinel\nCITELOOM_LLM_MODEL=m\n")
        monkeypatch.setenv("CITELOOM_QDRANT_ULR", "sesame-sentinel")
        lines = refusal(temperature="hot")
        assert len(lines) == 3, "all that is wrong is told at once"
        assert all(
            part in lines[0] for part in ("CITELOOM_LLM_KEY", "CITELOOM_LLM_API_KEY", ".env line 2")
        )
        assert "CITELOOM_QDRANT_ULR" in lines[1]
        assert "CITELOOM_QDRANT_URL" in lines[1]
        assert "sesame" not in "".join(lines)


class TestEnvFile:
    def test_a_line_that_cannot_be_read_is_named_once_with_its_number(self, own_env_file, caplog):
        own_env_file.write_text(
            "# head\nCITELOOM_SUBSETS=error\n\nsesame sentinel\nCITELOOM_DATA\n"
        )
        lines = refusal()
        places = [line.partition(":")[0] for line in lines]
        assert places == [f"{own_env_file} line {number}" for number in (4, 5)]
        assert "sesame" not in "".join(lines)
        assert caplog.records == []

    def test_one_that_is_not_utf8_is_named(self, own_env_file):
        own_env_file.write_bytes(b"CITELOOM_DATA=\xff\n")
        (line,) = refusal()
        assert line.startswith(f"{own_env_file}: ")


@cases_beside("name", "value", "is_read")
def test_a_working_folders_file_is_read_only_if_the_user_named_the_folder(
    name, value, is_read, tmp_path, monkeypatch, caplog
):
    folder = tempfile.mkdtemp(dir=tmp_path)  # each is named once in a process
    monkeypatch.chdir(folder)
    Path(".env").write_text("CITELOOM_MAX_TASKS=7\nMODEL_KEY=key\nCITELOOM_DATA=.\n")
    monkeypatch.setenv(f"CITELOOM_{name}", value.format(folder))
    for _ in range(2):
        assert (load_settings().max_tasks == 7) is is_read
    assert (read_key("MODEL_KEY") is not None) is is_read
    ignored = not is_read and name == "DATA"
    assert [f"{folder}/.env" in message for message in caplog.messages] == [True] * ignored


def test_a_file_of_models_beside_a_draft_is_refused(tmp_path, monkeypatch):
    (tmp_path / "models.toml").write_text('[m]\nurl = "https://h/v1"\n')
    chosen = {"models": Path("models.toml"), "llm_model": "m"}
    (line,) = refusal(**chosen)
    assert line.startswith("CITELOOM_MODELS: ")
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path))
    load_settings(**chosen)


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if is_secret(name)])
def test_a_wrong_value_of_a_secret_is_not_shown(name):
    with pytest.raises(SettingError, match=f"CITELOOM_{name.upper()}: ") as caught:
        load_settings(**{name: b"\xffsesame-sentinel"})
    assert "sesame" not in str(caught.value)
