"""Settings: where they come from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.settings import SAMPLE_DUMP, Settings, load_settings
from tests.sentinels import is_secret


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine's environment, and no `.env` beside the checkout."""
    import os

    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_the_sample_and_a_real_dump_never_share_a_data_root(tmp_path: Path) -> None:
    assert load_settings().data_root == tmp_path / "data" / "demo"
    assert load_settings(dump_dir=tmp_path).data_root == tmp_path / "data" / "corpus"
    assert load_settings(data=tmp_path / "mine").data_root == tmp_path / "mine"


def test_the_environment_and_dotenv_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CITELOOM_LLM_MODEL=from-file\nCITELOOM_SUBSETS=error\n")
    monkeypatch.setenv("CITELOOM_SUBSETS", "no_problem, warning")
    settings = load_settings()
    assert settings.llm_model == "from-file"
    assert settings.subsets == ("no_problem", "warning")
    assert settings.dump_dir == SAMPLE_DUMP


def test_empty_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_QDRANT_URL", "")
    monkeypatch.setenv("CITELOOM_METADATA_SNAPSHOT", "")
    assert load_settings().qdrant_url is None
    assert load_settings().metadata_snapshot is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SUBSETS", "fine"),
        ("CATEGORIES", "cs,computer science"),
        ("EMBEDDER", "word2vec"),
        ("CHATCITE_SAMPLES", "0"),
        ("TEMPERATURE", "hot"),
        ("LLM_CONTEXT", "1"),
        ("LLM_CUTOFF", "december"),
        ("LLM_CUTOFF", "2023-13"),
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CITELOOM_{name}", value)
    with pytest.raises(SettingError, match=f"CITELOOM_{name}: "):
        load_settings()


def test_categories_are_spelt_as_arxiv_does() -> None:
    settings = load_settings(_env_file=None, categories="CS.cl, cs.CL,stat,Physics.Optics")
    assert settings.categories == ("cs.CL", "stat", "physics.optics")


def test_a_secret_is_not_shown() -> None:
    settings = Settings(llm_api_key="sesame-sentinel", qdrant_api_key="sesame-sentinel")
    assert "sesame-sentinel" not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize("name", ["llm_url", "arxiv_api_url", "dump_dir", "qdrant_url", "embedder_path"])
def test_a_password_in_an_address_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(SettingError, match=f"CITELOOM_{name.upper()}: holds a name or password") as caught:
        load_settings(**{name: "https://me:sesame-sentinel@host/folder"})
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if is_secret(name)])
def test_a_wrong_value_of_a_secret_is_not_shown(name: str) -> None:
    with pytest.raises(SettingError, match=f"CITELOOM_{name.upper()}: ") as caught:
        load_settings(**{name: b"\xffsesame-sentinel"})
    assert "sesame" not in str(caught.value)
