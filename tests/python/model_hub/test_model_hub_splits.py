"""Which files of a data set's repository are a split."""

from __future__ import annotations

import pytest

from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.names import HubName, Part
from holdfast_worker.model_hub.splits import files_of

NAME = HubName("owner/rows", "main", None, "dataset")
TWO_SUBSETS = """---
license: mit
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train-*
  - split: test
    path: [main/test-*, extra/more.parquet]
- config_name: socratic
  data_files: socratic/*.parquet
---
# Rows
"""
FILES = [
    "README.md",
    ".gitattributes",
    "extra/more.parquet",
    "main/test-00000-of-00001.parquet",
    "main/train-00001-of-00002.parquet",
    "main/train-00000-of-00002.parquet",
    "socratic/rows.parquet",
]


def found(
    paths: list[str],
    card: str | None = None,
    *,
    files: str | None = None,
    subset: str | None = None,
    split: str | None = None,
) -> list[str]:
    part: Part = {"files": files, "subset": subset, "split": split}
    return files_of(NAME, part, paths=paths, card=card)


def refused(paths: list[str], card: str | None = None, **part: str) -> str:
    with pytest.raises(FetchFailure) as refusal:
        found(paths, card, **part)
    text = str(refusal.value)
    assert text.startswith("Cannot use data set 'owner/rows@main' because ")
    assert text.count(". Fix: ") == 1
    assert refusal.value.is_input
    return text


def test_the_header_names_the_files_of_each_split_in_its_order() -> None:
    assert found(FILES, TWO_SUBSETS, subset="main", split="train") == [
        "main/train-00000-of-00002.parquet",
        "main/train-00001-of-00002.parquet",
    ]
    assert found(FILES, TWO_SUBSETS, subset="main", split="test") == [
        "main/test-00000-of-00001.parquet",
        "extra/more.parquet",
    ]
    # Patterns without a split are `train`, and an only split needs no name.
    assert found(FILES, TWO_SUBSETS, subset="socratic") == ["socratic/rows.parquet"]


def test_a_subset_may_be_a_directory_whose_names_say_the_splits() -> None:
    card = "---\nconfigs:\n- config_name: a\n  data_dir: ./a/\n---\n"
    paths = ["a/train.jsonl", "a/test.jsonl", "b/train.jsonl"]
    assert found(paths, card, split="train") == ["a/train.jsonl"]
    # Patterns start there too (`BuilderConfig._resolve_data_files`).
    both = "---\nconfigs:\n- config_name: a\n  data_dir: a\n  data_files: 'te*'\n---\n"
    assert found(paths, both) == ["a/test.jsonl"]


@pytest.mark.parametrize("usual", ["config_name: default", "config_name: main\n  default: true"])
def test_a_default_subset_needs_no_name(usual: str) -> None:
    card = f"---\nconfigs:\n- {usual}\n  data_files: a.csv\n- config_name: b\n  data_files: b.csv\n---\n"
    assert found(["a.csv", "b.csv"], card) == ["a.csv"]


@pytest.mark.parametrize(
    ("paths", "splits"),
    [
        (
            [
                "data/train-00000-of-00001-ab12.parquet",
                "data/few_shot-00000-of-00001.parquet",
                "test.csv",
            ],
            {
                "train": ["data/train-00000-of-00001-ab12.parquet"],
                "few_shot": ["data/few_shot-00000-of-00001.parquet"],
            },
        ),
        (
            ["x/training/a.jsonl", "x/training/b.jsonl", "dev/a.jsonl", "my-test.jsonl"],
            {"train": ["x/training/a.jsonl", "x/training/b.jsonl"], "validation": ["dev/a.jsonl"]},
        ),
        (
            [
                "train.jsonl.gz",
                "train_2.jsonl.zst",
                "my-eval.jsonl",
                "restrained.jsonl",
                "info.json",
            ],
            {"train": ["train.jsonl.gz", "train_2.jsonl.zst"], "test": ["my-eval.jsonl"]},
        ),
        (["b.jsonl", "a.jsonl", "dataset_info.json"], {"train": ["a.jsonl", "b.jsonl"]}),
        (
            ["train/data-00000-of-00001.arrow", "train/state.json"],
            {"train": ["train/data-00000-of-00001.arrow"]},
        ),
    ],
)
def test_without_a_header_names_say_the_splits(
    paths: list[str], splits: dict[str, list[str]]
) -> None:
    for card in (None, "# Rows", "---\nlicense: mit\n---\n"):
        for split, files in splits.items():
            assert found(paths, card, split=split) == files
        wrong = refused(paths, card, split="none")
        assert f"it has no split 'none'. Fix: name one of: {', '.join(splits)}" in wrong


