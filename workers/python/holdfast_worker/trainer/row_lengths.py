"""
Tokens of rows before anything is generated from them: rows that are too long, or have a token that
the model has not, are found at the start, not in round 300.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import numpy as np

from holdfast_worker.model_hub.cache import model_directory
from holdfast_worker.model_opening import PLAIN, Opening
from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.prompts import (
    Prompt,
    encode_prompt,
    encode_rows,
    encode_supervised,
    refuse_ignored,
)
from holdfast_worker.wire.answers import RefusedRow, TrainerMeasureRowsAnswer
from holdfast_worker.wire.received import plain
from holdfast_worker.wire.types import TrainerMeasureRows

PROGRESS_ROWS = 1000


class Measured(TypedDict):
    """
    Of a row, what is measured: its prompt, and its completion or both sides. `rejected`: missing
    where a completion has no partner.
    """

    row_id: str
    prompt: Prompt
    completion: Prompt
    rejected: NotRequired[Prompt]
    tools: NotRequired[str]


class RowLengths:
    """
    Measures rows and remembers the results: an evaluation inside a loop requests the same rows each
    time.
    """

    def __init__(self, opening: Opening = PLAIN) -> None:
        self.opening = opening
        self.known: dict[tuple[str, ...], np.ndarray] = {}

    def measure(self, args: TrainerMeasureRows, io: OperationIO) -> TrainerMeasureRowsAnswer:
        """
        Blob 0: int32 [N, 2], tokens of the prompt and of the row's longest sequence. A row that
        cannot be used is named, and nothing is measured.
        """
        model_path, use, ref, chat = args.model_path, args.use, args.rows, plain(args.chat)
        key = (model_path, use, ref.sha256, json.dumps(chat, sort_keys=True))
        if key not in self.known:
            rows = json.loads(io.read_artifact(ref))
            positions = _field(model_path, self.opening, "max_position_embeddings")
            model = _Model(
                _tokenizer(model_path, self.opening), _field(model_path, self.opening, "vocab_size")
            )
            try:
                self.known[key] = _lengths(rows, args, model=model, io=io)
            except RefusedRowError as error:
                io.blob(b"")
                refused: RefusedRow = {"row": error.row, "why": str(error)}
                return {"rows": 0, "model_tokens_max": positions, "refused": refused}
        lengths = self.known[key]
        io.blob(lengths.tobytes())
        positions = _field(model_path, self.opening, "max_position_embeddings")
        return {"rows": len(lengths), "model_tokens_max": positions}


@dataclass(frozen=True)
class _Model:
    """`vocabulary`: its number of embeddings; None: its configuration has none."""

    tokenizer: Any
    vocabulary: int | None

    def check(self, tokens: list[int]) -> None:
        """Raises BadDataError for a token without an embedding: on a GPU it would end the process."""
        largest = max(tokens, default=-1)
        if self.vocabulary is not None and largest >= self.vocabulary:
            raise BadDataError(
                f"its token {largest} ({self.tokenizer.convert_ids_to_tokens(largest)!r}) has no "
                f"embedding: the tokenizer has {len(self.tokenizer)} tokens and the model "
                f"{self.vocabulary}. Fix: resize the model's embeddings "
                "(resize_token_embeddings), or use the tokenizer that it was trained with"
            )


class RefusedRowError(Exception):
    """`row`: its place among the rows of the request."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row


def _lengths(
    rows: list[Measured], args: TrainerMeasureRows, *, model: _Model, io: OperationIO
) -> np.ndarray:
    lengths = np.zeros((len(rows), 2), dtype="<i4")
    for place, row in enumerate(rows):
        try:
            lengths[place] = _of_row(row, args, model)
        except BadDataError as error:
            raise RefusedRowError(place, str(error)) from error
        if place % PROGRESS_ROWS == 0:
            io.check_cancelled()
            io.progress("measure", place, len(rows))
    return lengths


def _of_row(row: Measured, args: TrainerMeasureRows, model: _Model) -> tuple[int, int]:
    use, chat, tools, tokenizer = args.use, plain(args.chat), row.get("tools"), model.tokenizer
    if row["prompt"] == "" and use == "completion":
        tokens, mask = encode_supervised(tokenizer, "", row["completion"])
        prompt_tokens = tokens[: mask.index(1)]
    else:
        prompt_tokens = encode_prompt(tokenizer, row["prompt"], chat, tools=tools)[1]
    model.check(prompt_tokens)
    prompt = len(prompt_tokens)
    if use == "prompt":
        refuse_ignored(tokenizer, row["prompt"], chat=chat, tools=tools)
        return prompt, prompt
    # The engine sends rows that have what is to be measured.
    sides = [row["completion"]]
    if use == "preference" and "rejected" in row:
        sides.append(row["rejected"])
    for side in sides:
        refuse_ignored(tokenizer, row["prompt"], side, chat, tools=tools)
    encoded = (
        encode_rows(tokenizer, row["prompt"], row["completion"], chat, tools=tools)
        if use == "completion"
        else [
            encode_supervised(tokenizer, row["prompt"], side, chat, tools=tools) for side in sides
        ]
    )
    for tokens, _ in encoded:
        model.check(tokens)
    return prompt, max(len(tokens) for tokens, _ in encoded)


def _tokenizer(model_path: str, opening: Opening) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_directory(model_path), **opening.reading())


def _field(model_path: str, opening: Opening, name: str) -> int | None:
    """A number of the model's configuration; None: it has none of that name."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model_directory(model_path), **opening.reading())
    text = getattr(config, "text_config", None) or config
    return getattr(text, name, None)
