"""What is done to a model that is trained, with a source that only records it."""

from types import SimpleNamespace
from typing import Any

from holdfast_worker.trainer.model.opening import open_trained


class Model:
    def __init__(self) -> None:
        self.checkpointing: dict[str, Any] | None = None

    def gradient_checkpointing_enable(self, *, gradient_checkpointing_kwargs: Any) -> None:
        self.checkpointing = gradient_checkpointing_kwargs


class Source:
    def __init__(self, adapter: Any = None) -> None:
        self.adapter = adapter
        self.opened: list[tuple[str, dict[str, Any]]] = []

    def open_model(self, dtype: str, **options: Any) -> Model:
        self.opened.append((dtype, options))
        return Model()


def spec(*, gradient_checkpointing: bool) -> Any:
    return SimpleNamespace(
        dtype="bfloat16", dropout=0.1, gradient_checkpointing=gradient_checkpointing
    )


def test_the_model_has_the_dtype_and_dropout_of_the_specification() -> None:
    source: Any = Source()
    model = open_trained(source, spec(gradient_checkpointing=False), device="cpu")
    assert source.opened == [("bfloat16", {"dropout": 0.1})]
    assert model.checkpointing is None


def test_an_adapter_is_added_before_checkpointing_is_enabled() -> None:
    added: list[tuple[Model, str]] = []
    wrapped = Model()

    def add_to(model: Model, dtype: str) -> Model:
        added.append((model, dtype))
        return wrapped

    source: Any = Source(SimpleNamespace(quantize=False, add_to=add_to))
    model = open_trained(source, spec(gradient_checkpointing=True), device="cpu")
    assert model is wrapped
    assert [dtype for _, dtype in added] == ["bfloat16"]
    assert added[0][0].checkpointing is None
    # Reentrant checkpointing loses the gradients if no input of a block requires one.
    assert wrapped.checkpointing == {"use_reentrant": False}
