"""
A model directory whose completions never end, so that every peer samples the same number of tokens.

    python endless_model.py SOURCE SEED TARGET

SOURCE: a recipe of the worker package, or a Hugging Face directory.

The end-of-sequence token is moved beyond the model's vocabulary: it is there, and no model can
sample it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from transformers import AutoTokenizer

from holdfast_worker.trainer.model.create_model import create_model


def main() -> None:
    source, seed, target = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if Path(source).is_dir():
        shutil.copytree(source, target)
    else:
        create_model(source, seed=seed, directory=str(target), home=str(target.parent))
    rows = json.loads((target / "config.json").read_text())["vocab_size"]
    tokenizer = AutoTokenizer.from_pretrained(target)
    while len(tokenizer) <= rows:
        tokenizer.add_special_tokens({"eos_token": f"<end {len(tokenizer)}>"})
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.convert_ids_to_tokens(0)
    tokenizer.save_pretrained(target)
    path = target / "generation_config.json"
    settings = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**settings, "eos_token_id": tokenizer.eos_token_id}, indent=2))


if __name__ == "__main__":
    main()
