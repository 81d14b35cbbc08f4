"""
Chats are taught and sampled as the model's template writes them, for the shapes of published
templates.
"""

import datetime as dt
import json

import pytest

from chat_templates import (
    CALLING,
    EMPTY,
    OPENING,
    SHAPES,
    ask,
    loop,
    tokenizer_for,
    tokenizer_of,
)
from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import (
    encode_prompt,
    encode_rows,
    encode_supervised,
    refuse_ignored,
    turn_end,
)
from holdfast_worker.sampler.stopping import end_tokens, turn_ends

CHAT = {"template_arguments": {}}
shapes = pytest.mark.parametrize("shape", list(SHAPES))


def says(*texts):
    """A conversation that the user begins."""
    return [
        {"role": ("user", "assistant")[place % 2], "content": text}
        for place, text in enumerate(texts)
    ]


def text_of(tokenizer, tokens, mask=None, bit=1):
    return tokenizer.decode(
        [token for i, token in enumerate(tokens) if mask is None or mask[i] == bit]
    )


@shapes
def test_what_is_taught_is_what_the_template_writes_after_the_prompt(shape):
    tokenizer, form = tokenizer_for(shape), SHAPES[shape]
    tokens, mask = encode_supervised(tokenizer, says("hi"), "yo", CHAT)
    assert text_of(tokenizer, tokens, mask, 0) == form.asked
    assert text_of(tokenizer, tokens, mask, 1) == form.written
    assert mask == sorted(mask)
    assert encode_supervised(tokenizer, says("hi"), says("hi", "yo")[1:], CHAT) == (tokens, mask)


DATED = loop("{% if m.role == 'assistant' %}<model>{% endif %}{{ m.content }}<end>", ask("<model>"))


@pytest.mark.parametrize("form", ["%d %b %Y", "%Y-%m-%d", "%B %d, %Y"])
def test_a_template_that_asks_for_today_gets_the_day_of_the_run(form):
    template = (
        "{% if strftime_now is defined %}{{ strftime_now('" + form + "') }}{% endif %}" + DATED
    )
    tokenizer = tokenizer_of(template, ("<end>",), "<end>")
    day = dt.date(2024, 2, 29)
    text, prompt = encode_prompt(tokenizer, says("hi"), {**CHAT, "date": "2024-02-29"})
    assert text == day.strftime(form) + "hi<end><model>"
    tokens, _ = encode_supervised(tokenizer, says("hi"), "yo", {**CHAT, "date": "2024-02-29"})
    assert tokens[: len(prompt)] == prompt
    # Without a day templates read the clock.
    before, text, after = (
        dt.date.today(),
        encode_prompt(tokenizer, says("hi"), CHAT)[0],
        dt.date.today(),
    )
    assert text.removesuffix("hi<end><model>") in {before.strftime(form), after.strftime(form)}


@shapes
def test_a_taught_row_is_what_a_sampler_would_have_recorded(shape):
    tokenizer, form = tokenizer_for(shape), SHAPES[shape]
    end = tokenizer.convert_tokens_to_ids(form.end)
    text, prompt = encode_prompt(tokenizer, says("hi"), CHAT)
    tokens, mask = encode_supervised(tokenizer, says("hi"), "yo", CHAT)
    assert text == form.asked and tokens[: len(prompt)] == prompt and mask.index(1) == len(prompt)
    assert tokens[-1] == end == turn_end(tokenizer, says("hi"), CHAT)
    assert end not in tokens[len(prompt) : -1]
    assert turn_ends(tokenizer, ["hi", says("hi")], CHAT) == {end}
    assert end_tokens(tokenizer, "/nowhere") == {tokenizer.eos_token_id}


@shapes
def test_every_turn_of_several_is_taught_after_what_the_model_is_shown_there(shape):
    tokenizer = tokenizer_for(shape)
    chat = says("a", "bb", "c", "dd", "e", "ff")
    sequences = encode_rows(tokenizer, chat[:1], chat[1:], CHAT)
    for turn, said in ((1, "bb"), (3, "dd"), (5, "ff")):
        alone, alone_mask = encode_supervised(tokenizer, chat[:turn], said, CHAT)
        begins = alone_mask.index(1)
        same = [mask for tokens, mask in sequences if tokens[: len(alone)] == alone]
        assert [mask[begins : len(alone)] for mask in same] == [alone_mask[begins:]]
    taught = [text_of(tokenizer, tokens, mask) for tokens, mask in sequences]
    one = SHAPES[shape].written
    assert "".join(taught) == "".join(one.replace("yo", said) for said in ("bb", "dd", "ff"))
    assert len(sequences) == (3 if shape in ("qwen3", "no end of its own") else 1)


