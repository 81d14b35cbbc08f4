"""Writes one table of all types as a stream of Arrow and as Parquet, and streams of few types.

Usage: write_arrow.py DIRECTORY
"""

import datetime
import pathlib
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 30
BATCH_ROWS = 7
AT = datetime.datetime(1969, 12, 31, 23, 59, 58, 765432)
DAY = datetime.date(2026, 1, 2)
TIME = datetime.time(1, 2, 3, 456789)
SPAN = datetime.timedelta(days=1, microseconds=7)
TEXTS = ["", "é", "\U0001f600 \u4f60\u597d", "a longer text than fits in a view", "line\nline\0"]


def nested(n: int) -> dict:
    call = {"function": {"name": f"f{n}", "arguments": {"city": TEXTS[n % 5], "days": n}}}
    asked = {"role": "user", "content": TEXTS[n % 5], "tool_calls": None}
    called = {"role": "assistant", "content": None, "tool_calls": [call] * (n % 3)}
    return {
        "messages": [asked, called] if n % 4 else [],
        "meta": {"id": 2**60 + n} if n % 3 else None,
    }


def columns() -> dict[str, pa.Array]:
    """Every type that both formats have, with nulls."""
    numbers = [None if n % 5 == 4 else n for n in range(ROWS)]

    def of(kind: pa.DataType, value=lambda n: n) -> pa.Array:
        return pa.array([None if n is None else value(n) for n in numbers], kind)

    small = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
    units = ["s", "ms", "us", "ns"]
    text = lambda n: TEXTS[n % 5]  # noqa: E731
    raw = lambda n: bytes([n, 255, 0])  # noqa: E731
    seconds = lambda n: n * 1_000_003 - 7  # noqa: E731
    arrays = {
        **{kind: of(getattr(pa, kind)()) for kind in small},
        "int64": of(pa.int64(), lambda n: (-1) ** n * (2**53 + n - 3)),
        "uint64": of(pa.uint64(), lambda n: 2**64 - 1 - n),
        "float16": of(pa.float16(), lambda n: n / 4 - 3),
        "float32": of(pa.float32(), lambda n: n / 3),
        "float64": of(pa.float64(), lambda n: [0.1, float("nan"), float("inf"), -1e300][n % 4]),
        "bool": of(pa.bool_(), lambda n: n % 2 == 0),
        "null": of(pa.null(), lambda n: None),
        "empty_text": of(pa.string(), lambda n: None),
        "string": of(pa.string(), text),
        "large_string": of(pa.large_string(), text),
        "string_view": of(pa.string_view(), text),
        "binary": of(pa.binary(), raw),
        "large_binary": of(pa.large_binary(), raw),
        "binary_view": of(pa.binary_view(), lambda n: raw(n) * n),
        "fixed_binary": of(pa.binary(3), raw),
        "decimal": of(pa.decimal128(38, 3), lambda n: Decimal(-n) / 4),
        "long_decimal": of(pa.decimal128(38, 3), lambda n: Decimal(10**25) + n),
        "wide_decimal": of(pa.decimal256(60, 2), lambda n: Decimal(-(10**45)) + n),
        "date32": of(pa.date32(), lambda n: DAY - datetime.timedelta(days=n * 1000)),
        "date64": of(pa.date64(), lambda n: DAY + datetime.timedelta(days=n)),
        **{f"timestamp_{u}": of(pa.timestamp(u), seconds) for u in units},
        "timestamp_utc": of(pa.timestamp("us", tz="UTC"), lambda n: AT + n * SPAN),
        **{f"time_{u}": of(pa.time32(u), lambda n: n) for u in units[:2]},
        **{f"time_{u}": of(pa.time64(u), lambda n: n * 10**9) for u in units[2:]},
        **{f"duration_{u}": of(pa.duration(u), seconds) for u in units},
        "list": of(pa.list_(pa.int64()), lambda n: [2**60, None, n][: n % 4]),
        "large_list": of(pa.large_list(pa.string()), lambda n: [text(n), None][: n % 3]),
        "fixed_list": of(pa.list_(pa.float32(), 2), lambda n: [n, n / 2]),
        "lists": of(pa.list_(pa.list_(pa.string())), lambda n: [[text(n)], [], None][: n % 4]),
        "map": of(pa.map_(pa.string(), pa.int64()), lambda n: [("a", n), ("b", None)][: n % 3]),
        "json": json_column(
            [None if n is None else f'{{"at": {2**60 + n}, "x": [1, null]}}' for n in numbers]
        ),
    }
    return {**arrays, "nested": pa.array([nested(n) for n in range(ROWS)])}


def json_column(texts: list[str | None]) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))


def write_stream(path: pathlib.Path, table: pa.Table, **options: str) -> None:
    kept = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(path, table.schema, options=kept) as writer:
        writer.write_table(table, max_chunksize=BATCH_ROWS)


def write_pair(directory: pathlib.Path, table: pa.Table) -> None:
    directory.mkdir()
    write_stream(directory / "rows.arrow", table)
    pq.write_table(table, directory / "rows.parquet", row_group_size=BATCH_ROWS)


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    table = pa.table(columns())
    write_pair(directory / "types", table)
    plain = table.select(["string", "int64"])
    write_pair(directory / "no_rows", plain.slice(0, 0))
    write_stream(directory / "lz4.arrow", plain, compression="lz4")
    with pa.ipc.new_file(directory / "file.arrow", plain.schema) as file:
        file.write_table(plain)
    words = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", None, "c"]).dictionary_encode()]
    )
    write_stream(directory / "words.arrow", pa.table({"prompt": words.unify_dictionaries()}))
    write_stream(
        directory / "deltas.arrow", pa.table({"prompt": words}), emit_dictionary_deltas=True
    )
    unions = pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    )
    write_stream(
        directory / "union.arrow",
        pa.table({"prompt": ["a"], "u": pa.array([{"x": 1}]), "in": unions}),
    )
    texts = pa.array([b"a", b"caf\xe9"], pa.binary()).view(pa.string())
    write_stream(
        directory / "latin1.arrow", pa.table({"prompt": pa.array(["a", "b"]), "note": texts})
    )


main()
