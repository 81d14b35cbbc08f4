"""
A sampler asks as the chat template says, and ends a turn where the template ends it, not at the end
of a text.
"""

from __future__ import annotations

import msgpack
import pytest

import sampler_fixtures as fixtures
from chat_templates import ask, loop

END = "<system>"  # A special token of the tiny models that is not their end-of-sequence token.
TEMPLATE = loop(
    "<user>{{ m.content }}" + END,
    ask(
        "{{ 'think' if enable_thinking is not defined or enable_thinking else 'answer' }}<assistant>"
    ),
)
CHAT = {"template_arguments": {}}


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    model = fixtures.make_model(tmp_path_factory.mktemp("model") / "tiny")
    worker = fixtures.make_worker()
    fixtures.load(worker, model, fixtures.publish(model, "v1"))
    worker.engine.tokenizer.chat_template = TEMPLATE
    return worker


def sample(worker, *, chat, messages=True):
    """The slab of twelve prompts, and its completions' token ids with how each ended."""
    arguments = fixtures.slab_arguments("v1", draws=12, tokens_max=100)
    for draw in arguments["slab"]["draws"]:
        text = draw["row"]["prompt"]
        draw["row"]["prompt"] = [{"role": "user", "content": text}] if messages else text
        draw.update({} if chat is None else {"chat": chat})
    slab = fixtures.generate(worker, arguments)[1]
    ended = [
        (one["tokens"][one["action_mask"] == 1].tolist(), one["stop"])
        for one in fixtures.trajectories(slab)
    ]
    return msgpack.unpackb(slab), ended


def test_a_turn_ends_at_the_token_that_the_template_ends_it_with_or_at_the_models_own(worker):
    tokenizer = worker.engine.tokenizer
    end, eos = tokenizer.convert_tokens_to_ids(END), tokenizer.eos_token_id
    slab, ended = sample(worker, chat=CHAT)
    stopped = [tokens for tokens, stop in ended if stop == "stop"]
    assert {tokens[-1] for tokens in stopped} == {end, eos}
    assert all(not {end, eos} & set(tokens[:-1]) for tokens in stopped)
    assert all(not {end, eos} & set(tokens) for tokens, stop in ended if stop == "length")
    texts = [one["text"] for group in slab["groups"] for one in group["trajectories"]]
    assert not any(END in text for text in texts)


@pytest.mark.parametrize(
    ("chat", "messages"), [(None, True), (CHAT, False)], ids=["eos_token", "plain text"]
)
def test_where_no_template_ends_a_turn_its_token_is_one_like_any_other(worker, chat, messages):
    tokenizer = worker.engine.tokenizer
    ended = sample(worker, chat=chat, messages=messages)[1]
    assert {tokens[-1] for tokens, stop in ended if stop == "stop"} == {tokenizer.eos_token_id}
    assert any(tokenizer.convert_tokens_to_ids(END) in tokens[:-1] for tokens, _ in ended)


def test_template_arguments_are_in_what_the_model_is_asked(worker):
    def asked(arguments):
        slab = sample(worker, chat={"template_arguments": arguments})[0]
        return {group["prompt_text"].rpartition(END)[2] for group in slab["groups"]}

    assert asked({}) == {"think<assistant>"}
    assert asked({"enable_thinking": False}) == {"answer<assistant>"}
