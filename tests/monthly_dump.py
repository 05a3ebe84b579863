"""The sample's pages in one zip a month."""

import zipfile

from pipeline.settings import SAMPLE_DUMP


def write_monthly_dump(folder):
    """Fill a folder with `ar5iv-<yymm>.zip`; the folder."""
    pages = {}
    for file in sorted(SAMPLE_DUMP.glob("*.zip")):
        with zipfile.ZipFile(file) as old:
            for name in old.namelist():
                pages.setdefault(name.split("/")[1], {})[name] = old.read(name)
    folder.mkdir(parents=True, exist_ok=True)
    for yymm, found in pages.items():
        with zipfile.ZipFile(folder / f"ar5iv-{yymm}.zip", "w", zipfile.ZIP_DEFLATED) as new:
            for name, page in found.items():
                new.writestr(name, page)
    return folder
