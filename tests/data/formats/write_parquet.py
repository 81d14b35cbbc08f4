"""Writes one table as Parquet with each codec and form of pages, and its rows as JSON lines.

Usage: write_parquet.py DIRECTORY ROWS ROW_GROUP_ROWS
"""

import base64
import datetime
import json
import pathlib
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

CODECS = ["snappy", "gzip", "brotli", "zstd", "lz4", "none"]
# Pages of a few values: rows of nested columns continue on the next page.
FEW = {"data_page_size": 1, "write_batch_size": 2, "dictionary_pagesize_limit": 64}
PAGES = {
    "few": FEW,
    "few_v2": {**FEW, "data_page_version": "2.0"},
    "few_plain": {**FEW, "use_dictionary": False},
    "few_indexed": {**FEW, "write_page_index": True},
    "delta": {
        "use_dictionary": False,
        "column_encoding": {"large": "DELTA_BINARY_PACKED", "data_source": "DELTA_BYTE_ARRAY"},
    },
    "statistics": {"write_statistics": True, "write_page_index": True},
}
DECIMALS = ["1.500", "-0.100", "12345678901234567890.125"]
SAFE_INTEGER_MAX = 2**53 - 1
EPOCH = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(MESSAGE)),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("split", pa.string()), ("index", pa.int64())])),
        ("large", pa.int64()),
        ("score", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("at", pa.timestamp("us", tz="UTC")),
        ("raw", pa.binary()),
        ("turns", pa.list_(pa.list_(MESSAGE))),
        ("missing", pa.string()),
    ]
)


def row_of(n: int) -> dict:
    asked = {"role": "user", "content": f'What is {n} + 1, "é"?\n'}
    return {
        "data_source": "sums",
        "prompt": [{"role": "system", "content": "Add."}, asked] if n % 3 else [asked],
        "reward_model": {"style": "rule", "ground_truth": str(n + 1)},
        "extra_info": {"split": "train", "index": n},
        "large": 2**60 + n if n % 2 else n,
        "score": n / 4,
        "tags": [f"t{i}" for i in range(n % 4)] if n % 5 else None,
        "at": EPOCH + datetime.timedelta(seconds=n),
        "raw": bytes([n % 256, 255]),
        "turns": [[asked], []] if n % 2 else [],
        "missing": None,
    }


def as_json(row: dict) -> dict:
    at = row["at"].strftime("%Y-%m-%dT%H:%M:%S.000Z")
    large = row["large"] if row["large"] <= SAFE_INTEGER_MAX else str(row["large"])
    raw = {"base64": base64.b64encode(row["raw"]).decode()}
    return {**row, "at": at, "large": large, "raw": raw}


def main() -> None:
    directory, count, group_rows = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rows = [row_of(n) for n in range(count)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    for codec in CODECS:
        path = directory / f"{codec}.parquet"
        pq.write_table(table, path, compression=codec, row_group_size=group_rows)
    for name, options in PAGES.items():
        pq.write_table(table, directory / f"{name}.parquet", row_group_size=group_rows, **options)
    lines = "".join(json.dumps(as_json(row), ensure_ascii=False) + "\n" for row in rows)
    (directory / "rows.jsonl").write_text(lines, encoding="utf-8")
    write_latin1(directory / "latin1.parquet")
    exact = pa.array(map(Decimal, DECIMALS), pa.decimal128(38, 3))
    pq.write_table(pa.table({"exact": exact}), directory / "decimals.parquet")


def write_latin1(path: pathlib.Path) -> None:
    """The second row's text is not UTF-8, which Parquet says of all texts."""
    texts = pa.array([b"a", b"caf\xe9"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"prompt": pa.array(["a", "b"]), "note": texts}), path)


main()
