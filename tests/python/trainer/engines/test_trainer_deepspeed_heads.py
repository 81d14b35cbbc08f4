"""A value model on two DeepSpeed ranks."""

from __future__ import annotations

import pytest
from transformers import AutoModelForTokenClassification

from holdfast_worker import weights
from test_trainer_heads import COLUMNS, LOSSES, TOKENS_MAX, opened, train, value_batch
from trainer_harness import OPTIMIZER, Artifacts, deepspeed_python, run_ranks


def operation(op, **args):
    return {"op": op, "args": args}


def ranks_train(artifacts, head, first, last):
    loss = artifacts.put_json(LOSSES[head])
    return [
        operation(
            "train",
            **{"from": f"v{k}", "to": f"v{k + 1}"},
            batch=artifacts.put_json(value_batch(artifacts, seed=k)),
            loss=loss,
            optimizer=OPTIMIZER,
            micro_batch_tokens_max=TOKENS_MAX,
        )
        for k in range(first, last)
    ]


@pytest.mark.parametrize(
    ("zero", "dtype"), [(0, "float32"), (1, "float32"), (2, "bfloat16"), (3, "float32")]
)
def test_two_ranks_of_deepspeed_train_a_value_model_as_torch_does_and_go_on_bit_for_bit(
    tmp_path, zero, dtype
):
    deepspeed_python()
    artifacts = Artifacts(tmp_path / "artifacts")
    model, spec = str(tmp_path / "model"), {"head": "value", "zero": zero, "dtype": dtype}
    scoring = operation(
        "score",
        version="v4",
        batch=artifacts.put_json(value_batch(artifacts, seed=9)),
        columns=COLUMNS["value"],
        reference_path=None,
        micro_batch_tokens_max=TOKENS_MAX,
    )
    begin = [
        operation("create_model", recipe="tiny_qwen", seed=1, dir=model),
        operation("load", version="v0", model_path=model, optimizer=OPTIMIZER, checkpoint=None),
    ]
    first = [
        *begin,
        *ranks_train(artifacts, "value", 0, 2),
        operation("save", version="v2", dir=str(tmp_path / "checkpoint")),
        *ranks_train(artifacts, "value", 2, 4),
        scoring,
        operation("publish", version="v4", dir=str(tmp_path / "out")),
    ]
    answers = run_ranks(tmp_path, first, artifacts=artifacts, ranks=2, **spec)
    saved = [rank[5] for rank in answers]
    checkpoint = {**saved[0], "files": [file for part in saved for file in part["files"]]}
    second = [
        operation(
            "load", version="v2", model_path=model, optimizer=OPTIMIZER, checkpoint=checkpoint
        ),
        *ranks_train(artifacts, "value", 2, 4),
        scoring,
        operation("publish", version="v4", dir=str(tmp_path / "again")),
    ]
    again = run_ranks(tmp_path, second, artifacts=artifacts, ranks=2, **spec)
    assert again[0][2:5] == answers[0][6:9] and again[1][2:5] == again[0][2:5]
    assert (
        again[0][5]["digest"]
        == answers[0][9]["digest"]
        == weights.digest_of_directory(tmp_path / "out")
    )
    assert AutoModelForTokenClassification.from_pretrained(tmp_path / "out").score.weight.any()
    if dtype != "float32":
        return
    alone = opened(tmp_path / "torch", "value")
    expected = train(alone, "value", 0, 4)
    ours = [answers[0][place]["steps"][0] for place in (3, 4, 6, 7)]
    for left, right in zip(ours, expected, strict=True):
        assert (left["loss"], left["grad_norm"]) == pytest.approx(
            (right["loss"], right["grad_norm"]), rel=1e-5
        )
