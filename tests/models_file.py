"""Files of CITELOOM_MODELS for tests."""

import json


def write_models(folder, url, *names, **fields):
    """A file `models.toml` in the folder that defines models at one endpoint, all with the same
    further fields.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "models.toml"
    # JSON's texts and numbers are TOML's, too.
    lines = [f"{name} = {json.dumps(value)}" for name, value in ({"url": url} | fields).items()]
    file.write_text(
        "\n".join("\n".join([f"[{json.dumps(name)}]", *lines]) for name in names) + "\n"
    )
    return file
