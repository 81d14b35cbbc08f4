"""Writes what `datasets` 5.2.0 saves, as it is in `saved/`, and the same rows as Parquet.

Usage: write_saved.py DIRECTORY, then deno fmt DIRECTORY. Tests read what is committed: importing
`datasets` takes seconds.
"""

import pathlib
import sys

import datasets

ROWS = 5
TEXTS = ["What is 2 + 2?", "é", "\U0001f600 \u4f60\u597d", "", "line\nline"]


def row_of(n: int) -> dict:
    call = {"function": {"name": f"f{n}", "arguments": {"city": TEXTS[n], "days": 2**60 + n}}}
    asked = {"role": "user", "content": TEXTS[n], "tool_calls": None}
    called = {"role": "assistant", "content": None, "tool_calls": [call] * (n % 3 or 1)}
    return {
        "id": f"row{n}",
        "prompt": [asked, called][: n % 2 + 1],
        "label": n % 2,
        "image": {"bytes": b"PNG", "path": None},
        "nothing": None,
    }


def write(name: str, dataset: datasets.Dataset, directory: pathlib.Path, **options: int) -> None:
    dataset.save_to_disk(directory / name, **options)
    dataset.with_format(None).to_parquet(directory / f"{name}.parquet")


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    whole = datasets.Dataset.from_list([row_of(n) for n in range(ROWS)])
    features = whole.features.copy()
    features["label"] = datasets.ClassLabel(names=["no", "yes"])
    features["image"] = datasets.Image()
    whole = whole.cast(features)
    write("shards", whole, directory, num_shards=3)
    picked = whole.shuffle(seed=1).select(range(3)).with_format("numpy", columns=["label"])
    write("picked", picked, directory)
    calls = [{"n": 2**60, "x": [1, "one"]}, "text", None]
    typed = datasets.Features({"prompt": datasets.Value("string"), "calls": datasets.Json()})
    rows = [{"prompt": f"p{n}", "calls": one} for n, one in enumerate(calls)]
    write("json", datasets.Dataset.from_list(rows, features=typed), directory)
    small = whole.select_columns(["id"]).add_column("prompt", [f"p{n}" for n in range(ROWS)])
    small.select([]).save_to_disk(directory / "empty")
    datasets.DatasetDict({"train": small, "test": small}).save_to_disk(directory / "splits")
    datasets.DatasetDict({"train": small}).save_to_disk(directory / "one_split")


main()
