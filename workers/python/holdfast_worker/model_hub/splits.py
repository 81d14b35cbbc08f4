"""Which files of a data set's repository are a split, as `datasets` finds them.

The header of README.md names them (`configs`), or else their own names say it: shards in `data/`,
directories and files called after splits, or everything as `train`. Facts of huggingface/datasets
at b7cb10b0e: `data_files.py`, `load.py`, `utils/metadata.py`. Differences: a file whose name says two splits,
and a split in several formats, are refused. A loading script is never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote

from holdfast_worker.json_value import JsonValue
from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.names import HubName, Part

# The formats that sources have (`data/formats/table.ts`).
ROWS = re.compile(
    r".*\.(?P<format>(?:jsonl|ndjson|json|csv)(?=\.gz$|\.zst$|$)|parquet$|arrow$).*", re.IGNORECASE
)
DESCRIBING = {
    "config.json",
    "dataset_dict.json",
    "dataset_info.json",
    "dataset_infos.json",
    "state.json",
}
CARD_NAME = "README.md"
SHARD = re.compile(r"data/(?P<split>\w+(?:\.\w+)*)-\d{5}-of-\d{5}[^/]*\.[^/]*")
KEYWORDS = {
    "train": "train|training",
    "validation": "validation|valid|dev|val",
    "test": "test|testing|eval|evaluation",
}
WILDCARD = re.compile(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])")
NAMED_MAX = 8  # Names that an error lists.

Splits = dict[str, list[str]]  # Patterns or files of each split, in order.


class BrokenHeader(Exception):
    """It cannot be read as `datasets` reads it."""


@dataclass(frozen=True)
class Subset:
    """
    `root`: its directory, with a slash. `patterns`: of each split, from there; empty: the names of
    files there say the splits.
    """

    patterns: Splits
    root: str
    is_default: bool


def files_of(name: HubName, part: Part, *, paths: Iterable[str], card: str | None) -> list[str]:
    """
    The files of a part, in the order in which they are read. `paths`: all files of the repository.
    `card`: its README.md. Raises `FetchFailure` with what there is instead.
    """
    known = sorted(paths)
    if part["files"] is not None:
        return _named(name, part["files"], known)
    subsets = _subsets(name, card)
    script = f"{name.repository.split('/')[1]}.py"
    if script in known and not subsets:
        raise _unusable(
            name,
            f"it has a loading script ({script}), whose code is never run",
            f"name the files that the hub has converted, as hf://datasets/{name.repository}"
            "@refs/convert/parquet/SUBSET/SPLIT/*.parquet, or other files of it",
        )
    subset = _chosen_subset(name, part["subset"], subsets)
    patterns, root = subset.patterns, subset.root
    inside = [path.removeprefix(root) for path in known if path.startswith(root)]
    splits = patterns or _splits_by_name(name, [path for path in inside if _is_seen(path)])
    if not splits:
        raise _unusable(
            name, f"it has no file of rows: it has {_some(known)}", "name a different data set"
        )
    split = _chosen_split(name, part["split"], list(splits))
    if not patterns:
        return [root + path for path in _of_one_format(name, splits[split])]
    found = [path for pattern in splits[split] for path in _matches(name, pattern, inside)]
    if found:
        return [root + path for path in dict.fromkeys(found)]
    raise _unusable(
        name,
        f"its README.md names files of '{split}' that it does not have: {_some(splits[split])}",
        _name_files(name, known),
    )


def _named(name: HubName, pattern: str, known: list[str]) -> list[str]:
    """A file, the files of rows in a directory, or those that a pattern matches."""
    if pattern in known:
        return [pattern]
    is_directory = WILDCARD.search(pattern) is None
    wanted = f"{pattern.rstrip('/')}/*" if is_directory else pattern
    found = _matches(name, wanted, known)
    if found:
        return _without_describing(found) if is_directory else found
    raise _unusable(
        name, f"it has no files '{pattern}': it has {_some(known)}", "correct the files' names"
    )


def _subsets(name: HubName, card: str | None) -> dict[str, Subset]:
    """The subsets that the header names; none without one."""
    import yaml

    lines = [] if card is None else card.splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in lines[1:]:
        return {}
    try:
        header: JsonValue = yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)]))
        configs = header.get("configs") if isinstance(header, dict) else None
        return dict(_subset(one) for one in _entries(configs))
    except (yaml.YAMLError, BrokenHeader) as error:
        raise _unusable(
            name,
            "the header of its README.md does not say its subsets as a list of `config_name` and "
            f"`data_files` ({' '.join(str(error).split())})",
            f"name its files, as hf://datasets/{name}/FILES",
        ) from error


def _subset(config: JsonValue) -> tuple[str, Subset]:
    """An entry of the header: its name, and what it says."""
    if not isinstance(config, dict) or not isinstance(config.get("config_name"), str):
        raise BrokenHeader(f"{config} has no `config_name`")
    directory = str(config.get("data_dir") or "").strip("/").removeprefix("./")
    root = "" if directory in ("", ".") else f"{directory}/"
    patterns: Splits = {}
    for entry in _entries(config.get("data_files")):
        named: JsonValue = entry if isinstance(entry, dict) else {"split": "train", "path": entry}
        split, paths = named.get("split"), _entries(named.get("path"))
        texts = [path for path in paths if isinstance(path, str)]
        if not isinstance(split, str) or not texts or len(texts) < len(paths):
            raise BrokenHeader(f"{entry} is no file and no {{ split, path }}")
        patterns.setdefault(split, []).extend(texts)
    return str(config["config_name"]), Subset(patterns, root, config.get("default") is True)


def _entries(value: JsonValue) -> list[JsonValue]:
    """One or several."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _chosen_subset(name: HubName, wanted: str | None, subsets: dict[str, Subset]) -> Subset:
    if not subsets:
        if wanted in (None, "default"):
            return Subset({}, "", is_default=True)
        raise _unusable(
            name,
            f"it has no subset '{wanted}': its README.md names none",
            f"leave the subset out, or name files, as hf://datasets/{name}/FILES",
        )
    if wanted is None:
        usual = [
            subset
            for subset, facts in subsets.items()
            if len(subsets) == 1 or subset == "default" or facts.is_default
        ]
        if len(usual) != 1:
            raise _unusable(
                name,
                f"it has {len(subsets)} subsets ({_some(subsets)})",
                f"name one, as hf://datasets/{name}?subset={quote(next(iter(subsets)), safe='')}",
            )
        return subsets[usual[0]]
    if wanted in subsets:
        return subsets[wanted]
    raise _unusable(name, f"it has no subset '{wanted}'", f"name one of: {_some(subsets)}")