def test_thoughts_are_taught_in_the_turn_that_has_them_and_left_out_of_later_prompts():
    tokenizer = tokenizer_for("qwen3")
    chat = says("a", "<think>\nhm\n</think>\n\nb", "c", "<think>\noh\n</think>\n\nd")
    first, second = encode_rows(tokenizer, chat[:1], chat[1:], CHAT)
    assert text_of(tokenizer, *first) == "<think>\nhm\n</think>\n\nb<|im_end|>"
    assert text_of(tokenizer, *second) == "<think>\noh\n</think>\n\nd<|im_end|>"
    assert "hm" not in text_of(tokenizer, second[0])


def test_a_pair_is_one_sequence_a_side_so_a_template_that_rewrites_turns_is_refused():
    chat = says("a", "bb", "c", "dd")
    with pytest.raises(
        BadDataError,
        match="does not keep earlier turns .*: give each assistant turn a separate row",
    ):
        encode_supervised(tokenizer_for("qwen3"), chat[:1], chat[1:], CHAT)


TOOLS = json.dumps([{"type": "function", "function": {"name": "sum"}}])


def calling(arguments, content=""):
    call = {"type": "function", "function": {"name": "sum", "arguments": arguments}}
    return said(content, tool_calls=[call])


def said(content, **more):
    """A message of the assistant as rows have it."""
    return {"role": "assistant", "content": content, "more": json.dumps(more)}


def calling_tokenizer():
    return tokenizer_of(CALLING, ("<|im_start|>", "<|im_end|>"), "<|im_end|>")


@pytest.mark.parametrize("content", ["", None])
@pytest.mark.parametrize("arguments", [{"b": 1.0, "a": 2}, '{"b": 1.0, "a": 2}'])
def test_tools_calls_and_thoughts_are_asked_and_taught(content, arguments):
    tokenizer = calling_tokenizer()
    answer = said("2", reasoning_content="hm")
    turns = [calling(arguments, content), {"role": "tool", "content": "2"}, answer]
    ((tokens, mask),) = encode_rows(tokenizer, says("hi"), turns, CHAT, tools=TOOLS)
    assert (
        text_of(tokenizer, tokens, mask)
        == '<call>sum{"b": 1.0, "a": 2}</call><|im_end|><think>hm</think>2<|im_end|>'
    )
    prompt_tokens = encode_prompt(tokenizer, says("hi"), CHAT, tools=TOOLS)
    assert (
        '[{"type": "function", "function": {"name": "sum"}}]' in prompt_tokens[0]
        and tokens[: len(prompt_tokens[1])] == prompt_tokens[1]
    )
    refuse_ignored(tokenizer, says("hi"), turns, CHAT, tools=TOOLS)


@pytest.mark.parametrize(
    ("turn", "tools", "what"),
    [
        ("yo", TOOLS, "tools"),
        ([calling({})], None, "message 2 tool_calls"),
        ([said("b", reasoning_content="hm")], None, "message 2 reasoning_content"),
        ([said("b", thinking="hm")], None, "message 2 thinking"),
    ],
)
def test_what_a_template_does_not_write_is_refused_with_its_field(turn, tools, what):
    tokenizer = tokenizer_for("chatml on a base model")
    with pytest.raises(BadDataError, match=f"^{what}: the model's chat template writes nothing"):
        refuse_ignored(tokenizer, says("hi"), turn, CHAT, tools=tools)


@pytest.mark.parametrize(
    ("prompt", "completion", "says_so"),
    [
        ("<bos><start_of_turn>user\nhi", "yo", "message 1 content: it has '<bos>', which"),
        ("<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n", "yo", "message 1 content"),
        ("hi", "yo<end_of_turn>\n", "message 2 content: it has '<end_of_turn>', which"),
    ],
)
def test_a_message_that_is_rendered_already_is_refused(prompt, completion, says_so):
    tokenizer = tokenizer_for("gemma")
    with pytest.raises(BadDataError, match=f"^{says_so}"):
        refuse_ignored(tokenizer, says(prompt), completion, CHAT)
    refuse_ignored(tokenizer, says("what is <end_of_turn>, or <bos>?"), "yo", CHAT)


def test_an_end_that_no_template_writes_is_not_taught_twice():
    tokenizer = tokenizer_of(loop("{{ m.role }}:{{ m.content }}\n", ask("assistant:")), (), "<eos>")
    tokens, mask = encode_supervised(tokenizer, says("a"), "b<eos>", CHAT)
    assert text_of(tokenizer, tokens, mask) == "b<eos>"


def test_a_thought_of_an_earlier_turn_may_be_left_out_of_a_prompt():
    tokenizer = tokenizer_for("chatml on a base model")
    prompt = [*says("a"), said("b", reasoning_content="hm"), *says("c")]
    refuse_ignored(tokenizer, prompt, "yo", CHAT)