def test_files_are_named_directly_and_hidden_ones_only_in_full() -> None:
    assert found(FILES, files="main/train-*") == [
        "main/train-00000-of-00002.parquet",
        "main/train-00001-of-00002.parquet",
    ]
    assert found(FILES, files="**/*.parquet") == sorted(FILES)[2:]
    assert found(FILES, files="main/t[!r]*") == ["main/test-00000-of-00001.parquet"]
    assert found(FILES, files="main") == found(FILES, files="main/*")
    assert found(FILES, files=".gitattributes") == [".gitattributes"]
    paths = [".cache/a.csv", "__pycache__/b.csv", "c.csv", "notes.txt"]
    assert found(paths, files="**") == found(paths) == ["c.csv"]
    assert "it has no files 'none/*': it has .gitattributes, README.md" in refused(
        FILES, files="none/*"
    )


def test_what_is_not_said_is_refused_with_what_there_is() -> None:
    several = refused(FILES, TWO_SUBSETS)
    assert (
        "it has 2 subsets (main, socratic). Fix: name one, as hf://datasets/owner/rows" in several
    )
    assert "no subset 'x'. Fix: name one of: main, socratic" in refused(
        FILES, TWO_SUBSETS, subset="x"
    )
    assert "it has 2 splits (train, test)" in refused(FILES, TWO_SUBSETS, subset="main")
    assert "no split 'val'. Fix: name one of: train, test" in refused(
        FILES, TWO_SUBSETS, subset="main", split="val"
    )
    assert "it has no subset 'main': its README.md names none" in refused(
        ["train.csv"], subset="main"
    )
    assert "several formats (csv, parquet)" in refused(["train.csv", "train.parquet"])
    assert "several splits at once: train-test/a.csv" in refused(["train-test/a.csv"])
    assert "no file of rows: it has README.md, a.zip" in refused(["README.md", "a.zip"])
    gone = "---\nconfigs:\n- config_name: a\n  data_files: none-*.csv\n---\n"
    assert "names files of 'train' that it does not have: none-*.csv" in refused(["a.csv"], gone)
    many = refused([f"{n:02}.bin" for n in range(20)])
    assert "06.bin, 07.bin and 12 more" in many


@pytest.mark.parametrize(
    "header",
    [
        "configs: [",
        "configs: 3",
        "configs:\n- data_files: a.csv",
        "configs:\n- config_name: a\n  data_files: [3]",
        "configs:\n- config_name: a\n  data_files:\n  - path: a.csv",
        "configs:\n- config_name: a\n  data_files: '[z-a].csv'",
    ],
)
def test_a_broken_header_is_refused_and_files_can_still_be_named(header: str) -> None:
    card = f"---\n{header}\n---\n"
    refused(["a.csv"], card)
    assert found(["a.csv"], card, files="a.csv") == ["a.csv"]


def test_a_loading_script_is_refused_unless_the_header_or_a_person_names_files() -> None:
    paths = ["rows.py", "train.jsonl", "README.md"]
    assert "a loading script (rows.py), whose code is never run" in refused(paths, split="train")
    assert found(paths, files="train.jsonl") == ["train.jsonl"]
    card = "---\nconfigs:\n- config_name: a\n  data_files: train.jsonl\n---\n"
    assert found(paths, card) == ["train.jsonl"]


def test_a_name_that_is_proposed_can_be_written_as_it_is() -> None:
    card = "---\nconfigs:\n- config_name: a b/&?\n  data_files: a.csv\n- config_name: c\n---\n"
    assert refused(["a.csv"], card).endswith("?subset=a%20b%2F%26%3F")
    splits = "---\nconfigs:\n- config_name: a\n  data_files: [{split: x&y, path: a.csv}, "
    splits += "{split: z, path: b.csv}]\n---\n"
    assert refused(["a.csv", "b.csv"], splits).endswith("split=x%26y")
