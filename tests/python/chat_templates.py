"""
Chat templates of the shapes that published models have, written for these tests, and tokenizers
that have them.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

CHARACTERS = string.digits + string.ascii_letters + "ĠĊ" + string.punctuation


@dataclass(frozen=True)
class Shape:
    """
    `asked`, `written`: of a user's `hi` and the assistant's `yo`. `end`: what ends the assistant's
    turn.
    """

    template: str
    special: tuple[str, ...]
    eos: str
    asked: str
    written: str
    end: str


def loop(body: str, after: str) -> str:
    return "{% for m in messages %}" + body + "{% endfor %}" + after


def ask(text: str, otherwise: str = "") -> str:
    return "{% if add_generation_prompt %}" + text + "{% else %}" + otherwise + "{% endif %}"


CHATML = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
# Thoughts are kept in the last turn alone, and an empty one is written where it has none.
THINKING = """\
{%- set ns = namespace(last=0) %}{% for m in messages %}
{%- if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- set said = m.content.split('</think>')[-1].lstrip('\n') %}
{%- set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\n') if '</think>' in m.content else '' %}
{{- '<|im_start|>' + m.role + '\n' }}
{%- if m.role == 'assistant' and loop.index0 > ns.last %}{{- '<think>\n' + thought + '\n</think>\n\n' }}{% endif %}
{{- said + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{% endif %}
{%- endif %}"""
# Prompts that open a thought, or an empty one, by published models: DeepSeek-R1's distillates and
# QwQ drop thoughts from messages, Qwen3-Thinking keeps those of the last turn, Nemotron's messages
# have no thought where its prompt has an empty one, DeepSeek-V3.1 closes in messages what it opens
# in prompts.
ANSWER = "{{ m.content.split('</think>')[-1] }}"
TURNS = (
    "{% if m.role == 'user' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n"
    "{% else %}<|im_start|>assistant\n@<|im_end|>\n{% endif %}"
)
OPENED = loop(TURNS.replace("@", ANSWER), ask("<|im_start|>assistant\n<think>\n"))
OPENING = {
    "r1": OPENED,
    "qwq": OPENED.replace("[-1] }}", "[-1].lstrip('\\n') }}"),
    "qwen3 thinking": THINKING.replace(
        "{{- '<|im_start|>assistant\n' }}", "{{- '<|im_start|>assistant\n<think>\n' }}"
    ),
    "v3.1": loop(TURNS.replace("@", "</think>" + ANSWER), ask("<|im_start|>assistant\n<think>")),
}
EMPTY = {
    "qwen3": THINKING,  # With enable_thinking: false.
    "nemotron": loop(TURNS.replace("@", ANSWER), ask("<|im_start|>assistant\n<think></think>")),
}

# Tools, their calls and thoughts, as in Qwen's templates.
CALLING = """\
{%- if tools %}{{- '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{- '<think>' + m.reasoning_content + '</think>' }}{% endif %}
{{- m.content or '' }}
{%- for call in m.tool_calls or [] %}
{{- '<call>' + call.function.name + (call.function.arguments | tojson) + '</call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

SHAPES = {
    "gemma": Shape(
        "{{ bos_token }}"
        + loop(
            "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n",
            ask("<start_of_turn>model\n"),
        ),
        ("<start_of_turn>", "<end_of_turn>"),
        "<eos>",
        "<bos><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n",
        "yo<end_of_turn>",
        "<end_of_turn>",
    ),
    "phi-3": Shape(
        loop(
            "<|{{ m.role }}|>\n{{ m.content }}<|end|>\n", ask("<|assistant|>\n", "{{ eos_token }}")
        ),
        ("<|user|>", "<|assistant|>", "<|end|>"),
        "<|endoftext|>",
        "<|user|>\nhi<|end|>\n<|assistant|>\n",
        "yo<|end|>",
        "<|end|>",
    ),
    "chatml on a base model": Shape(
        loop(CHATML, ask("<|im_start|>assistant\n")),
        ("<|im_start|>", "<|im_end|>"),
        "<|endoftext|>",
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
        "yo<|im_end|>",
        "<|im_end|>",
    ),
    "llama 3": Shape(
        "{{ bos_token }}"
        + loop(
            "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>",
            ask("<|start_header_id|>assistant<|end_header_id|>\n\n"),
        ),
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "<|end_of_text|>",
        "<bos><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "yo<|eot_id|>",
        "<|eot_id|>",
    ),
    "mistral": Shape(
        "{{ bos_token }}"
        + loop(
            "{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]"
            "{% else %} {{ m.content }}{{ eos_token }}{% endif %}",
            "",
        ),
        ("[INST]", "[/INST]"),
        "</s>",
        "<bos>[INST] hi[/INST]",
        " yo</s>",
        "</s>",
    ),
    "qwen3": Shape(
        THINKING,
        ("<|im_start|>", "<|im_end|>"),
        "<|im_end|>",
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
        "<think>\n\n</think>\n\nyo<|im_end|>",
        "<|im_end|>",
    ),
    "no end of its own": Shape(
        loop("{{ m.role }}: {{ m.content }}\n", ask("assistant:")),
        (),
        "<eos>",
        "user: hi\nassistant:",
        " yo<eos>",
        "<eos>",
    ),
}


def tokenizer_of(template: str | None, special: tuple[str, ...], eos: str) -> Any:
    """One token per character and per special token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<unk>", "<bos>", *dict.fromkeys([eos, *special])]
    vocabulary = {token: place for place, token in enumerate((*names, *CHARACTERS))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in names]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<bos>",
        eos_token=eos,
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )


def tokenizer_for(shape: str) -> Any:
    form = SHAPES[shape]
    return tokenizer_of(form.template, form.special, form.eos)
