"""The models of the settings and of the file of CITELOOM_MODELS."""

import pytest

from pipeline.engine.redaction import collect_secrets
from pipeline.errors import SettingError
from pipeline.llm.messages import Prices
from pipeline.llm.models import BUNDLED_MODEL, get_model, judge_model, known_prices, models_of
from pipeline.settings import load_settings
from tests.cases import cases_beside

KEY = "sk-sentinel-of-a-model"
TWO = """
["gpt-3.5-turbo"]
url = "https://one.example.org/v1"
api_key_env = "ONE_KEY"
context = 16385
concurrency = 32
price = "0.5/1.5"
max_tokens = 1000

[strict]
url = "http://127.0.0.1:8000/v1"
"""


def settings(folder, text=TWO, **changes):
    file = folder / "models.toml"
    file.write_text(text)
    return load_settings(models=file, data=folder / "data", _env_file=None, **changes)


def refusal(folder, text, **changes):
    with pytest.raises(SettingError) as raised:
        settings(folder, text, **changes)
    assert KEY not in str(raised.value)
    return str(raised.value)


def test_the_first_model_of_the_file_is_the_default_with_all_its_fields(tmp_path, monkeypatch):
    monkeypatch.setenv("ONE_KEY", KEY)
    given = settings(tmp_path, llm_api_key="of-another-service")
    model = get_model(given)
    assert (model.name, model.url) == ("gpt-3.5-turbo", "https://one.example.org/v1")
    assert (model.context, model.concurrency, model.max_tokens) == (16385, 32, 1000)
    assert model.prices == Prices(0.5, 1.5)
    assert (given.llm_model, given.llm_context) == (model.name, model.context)
    assert not given.bundled_llm
    assert model.api_key.get_secret_value() == KEY
    assert KEY in collect_secrets(given)


def test_the_setting_names_the_default_of_the_file_or_a_model_beside_it(tmp_path):
    assert get_model(settings(tmp_path, llm_model="strict")).url == "http://127.0.0.1:8000/v1"
    own = {"llm_model": "own", "llm_url": "http://127.0.0.1:9/v1", "llm_price": "1/2"}
    beside = settings(tmp_path, **own)
    assert get_model(beside).url == own["llm_url"]
    assert set(models_of(beside)) == {"own", "gpt-3.5-turbo", "strict", BUNDLED_MODEL}
    assert list(known_prices(beside)) == ["gpt-3.5-turbo", "own"]
    assert settings(tmp_path, llm_model=BUNDLED_MODEL).bundled_llm
    embedded = get_model(settings(tmp_path), BUNDLED_MODEL, "CITELOOM_SYSTEMS")
    assert (embedded.url, embedded.context) == (None, 4096)
    assert "CITELOOM_LLM_URL" in refusal(tmp_path, TWO, **own | {"llm_model": "strict"})


def test_the_judge_is_a_model_by_name_and_by_default_the_default_model(tmp_path):
    assert judge_model(settings(tmp_path)).name == "gpt-3.5-turbo"
    assert judge_model(settings(tmp_path, judges="strict,strict")).name == "strict"
    assert "names overlap" in refusal(tmp_path, TWO, judges="overlap,strict")
    assert "names 2 models" in refusal(tmp_path, TWO, judges="strict,gpt-3.5-turbo")
    with pytest.raises(SettingError, match=r"CITELOOM_JUDGES.* gone,.*gpt-3\.5-turbo, strict"):
        judge_model(settings(tmp_path, judges="gone"))


def test_a_key_that_is_not_set_is_named_when_the_model_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("ONE_KEY", raising=False)
    model = get_model(settings(tmp_path))
    with pytest.raises(SettingError, match="ONE_KEY is not set"):
        model.check()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [("one.example", "two.example", True), ("0.5/", "5/", True), ("16385", "4096", False)],
)
def test_address_and_price_change_no_fingerprint(tmp_path, old, new, same):
    before = get_model(settings(tmp_path)).fingerprint
    changed = settings(tmp_path, TWO.replace(old, new))
    assert (get_model(changed).fingerprint == before) is same


def test_a_model_that_stands_in_has_its_own_name_in_requests_and_fingerprint_alone(tmp_path):
    other = get_model(settings(tmp_path, TWO + 'served_as = "qwen3"\n'), "strict")
    strict = get_model(settings(tmp_path), "strict")
    assert (strict.name, strict.requested) == ("strict", "strict")
    assert (other.name, other.requested) == ("strict", "qwen3")
    assert other.fingerprint != strict.fingerprint
    assert other.setting("model").startswith("the served_as of [strict]")


@cases_beside("named", "text")
def test_a_wrong_file_is_refused_with_model_and_field(tmp_path, named, text):
    message = refusal(tmp_path, text)
    assert named in message
    assert "models.toml" in message


def test_a_file_too_deep_or_too_long_is_refused(tmp_path):
    assert "is not TOML" in refusal(tmp_path, f"a = {'[' * 5000}{']' * 5000}\n")
    assert "over 1,000,000 bytes" in refusal(tmp_path, f"# {'x' * 1_000_000}\n")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"CITELOOM_MODELS: .*none\.toml"):
        load_settings(models=tmp_path / "none.toml", _env_file=None)
