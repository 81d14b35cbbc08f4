"""Opens a file of JSON lines with Hugging Face `datasets` and reads rows at random places.

Usage: datasets_open.py FILE CACHE READS. Prints one JSON object.
"""

import json
import random
import resource
import sys
import time

import datasets

KIB_PER_MIB = 1024


def main() -> None:
    path, cache, reads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    began = time.perf_counter()
    rows = datasets.load_dataset("json", data_files=path, cache_dir=cache, split="train")
    opened = time.perf_counter()
    draw = random.Random(1)
    for _ in range(reads):
        rows[draw.randrange(len(rows))]
    read = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    timing = {
        "rows": len(rows),
        "open_s": opened - began,
        "read_s": read - opened,
        "peak_mib": peak,
    }
    print(json.dumps(timing))


main()