def test_a_missing_content_is_never_written_as_none():
    template = loop(
        "{{ m.role }}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}<eos>",
        "",
    )
    with pytest.raises(BadDataError, match="^message 2 content: .* writes null as 'None'"):
        refuse_ignored(tokenizer_of(template, (), "<eos>"), says("hi"), [calling({}, None)], CHAT)


def test_what_only_a_template_could_write_is_refused_without_one():
    for prompt in ("hi", says("hi")):
        with pytest.raises(BadDataError, match="Cannot teach tool_calls of a message because"):
            encode_rows(calling_tokenizer(), prompt, [calling({})], None)


def test_template_arguments_reach_the_template():
    tokenizer = tokenizer_for("qwen3")
    chat = {"template_arguments": {"enable_thinking": False}}
    text, _ = encode_prompt(tokenizer, says("hi"), chat)
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    tokens, mask = encode_supervised(tokenizer, says("hi"), "yo", chat)
    assert text_of(tokenizer, tokens, mask) == "yo<|im_end|>"
    assert text_of(tokenizer, tokens, mask, 0) == text


def test_a_completion_that_the_prompt_does_not_lead_to_is_refused():
    template = loop("<|im_start|>{{ m.role }}{{ m.content }}<|im_end|>", ask("<|im_start|>model"))
    tokenizer = tokenizer_of(template, ("<|im_start|>", "<|im_end|>"), "<|im_end|>")
    with pytest.raises(
        BadDataError, match="requests it with 'model', but the whole conversation has 'assistant"
    ):
        encode_supervised(tokenizer, says("hi"), "yo", CHAT)


def opening_tokenizer(family):
    template = {**OPENING, **EMPTY}[family]
    return tokenizer_of(template, ("<|im_start|>", "<|im_end|>"), "<|im_end|>")


def taught(tokenizer, completion, chat=CHAT):
    """What is taught after the text that a sampler is asked with."""
    ((tokens, mask),) = encode_rows(tokenizer, says("hi"), completion, chat)
    refuse_ignored(tokenizer, says("hi"), completion, chat)
    assert text_of(tokenizer, tokens, mask, 0) == encode_prompt(tokenizer, says("hi"), chat)[0]
    return text_of(tokenizer, tokens, mask)


@pytest.mark.parametrize("family", list(OPENING))
def test_a_thought_that_the_prompt_opens_is_taught_from_after_its_opening(family):
    tokenizer = opening_tokenizer(family)
    line = "" if family == "v3.1" else "\n"
    assert encode_prompt(tokenizer, says("hi"), CHAT)[0].endswith("assistant\n<think>" + line)
    written = f"hm{line}</think>{line * 2}yo"
    for completion in (f"<think>{line}{written}", written):
        assert taught(tokenizer, completion) == written + "<|im_end|>"
    # A message without a thought is taught an empty one.
    assert taught(tokenizer, "yo") == f"{line}</think>{line * 2}yo<|im_end|>"


@pytest.mark.parametrize("field", ["reasoning_content", "thinking"])
@pytest.mark.parametrize("family", ["r1", "qwq", "v3.1"])
def test_a_thought_in_a_field_is_taught_after_the_opening(family, field):
    turn = [said("yo", **{field: "hm"})]
    line = "" if family == "v3.1" else "\n"
    expected = f"hm{line}</think>{line * 2}yo<|im_end|>"
    assert taught(opening_tokenizer(family), turn) == expected


@pytest.mark.parametrize("field", ["reasoning_content", "thinking"])
@pytest.mark.parametrize(
    "written", ["<think>hm</think>", " <think>\nhm\n</think>\n\n", "hm</think>"]
)
def test_a_thought_in_a_field_is_taught_without_its_own_tags(field, written):
    turn = [said("yo", **{field: written})]
    assert taught(opening_tokenizer("qwq"), turn) == "hm\n</think>\n\nyo<|im_end|>"
    calling = tokenizer_of(CALLING, ("<|im_start|>", "<|im_end|>"), "<|im_end|>")
    if field == "reasoning_content":
        assert taught(calling, turn) == "<think>hm</think>yo<|im_end|>"
    with pytest.raises(
        BadDataError, match="^Cannot train on message 2 .* inside its thought. Fix:"
    ):
        taught(opening_tokenizer("qwq"), [said("yo", **{field: f"a {written} b"})])


@pytest.mark.parametrize("family", list(OPENING))
@pytest.mark.parametrize(
    "completion",
    [
        "The tag </think> closes.",
        "4 <think>late</think> 5",
        "<think>hm</think> The tag </think> closes.",
        "<think>hm <think> a</think>yo",
        "a\n</think>\nb\n</think>\nc",
    ],
)
def test_tags_that_are_not_around_one_thought_at_the_beginning_are_refused(family, completion):
    with pytest.raises(BadDataError, match="^Cannot train on message 2 .* elsewhere than .* Fix:"):
        taught(opening_tokenizer(family), completion)


