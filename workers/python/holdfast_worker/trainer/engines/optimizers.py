"""
The optimizers of the training step, torch's own: AdamW, Muon for hidden matrices with AdamW for the
rest, and Adafactor; and bitsandbytes' AdamW with moments of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.engines.engine import (
    ParameterGroup,
    adamw_settings,
    parameter_groups,
)
from holdfast_worker.wire.types import Optimizer


def optimizer_of(
    model: Any, optimizer: Optimizer, *, fused: bool, master: Callable[[Any], Any]
) -> Any:
    """
    The configured optimizer over a model's trained parameters. `master`: the tensor that is stepped
    in place of a parameter. `fused` is AdamW's.
    """
    groups = parameter_groups(model, optimizer)
    name = optimizer.name
    if name == "muon":
        groups = _by_rule(model, groups)
    if name == "adamw_8bit":
        groups = _by_bits(model, groups)
    for group in groups:
        group["params"] = [master(parameter) for parameter in group["params"]]
    if name == "muon":
        return Muon(groups, optimizer, fused=fused)
    if name == "adafactor":
        return torch.optim.Adafactor(groups, lr=optimizer.lr)
    if name == "adamw_8bit":
        return _adamw_8bit(groups, optimizer)
    return torch.optim.AdamW(groups, **adamw_settings(optimizer), fused=fused or None)


def _by_rule(model: Any, groups: list[ParameterGroup]) -> list[ParameterGroup]:
    """
    Every group split in two: matrices between the embeddings and the head, which has one of three
    names, are Muon's, the rest is AdamW's.
    """
    ends = {
        id(parameter)
        for end in (
            model.get_input_embeddings(),
            model.get_output_embeddings(),
            getattr(model, "score", None),
        )
        if end is not None
        for parameter in end.parameters()
    }
    return _split(
        groups,
        lambda parameter: parameter.dim() == 2 and id(parameter) not in ends,
        ({"rule": "muon"}, {"rule": "adamw"}),
    )


def _by_bits(model: Any, groups: list[ParameterGroup]) -> list[ParameterGroup]:
    """
    Every group split in two by the bits of its moments: 32 for the input embeddings, as Hugging
    Face's trainer has them, because most of their rows get no gradient in a step.
    """
    embeddings = {id(parameter) for parameter in model.get_input_embeddings().parameters()}
    return _split(
        groups,
        lambda parameter: id(parameter) not in embeddings,
        ({"optim_bits": 8}, {"optim_bits": 32}),
    )


def _split(
    groups: list[ParameterGroup],
    is_first: Callable[[Any], bool],
    settings: tuple[ParameterGroup, ParameterGroup],
) -> list[ParameterGroup]:
    """
    Every group in two, each with its own settings: the parameters that `is_first` names, and the
    others. Empty groups are left out.
    """
    split = [
        {**group, "params": [p for p in group["params"] if is_first(p) == first], **rule_settings}
        for group in groups
        for first, rule_settings in zip((True, False), settings)
    ]
    return [group for group in split if group["params"]]


def _adamw_8bit(groups: list[ParameterGroup], optimizer: Optimizer) -> Any:
    """
    Each moment is one byte per number, with a scale for every 256. Tensors below 4,096 numbers, and
    groups of 32 bits, have moments in float32. Dettmers et al. 2022, arXiv:2110.02861.
    """
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError as error:
        raise BadDataError(
            "Cannot train with optimizer adamw_8bit because bitsandbytes cannot be loaded in its "
            f"environment ({error}): pip install bitsandbytes there, or use adamw"
        ) from error

    class ByGroup(AdamW8bit):
        """With the bits of each group; bitsandbytes has them by the address of a tensor."""

        def get_config(self, gindex: int, pindex: int, group: ParameterGroup) -> dict[str, Any]:
            config: dict[str, Any] = super().get_config(gindex, pindex, group)
            return {**config, "optim_bits": group["optim_bits"]}

    return ByGroup(groups, **adamw_settings(optimizer))


class Muon(torch.optim.Optimizer):
    """
    One optimizer with one state, each of whose groups is stepped by its `rule`: `muon` or `adamw`.
    Muon's settings are torch's own, except for the factor of the learning rate: Moonshot's, with
    which a learning rate of AdamW serves both parts. Liu et al. 2025, arXiv:2502.16982.
    """

    def __init__(self, groups: list[ParameterGroup], optimizer: Optimizer, *, fused: bool) -> None:
        super().__init__(groups, {"lr": optimizer.lr})
        self.parts: dict[str, torch.optim.Optimizer] = {}
        for rule in ("muon", "adamw"):
            rule_groups = [dict(group) for group in groups if group["rule"] == rule]
            if not rule_groups:
                continue
            part = (
                torch.optim.Muon(rule_groups, lr=optimizer.lr, adjust_lr_fn="match_rms_adamw")
                if rule == "muon"
                else torch.optim.AdamW(
                    rule_groups, **adamw_settings(optimizer), fused=fused or None
                )
            )
            self.parts[rule] = part
            mine = [group for group in self.param_groups if group["rule"] == rule]
            for group, of in zip(mine, part.param_groups):
                group.update({key: value for key, value in of.items() if key != "params"})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for rule, part in self.parts.items():
            # Loading a state replaces groups and state.
            part.param_groups = [group for group in self.param_groups if group["rule"] == rule]
            part.state = self.state
            part.step()
        return None
