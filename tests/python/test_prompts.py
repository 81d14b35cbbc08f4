"""prompts.py: text and messages become tokens and masks."""

import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import encode_prompt, encode_supervised
from holdfast_worker.trainer.model.create_model import character_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return character_tokenizer()


def tokens_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def test_encode_prompt_leaves_text_as_it_is(tokenizer):
    assert encode_prompt(tokenizer, "sort 31:") == ("sort 31:", tokens_of(tokenizer, "sort 31:"))


def test_encode_prompt_renders_messages_ready_for_the_assistant(tokenizer):
    text, tokens = encode_prompt(tokenizer, [{"role": "user", "content": "hi"}])
    assert text == "<user>hi<eos><assistant>"
    assert tokens == tokens_of(tokenizer, text)


def test_encode_supervised_teaches_completion_and_end_of_sequence(tokenizer):
    tokens, mask = encode_supervised(tokenizer, "31:", "13")
    assert tokens == [*tokens_of(tokenizer, "31:13"), tokenizer.eos_token_id]
    assert mask == [0, 0, 0, 1, 1, 1]


def test_encode_supervised_of_messages_equals_the_sampled_sequence(tokenizer):
    prompt = [{"role": "user", "content": "31"}]
    tokens, mask = encode_supervised(tokenizer, prompt, [{"role": "assistant", "content": "13"}])
    assert tokens == encode_prompt(tokenizer, prompt)[1] + tokens_of(tokenizer, "13<eos>")
    assert sum(mask) == 3 and mask[-3:] == [1, 1, 1]
    assert encode_supervised(tokenizer, prompt, "13") == (tokens, mask)


def test_encode_supervised_teaches_every_assistant_turn_and_nothing_else(tokenizer):
    prompt = [{"role": "user", "content": "a"}]
    turns = [("assistant", "bb"), ("user", "c"), ("assistant", "d")]
    tokens, mask = encode_supervised(
        tokenizer, prompt, [{"role": role, "content": text} for role, text in turns]
    )
    taught = [token for token, one in zip(tokens, mask) if one]
    assert tokens == tokens_of(
        tokenizer, "<user>a<eos><assistant>bb<eos><user>c<eos><assistant>d<eos>"
    )
    assert taught == tokens_of(tokenizer, "bb<eos>d<eos>")


def test_a_whole_text_is_taught_after_its_first_token(tokenizer):
    for completion in ("31:13", "31:13<eos>", [{"role": "assistant", "content": "31:13"}]):
        tokens, mask = encode_supervised(tokenizer, "", completion)
        assert tokens == tokens_of(tokenizer, "31:13<eos>")
        assert mask == [0, 1, 1, 1, 1, 1]
    with pytest.raises(BadDataError, match="no tokens"):
        encode_prompt(tokenizer, "")
    for nothing in ("", "<eos>"):
        with pytest.raises(BadDataError, match="nothing follows its first token"):
            encode_supervised(tokenizer, "", nothing)


@pytest.mark.parametrize(
    ("prompt", "completion", "says"),
    [
        ("", [{"role": "assistant", "content": "b"}] * 2, "2 messages"),
        ("a", [{"role": "assistant", "content": "b"}] * 2, "2 messages"),
        (
            [{"role": "user", "content": "a"}],
            [{"role": "user", "content": "b"}],
            "no message of role 'assistant'",
        ),
    ],
)
def test_encode_supervised_names_what_is_wrong(tokenizer, prompt, completion, says):
    with pytest.raises(BadDataError, match=says):
        encode_supervised(tokenizer, prompt, completion)


def test_encode_prompt_says_that_a_chat_template_is_missing():
    plain = character_tokenizer()
    plain.chat_template = None
    with pytest.raises(BadDataError, match="no chat template"):
        encode_prompt(plain, [{"role": "user", "content": "a"}])


def opening_tokenizer(name):
    """Tokenizers that put special tokens in front of a text, of transformers' own classes."""
    from tokenizers.processors import TemplateProcessing
    from transformers import GemmaTokenizer, LlamaTokenizer

    words = ["<unk>", "<pad>", "<s>", "</s>", "<bos>", "<eos>", "▁", *"hiyo"]
    vocab = {word: place for place, word in enumerate(words)}
    if name == "gemma":
        return GemmaTokenizer(vocab=vocab, merges=[], add_bos_token=True)
    if name == "llama":
        return LlamaTokenizer(vocab=vocab, merges=[], add_bos_token=True)
    # As ChatGLM: two tokens in front, an end behind.
    tokenizer = LlamaTokenizer(vocab=vocab, merges=[])
    pieces = [(word, vocab[word]) for word in ("<s>", "<bos>", "</s>")]
    tokenizer.backend_tokenizer.add_special_tokens(["<bos>"])
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> <bos> $A </s>", special_tokens=pieces
    )
    return tokenizer


OPENS = {"gemma": "<bos>", "llama": "<s>", "two tokens": "<s><bos>"}


@pytest.mark.parametrize("name", list(OPENS))
def test_a_text_that_begins_with_the_opening_tokens_does_not_get_them_again(name):
    tokenizer, opening = opening_tokenizer(name), OPENS[name]
    begins = tokens_of(tokenizer, opening)
    plain, rendered = (encode_prompt(tokenizer, text)[1] for text in ("hi", f"{opening}hi"))
    assert plain == [*begins, *tokens_of(tokenizer, "hi")]
    assert rendered == tokens_of(tokenizer, f"{opening}hi")
    assert rendered[: len(begins)] == begins and rendered[len(begins)] not in begins
    ended = encode_prompt(tokenizer, f"hi{tokenizer.eos_token}")[1]
    assert ended == [*plain, tokenizer.eos_token_id]
    for completion in ("yo", f"yo{tokenizer.eos_token}"):
        tokens, mask = encode_supervised(tokenizer, f"{opening}hi", completion)
        assert [token for token, one in zip(tokens, mask) if not one] == rendered
        taught = [token for token, one in zip(tokens, mask) if one]
        assert taught == [*tokens_of(tokenizer, "yo"), tokenizer.eos_token_id]


@pytest.mark.parametrize("name", list(OPENS))
def test_a_whole_text_is_taught_after_the_opening_tokens(name):
    tokenizer, opening = opening_tokenizer(name), OPENS[name]
    begins = tokens_of(tokenizer, opening)
    for text in ("hi", f"{opening}hi", f"hi{tokenizer.eos_token}"):
        tokens, mask = encode_supervised(tokenizer, "", text)
        asked = encode_prompt(tokenizer, text)[1]
        ends = text.endswith(tokenizer.eos_token)
        assert tokens == (asked if ends else [*asked, tokenizer.eos_token_id])
        assert tokens[-2:].count(tokenizer.eos_token_id) == 1
        assert mask == [0] * len(begins) + [1] * (len(tokens) - len(begins))