@pytest.mark.parametrize("family", ["r1", "qwq", "v3.1"])
def test_a_thought_without_its_opening_ends_on_a_line_of_its_own_or_as_the_prompt_begins_it(family):
    tokenizer = opening_tokenizer(family)
    assert taught(tokenizer, "hm\n</think>\n\nyo") == "hm\n</think>\n\nyo<|im_end|>"
    assert taught(tokenizer, "</think>yo") == "</think>yo<|im_end|>"
    if family == "v3.1":
        assert taught(tokenizer, "hm</think>yo") == "hm</think>yo<|im_end|>"
    else:
        with pytest.raises(BadDataError, match="elsewhere than"):
            taught(tokenizer, "hm</think>yo")


def test_later_prompts_have_the_answer_alone():
    chat = says("a", "<think>\nhm\n</think>\n\nbb", "c", "dd")
    first, second = encode_rows(opening_tokenizer("qwq"), chat[:1], chat[1:], CHAT)
    tokenizer = opening_tokenizer("qwq")
    assert text_of(tokenizer, *first) == "hm\n</think>\n\nbb<|im_end|>"
    prompt = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nbb<|im_end|>\n"
    assert text_of(tokenizer, second[0]).startswith(prompt + "<|im_start|>user\nc")


@pytest.mark.parametrize("family", list(EMPTY))
def test_after_an_empty_thought_in_the_prompt_the_answer_alone_is_taught(family):
    tokenizer = opening_tokenizer(family)
    chat = {"template_arguments": {"enable_thinking": False}}
    for completion in ("yo", "<think>\n\n</think>\n\nyo"):
        assert taught(tokenizer, completion, chat) == "yo<|im_end|>"
    with pytest.raises(BadDataError, match="has a thought, and the prompt already closes .* Fix:"):
        taught(tokenizer, "<think>\nhm\n</think>\n\nyo", chat)


@pytest.mark.parametrize("completion", ["so <think>\nhm", "<think>\nhm", "<think>hm"])
def test_a_thought_without_an_end_is_refused(completion):
    with pytest.raises(BadDataError, match="^Cannot train on message 2 .* has no </think>. Fix:"):
        taught(opening_tokenizer("qwq"), completion)


def test_a_message_that_a_template_writes_into_an_opened_thought_is_refused():
    template = loop(
        "<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think>\n{% endif %}{{ m.content }}<|im_end|>\n",
        ask("<|im_start|>assistant\n<think>\n"),
    )
    tokenizer = tokenizer_of(template, ("<|im_start|>", "<|im_end|>"), "<|im_end|>")
    with pytest.raises(BadDataError, match="^Cannot train on message 2 .* has no </think>. Fix:"):
        taught(tokenizer, "yo")


def test_a_template_that_refuses_the_messages_says_so_with_their_roles():
    tokenizer = tokenizer_of("{{ raise_exception('roles must alternate') }}", (), "<eos>")
    with pytest.raises(
        BadDataError, match="refuses them: roles must alternate. Their roles are user, user"
    ):
        encode_prompt(tokenizer, says("a")[:1] * 2, CHAT)


@shapes
def test_rows_recorded_before_chats_had_a_record_are_encoded_as_then(shape):
    tokenizer, form = tokenizer_for(shape), SHAPES[shape]
    tokens, mask = encode_supervised(tokenizer, says("hi"), "yo")
    assert text_of(tokenizer, tokens, mask) == f"yo{form.eos}"
    assert text_of(tokenizer, tokens, mask, 0) == form.asked
    assert turn_ends(tokenizer, [says("hi")], None) == set()


def test_plain_text_is_not_touched_by_a_template():
    tokenizer = tokenizer_for("gemma")
    tokens, mask = encode_supervised(tokenizer, "hi", "yo", CHAT)
    assert text_of(tokenizer, tokens) == "hiyo<eos>"
    assert (tokens, mask) == encode_supervised(tokenizer, "hi", "yo")
    assert turn_ends(tokenizer, ["hi"], CHAT) == set()


def test_a_tokenizer_that_puts_a_space_before_a_beginning_does_not_put_one_in_the_middle():
    from tokenizers import pre_tokenizers

    tokenizer = tokenizer_of(loop("{{ m.role }}:{{ m.content }}\n", ask("assistant:")), (), "<eos>")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=True, use_regex=False
    )
    assert text_of(tokenizer, tokenizer.encode("b", add_special_tokens=False)) == " b"
    tokens, mask = encode_supervised(tokenizer, says("a"), "b", CHAT)
    assert text_of(tokenizer, tokens, mask) == "b<eos>"
