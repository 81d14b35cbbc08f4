"""Tokens of rows as the model and the sampler will see them."""

import json
import shutil

import msgpack
import numpy as np
import pytest
from transformers import AutoTokenizer

import sampler_fixtures as fixtures
from chat_templates import CALLING, THINKING
from holdfast_worker.prompts import encode_prompt, encode_supervised
from holdfast_worker.trainer.row_lengths import RowLengths
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import TrainerMeasureRows
from own_model import change
from trainer_harness import Artifacts, io_of

CHAT = [{"role": "user", "content": "hi there"}]
ROWS = [
    {"row_id": "plain", "prompt": "sort 321", "completion": " 123", "rejected": " 3"},
    {"row_id": "chat", "prompt": CHAT, "completion": "yes", "rejected": "not at all"},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fixtures.make_model(tmp_path_factory.mktemp("model") / "tiny")


TOOLS = json.dumps([{"type": "function", "function": {"name": "f"}}])


def with_template(tmp_path, model, template):
    path = tmp_path / "with_template"
    shutil.copytree(model, path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(path)
    return path


def measure(tmp_path, model, use, rows=ROWS, measured=None, **how):
    artifacts = Artifacts(tmp_path)
    io = io_of(artifacts)
    rows = artifacts.put_json(rows)
    arguments = {"model_path": str(model), "use": use, "rows": rows, "chat": None, **how}
    answer = (measured or RowLengths()).measure(decode(TrainerMeasureRows, arguments), io)
    return answer, np.frombuffer(io.blobs[0], "<i4").reshape(-1, 2).tolist()


@pytest.mark.parametrize("use", ["prompt", "completion", "preference"])
def test_measure_rows_counts_what_the_model_is_shown(tmp_path, model, use):
    tokenizer = AutoTokenizer.from_pretrained(model)
    sides = {"prompt": [], "completion": ["completion"], "preference": ["completion", "rejected"]}[
        use
    ]
    expected = []
    for row in ROWS:
        prompt = len(encode_prompt(tokenizer, row["prompt"])[1])
        whole = [len(encode_supervised(tokenizer, row["prompt"], row[side])[0]) for side in sides]
        expected.append([prompt, max(whole, default=prompt)])
    answer, lengths = measure(tmp_path, model, use)
    positions = json.loads((model / "config.json").read_text())["max_position_embeddings"]
    assert (answer, lengths) == ({"rows": 2, "model_tokens_max": positions}, expected)


def test_measure_rows_counts_a_completion_without_a_partner_among_preferences(tmp_path, model):
    """As KTO reads them: pairs, and completions with a label."""
    alone = [{name: row[name] for name in ("row_id", "prompt", "completion")} for row in ROWS]
    _, lengths = measure(tmp_path, model, "preference", [alone[0], ROWS[1]])
    _, learned = measure(tmp_path, model, "completion", alone)
    _, both = measure(tmp_path, model, "preference")
    assert lengths == [learned[0], both[1]]


def test_measure_rows_counts_a_whole_text(tmp_path, model):
    row = {"row_id": "a", "prompt": "", "completion": "31:13"}
    tokens, mask = encode_supervised(AutoTokenizer.from_pretrained(model), "", "31:13")
    _, lengths = measure(tmp_path, model, "completion", [row])
    assert lengths == [[mask.index(1), len(tokens)]] == [[1, 6]]


@pytest.mark.parametrize("use", ["prompt", "completion", "preference"])
def test_measure_rows_counts_a_chat_as_its_template_renders_it_with_the_runs_arguments(
    tmp_path, model, use
):
    thinking = with_template(tmp_path, model, THINKING)
    tokenizer = AutoTokenizer.from_pretrained(thinking)
    sides = {"prompt": [], "completion": ["completion"], "preference": ["completion", "rejected"]}[
        use
    ]
    (row,) = [row for row in ROWS if row["row_id"] == "chat"]
    measured, counted = (
        RowLengths(),
        [],
    )  # One of each: what is kept of the first is not the second's.
    for arguments in ({}, {"enable_thinking": False}):
        chat = {"template_arguments": arguments}
        prompt = len(encode_prompt(tokenizer, CHAT, chat)[1])
        whole = [len(encode_supervised(tokenizer, CHAT, row[side], chat)[0]) for side in sides]
        counted.append([prompt, max(whole, default=prompt)])
        assert measure(tmp_path, thinking, use, [row], measured, chat=chat)[1] == counted[-1:]
    assert counted[0] != counted[1]


@pytest.mark.parametrize("use", ["prompt", "completion", "preference"])
def test_measure_rows_counts_the_tools_of_a_row(tmp_path, model, use):
    path = with_template(tmp_path, model, CALLING)
    tokenizer = AutoTokenizer.from_pretrained(path)
    chat = {"template_arguments": {}}
    row = {**ROWS[1], "tools": TOOLS}
    prompt = len(encode_prompt(tokenizer, CHAT, chat, tools=TOOLS)[1])
    sides = {"prompt": (), "completion": ("completion",), "preference": ("completion", "rejected")}
    whole = [
        len(encode_supervised(tokenizer, CHAT, row[side], chat, tools=TOOLS)[0])
        for side in sides[use]
    ]
    assert prompt > len(TOOLS)
    assert measure(tmp_path, path, use, [row], chat=chat)[1] == [
        [prompt, max(whole, default=prompt)]
    ]


def test_measure_rows_names_the_row_that_cannot_be_encoded(tmp_path, model):
    rows = [ROWS[0], {"row_id": "empty", "prompt": ""}]
    answer, lengths = measure(tmp_path, model, "prompt", rows)
    assert (answer["rows"], answer["refused"]["row"], lengths) == (0, 1, [])
    assert answer["refused"]["why"].startswith("Cannot encode a prompt because it has no tokens")


@pytest.mark.parametrize("use", ["prompt", "completion", "preference"])
def test_measure_rows_names_what_the_template_does_not_write(tmp_path, model, use):
    chat = {"template_arguments": {}}
    answer, _ = measure(tmp_path, model, use, [{**ROWS[1], "tools": TOOLS}], chat=chat)
    assert answer["refused"]["why"].startswith("tools: the model's chat template writes nothing")


def test_generate_shows_the_model_the_tools_of_a_row(tmp_path, model):
    path = with_template(tmp_path, model, CALLING)
    worker = fixtures.make_worker()
    fixtures.load(worker, path, fixtures.publish(path, "v1"))
    arguments = fixtures.slab_arguments("v1", draws=1, samples=1)
    arguments["slab"]["draws"][0].update(
        row={"row_id": "a", "prompt": CHAT, "tools": TOOLS, "columns": {}},
        chat={"template_arguments": {}},
    )
    (group,) = msgpack.unpackb(fixtures.generate(worker, arguments)[1])["groups"]
    assert TOOLS in group["prompt_text"]


def test_generate_shows_the_model_the_last_tokens_of_a_bounded_prompt(model):
    worker = fixtures.make_worker()
    fixtures.load(worker, model, fixtures.publish(model, "v1"))
    arguments = fixtures.slab_arguments("v1", draws=2, samples=1)
    whole = fixtures.trajectories(fixtures.generate(worker, arguments)[1])
    for draw in arguments["slab"]["draws"]:
        draw["prompt_tokens_max"] = 4
    cut = fixtures.trajectories(fixtures.generate(worker, arguments)[1])
    for before, after in zip(whole, cut):
        prompt = before["tokens"][~before["action_mask"].astype(bool)]
        shown = after["tokens"][~after["action_mask"].astype(bool)]
        assert len(prompt) > 4
        assert shown.tolist() == prompt[-4:].tolist()


@pytest.mark.parametrize(
    ("use", "row"),
    [
        ("prompt", {"prompt": "a~"}),
        ("completion", {"prompt": "a", "completion": "b~"}),
        ("preference", {"prompt": "a", "completion": "b", "rejected": "~"}),
    ],
)
def test_measure_rows_names_a_row_with_a_token_that_the_model_has_not(tmp_path, model, use, row):
    short = tmp_path / "short"
    shutil.copytree(model, short)
    tokens = len(AutoTokenizer.from_pretrained(model))
    change(short, vocab_size=tokens - 1)  # `~` is the last one.
    rows = [{"row_id": "fine", "prompt": "a", "completion": "b", "rejected": "c"}]
    says = (
        f"its token {tokens - 1} ('~') has no embedding: the tokenizer has {tokens} tokens and the "
        f"model {tokens - 1}. Fix"
    )
    assert measure(tmp_path, short, use, rows)[0]["rows"] == 1
    refused = measure(tmp_path, short, use, [*rows, {"row_id": "rare", **row}])[0]["refused"]
    assert refused["row"] == 1 and refused["why"].startswith(says)
    assert measure(tmp_path, model, use, [*rows, {"row_id": "rare", **row}])[0]["rows"] == 2
