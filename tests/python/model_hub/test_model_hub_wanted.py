"""Which files of a model's repository a run reads."""

from __future__ import annotations

import pytest

from holdfast_worker.model_hub.wanted import files_beside_weights, weights_entry, why_no_weights


def test_the_files_of_a_model_are_its_configuration_tokenizer_and_templates() -> None:
    wanted = [
        "config.json",
        "merges.txt",
        "tokenizer.model",
        "qwen.tiktoken",
        "chat_template.jinja",
        "additional_chat_templates/tool.jinja",
    ]
    unread = ["README.md", "LICENSE.txt", "notice.txt", "pytorch_model.bin.index.json"]
    unread += ["sub/a.json"]
    names = [*wanted, *unread, "own.py", "tf_model.h5"]
    assert files_beside_weights(names, code=False) == wanted
    assert files_beside_weights(names, code=True) == [*wanted, "own.py"]
    index, single = "model.safetensors.index.json", "model.safetensors"
    assert weights_entry([single, index]) == index
    assert weights_entry([single]) == single
    assert weights_entry(["consolidated.safetensors"]) is None


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["pytorch_model.bin"], "only as PyTorch pickles"),
        (["adapter_config.json", "adapter_model.bin"], "it is an adapter"),
        (["q4.gguf"], "only as GGUF"),
        (["config.json"], "it has no weights"),
    ],
)
def test_what_a_repository_has_instead_of_weights(names: list[str], says: str) -> None:
    assert says in why_no_weights(names)