def _chosen_split(name: HubName, wanted: str | None, splits: list[str]) -> str:
    if wanted is None and len(splits) == 1:
        return splits[0]
    if wanted is None:
        why, fix = f"it has {len(splits)} splits ({_some(splits)})", "name one, as split="
        raise _unusable(name, why, f"{fix}{quote(splits[0], safe='')}")
    if wanted in splits:
        return wanted
    raise _unusable(name, f"it has no split '{wanted}'", f"name one of: {_some(splits)}")


def _splits_by_name(name: HubName, rows: list[str]) -> Splits:
    """Files of each split, by what their names say."""
    shards: Splits = {}
    for path in rows:
        shard = SHARD.fullmatch(path)
        if shard:
            shards.setdefault(shard["split"], []).append(path)
    if shards:
        return {split: shards[split] for split in sorted(shards, key=_usual_order)}
    places: list[Callable[[str], list[str]]] = [
        lambda path: path.split("/")[:-1],
        lambda path: path.split("/")[-1:],
    ]
    for place in places:
        splits_of = {
            path: [split for split in KEYWORDS if _says(place(path), split)] for path in rows
        }
        twice = [path for path, splits in splits_of.items() if len(splits) > 1]
        if twice:
            raise _unusable(
                name,
                f"the names of its files say several splits at once: {_some(twice)}",
                _name_files(name, twice),
            )
        found = {split: [path for path in rows if split in splits_of[path]] for split in KEYWORDS}
        if any(found.values()):
            return {split: files for split, files in found.items() if files}
    return {"train": rows} if rows else {}


def _usual_order(split: str) -> tuple[int, str]:
    usual = list(KEYWORDS)
    return (usual.index(split) if split in usual else len(usual), split)


def _says(names: list[str], split: str) -> bool:
    """Whether one of the names has the split as a word: train, my-train.jsonl, train_v2."""
    word = re.compile(rf"(?:.*[-._ 0-9])?(?:{KEYWORDS[split]})(?:[-._ 0-9].*)?")
    return any(word.fullmatch(name) for name in names)


def _of_one_format(name: HubName, files: list[str]) -> list[str]:
    """Names alone cannot say whether files of two formats are the same rows twice."""
    rows = _without_describing(files)
    formats = {match["format"].lower() for path in rows if (match := ROWS.fullmatch(path))}
    if len(formats) == 1:
        return rows
    raise _unusable(
        name,
        f"the files of the split have several formats ({', '.join(sorted(formats))})",
        _name_files(name, rows),
    )


def _without_describing(files: list[str]) -> list[str]:
    """Beside data files, a .json file describes them."""
    rows = [path for path in files if not path.lower().endswith(".json")]
    return rows or files


def _is_seen(path: str) -> bool:
    """Whether a file has rows and is not hidden."""
    *_, file = parts = path.split("/")
    hidden = any(part.startswith((".", "__")) for part in parts)
    return ROWS.fullmatch(path) is not None and file not in DESCRIBING and not hidden


def _matches(name: HubName, pattern: str, paths: list[str]) -> list[str]:
    """
    A file of any name, or the files of rows that a pattern matches. `*` stays in a directory, `**`
    does not. Hidden files are matched by their names alone.
    """
    plain = pattern.removeprefix("./")
    if plain in paths:
        return [plain]
    try:
        expression = re.compile("".join(_expression(piece) for piece in WILDCARD.split(plain)))
    except re.error as error:
        raise _unusable(
            name, f"'{pattern}' is no pattern ({error})", "use *, ** and [ab] as in paths"
        ) from error
    found = [path for path in paths if expression.fullmatch(path)]
    return [path for path in found if _is_seen(path)]


def _expression(piece: str) -> str:
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if piece in wild:
        return wild[piece]
    if WILDCARD.fullmatch(piece):
        return f"[^{piece[2:]}" if piece.startswith("[!") else piece
    return re.escape(piece)


def _unusable(name: HubName, why: str, fix: str) -> FetchFailure:
    return FetchFailure(f"Cannot use data set '{name}' because {why}. Fix: {fix}")


def _name_files(name: HubName, files: list[str]) -> str:
    return f"name the files, as hf://datasets/{name}/PATTERN; it has {_some(files)}"


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED_MAX} more" if len(listed) > NAMED_MAX else ""
    return f"{', '.join(listed[:NAMED_MAX])}{more}"
