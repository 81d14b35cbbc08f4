"""Writes a file of JSON lines as Parquet, as pyarrow does by default.

Usage: as_parquet.py FILE PARQUET
"""

import sys

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

ROW_GROUP_ROWS = 1024 * 1024  # As `pq.write_table` has it.


def main() -> None:
    path, parquet = sys.argv[1], sys.argv[2]
    with pyarrow.json.open_json(path) as batches:
        held: list[pa.RecordBatch] = []
        with pq.ParquetWriter(parquet, batches.schema) as writer:
            for batch in batches:
                held.append(batch)
                if sum(one.num_rows for one in held) >= ROW_GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(held))
                    held = []
            if held:
                writer.write_table(pa.Table.from_batches(held))


main()
