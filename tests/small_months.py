"""A dump of many months of a few pages each, made of the sample's shortest, with metadata."""

import json
import zipfile

from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT


def write_small_months(folder, months, pages=None):
    """Fill a folder with a zip of the months and a snapshot; the settings that name them.

    pages: how many copies of the first page a month has; by default each of the two shortest.
    """
    with zipfile.ZipFile(next(SAMPLE_DUMP.glob("*no-problem*.zip"))) as sample:
        first, second, *_ = sorted(filter(None, map(sample.read, sample.namelist())), key=len)
    record = json.loads(SAMPLE_SNAPSHOT.read_text().splitlines()[0])
    folder.mkdir()
    with (
        zipfile.ZipFile(folder / "ar5iv-04-2024-no-problem.zip", "w", zipfile.ZIP_DEFLATED) as dump,
        (folder / "metadata.jsonl").open("w") as snapshot,
    ):
        for month in months:
            yymm = month[2:4] + month[5:]
            for number, page in enumerate([first] * pages[month] if pages else [first, second]):
                paper = f"{yymm}.9{number:04}"
                dump.writestr(f"{yymm}/{paper}.html", page)
                snapshot.write(json.dumps({**record, "id": paper}) + "\n")
    return {"dump_dir": str(folder), "metadata_snapshot": str(folder / "metadata.jsonl")}
