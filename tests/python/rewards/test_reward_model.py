"""A reward model that was trained and exported by the trainer, asked as a reward."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from chat_templates import CALLING
from holdfast_worker.operation import BadDataError, OperationIO, RankContext
from holdfast_worker.prompts import encode_supervised
from holdfast_worker.rewards.worker import Worker
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardModelSettings
from loss_expressions import comparison
from test_trainer_pair_batches import preference_batch
from trainer_harness import PACKAGE_ROOT, Trainer

CHAT = [{"role": "user", "content": "sort 321"}]
PAIRS = [("sort 21 =", "12", "21", 0.0), (CHAT, "123", "132", 0.0), ("sort 90 =", "09", "9", 0.0)]
SAMPLES = [
    ("sort 21 =", "12"),
    ("sort 21 =", "21"),
    (CHAT, "123"),
    (CHAT, ""),
    ("sort 4321 =", "1234 and more"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reward_model")
    trainer = Trainer(directory, head="score")
    trainer.create()
    trainer.load()
    for step in range(5):
        trainer.train(
            preference_batch(PAIRS), between=(f"v{step}", f"v{step + 1}"), loss=comparison()
        )
    return trainer.call("publish", version="v5", dir=str(directory / "final"))["dir"]


def context(**spec):
    return RankContext(
        role="reward",
        group="reward",
        generation=1,
        rank=0,
        world_size=1,
        spec=spec,
        artifacts_dir="",
    )


class Scorer:
    """The reward worker in this process."""

    def __init__(self, path: str, **settings):
        self.worker = Worker(context(processes=1))
        self.settings = {
            "path": path,
            "dtype": "float32",
            "device": "cpu",
            "threads": 1,
            **settings,
        }
        self.settings = {
            "batch_tokens_max": 8192,
            "turn_end": "eos_token",
            "template_arguments": {},
            **self.settings,
        }

    def score(self, samples, **fields):
        items = [
            {"id": str(place), "prompt": prompt, "completion": completion, **fields}
            for place, (prompt, completion) in enumerate(samples)
        ]
        return self.ask(items)

    def ask(self, items):
        return self.worker._model(decode(RewardModelSettings, self.settings)).score(
            items, lambda done: None
        )


def test_a_score_is_the_logit_of_transformers_own_classifier_at_the_end_of_the_sample(path):
    results = Scorer(path).score(SAMPLES)
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForSequenceClassification.from_pretrained(path)
    for (prompt, completion), result in zip(SAMPLES, results, strict=True):
        tokens, _ = encode_supervised(tokenizer, prompt, completion)
        with torch.no_grad():
            expected = model(torch.tensor([tokens])).logits[0, 0].item()
        assert (result["outcome"], result["error"]) == ("ok", None)
        assert result["score"] == pytest.approx(expected, abs=1e-5)
    assert len({result["score"] for result in results}) == len(SAMPLES)


def test_the_same_samples_give_the_same_bits_however_often_and_batches_change_only_rounding(path):
    scorer = Scorer(path)
    first, again = scorer.score(SAMPLES), scorer.score(SAMPLES)
    fresh = Scorer(path).score(SAMPLES)
    bits = [result["score"] for result in first]
    assert [result["score"] for result in again] == bits == [result["score"] for result in fresh]
    assert len(scorer.worker._models) == 1
    single = Scorer(path, batch_tokens_max=1).score(SAMPLES)
    assert [result["score"] for result in single] == pytest.approx(bits, abs=1e-5)
    assert [result["id"] for result in single] == ["0", "1", "2", "3", "4"]


def test_sampled_tokens_stand_for_the_completion_only_where_they_spell_it(path):
    scorer = Scorer(path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    prompt, text = SAMPLES[0]
    [by_text] = scorer.score([(prompt, text)])
    model = scorer.worker._models[next(iter(scorer.worker._models))]
    ids = tokenizer.encode(text)
    end = tokenizer.eos_token_id
    expected = encode_supervised(tokenizer, prompt, text)[0]
    item = {"id": "0", "prompt": prompt, "completion": text}
    for token_ids in ([*ids, end], ids, None, [], [999_999], [*ids, *ids], tokenizer.encode("21")):
        assert model.encode({**item, "token_ids": token_ids}) == expected
    # Another spelling of the same text: what was sampled is what is scored.
    model.tokenizer = _TwoSpellings(tokenizer, alias=(7, ids))
    assert model.encode({**item, "token_ids": [7, end]}) == [*expected[: -len(ids) - 1], 7, end]
    assert by_text["outcome"] == "ok"


def test_the_tools_of_a_row_are_in_the_prompt_that_is_scored(path):
    scorer = Scorer(path, turn_end="template")
    model = scorer.worker._model(decode(RewardModelSettings, scorer.settings))
    model.tokenizer.chat_template = CALLING
    tools = '[{"name": "f"}]'
    item = {"id": "0", "prompt": CHAT, "completion": "123"}
    for token_ids in ([], model.tokenizer.encode("123")):
        plain = model.encode({**item, "token_ids": token_ids})
        whole = model.encode({**item, "token_ids": token_ids, "tools": tools})
        assert tools in model.tokenizer.decode(whole)
        assert whole[-len(plain) :] == plain


class _TwoSpellings:
    """A tokenizer with one more token, which decodes to the text of several."""

    def __init__(self, tokenizer, alias):
        self._tokenizer, self._alias = tokenizer, alias

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __len__(self):
        return len(self._tokenizer)

    def decode(self, tokens, **options):
        alias, ids = self._alias
        whole = [other for token in tokens for other in (ids if token == alias else [token])]
        return self._tokenizer.decode(whole, **options)


def test_a_sample_that_cannot_be_scored_fails_alone_and_is_never_a_score(path, monkeypatch):
    scorer = Scorer(path)
    too_long, fine = scorer.score([("a" * 600, "b"), SAMPLES[0]])
    assert (too_long["outcome"], too_long["score"]) == ("error", None)
    assert "602 tokens because the reward model has room for 512" in too_long["error"]
    assert fine["outcome"] == "ok"
    model = scorer.worker._models[next(iter(scorer.worker._models))]
    monkeypatch.setattr(model, "_forward", lambda rows: [math.nan] * len(rows))
    [broken] = scorer.score(SAMPLES[:1])
    assert (broken["outcome"], broken["score"]) == ("bad_return", None)
    assert "score is nan" in broken["error"]


def test_a_language_model_is_refused_as_it_would_score_everything_alike(path, tmp_path):
    trainer = Trainer(tmp_path)
    with pytest.raises(
        BadDataError, match="is not a reward model: it has no tensor 'score.weight'. Train one with"
    ):
        Scorer(trainer.create()).score(SAMPLES)


def test_a_reward_model_is_tried_alone_as_a_function_is(path, tmp_path):
    items = [
        {"id": str(place), "prompt": prompt, "completion": text}
        for place, (prompt, text) in enumerate(SAMPLES)
    ]
    command = [sys.executable, "-m", "holdfast_worker.rewards.try_function"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    lines = "\n".join(map(json.dumps, items))
    run = partial(subprocess.run, input=lines, env=environment, text=True, capture_output=True)
    done = run([*command, path])
    assert done.returncode == 0, done.stderr
    tried = [json.loads(line) for line in done.stdout.splitlines()]
    expected = Scorer(path).score(SAMPLES)
    assert [result["id"] for result in tried] == [result["id"] for result in expected]
    assert [result["score"] for result in tried] == pytest.approx(
        [result["score"] for result in expected], abs=1e-5
    )
    refused = run([*command, str(tmp_path)])
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "lacks config.json" in refused.stderr


def test_work_is_told_between_batches_and_ends_when_it_is_cancelled(path):
    scorer = Scorer(path, batch_tokens_max=1)
    progress = []
    io = OperationIO.alone(
        send_progress=lambda message: progress.append((message.phase, message.done))
    )
    args = {
        "model": scorer.settings,
        "shared": {"json": '{"prompt": "a"}'},
        "items": [
            {"id": "0", "completion": "b", "tokens": 0, "token_ids": [], "stop": "stop"},
            {"id": "1", "completion": "c", "tokens": 0, "token_ids": [], "stop": "stop"},
        ],
    }
    scorer.worker.operations["score_by_model"](args, io)
    assert progress[-1] == ("scoring", 2.0)
    io.cancelled.set()
    with pytest.raises(Exception, match="was cancelled"):
        scorer.worker.operations["score_by_model"](args, io)
