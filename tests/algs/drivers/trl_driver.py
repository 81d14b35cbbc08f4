"""
TRL's own losses with injected log-probabilities: float64, one rank, one micro-batch, as
`answer_lines` speaks. The trainers are bare objects with the attributes that the methods read, set
as their constructors set them from TRL's own configurations; the methods are TRL's.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from accelerate import Accelerator
from trl import (
    DPOConfig,
    DPOTrainer,
    GRPOConfig,
    GRPOTrainer,
    KTOConfig,
    KTOTrainer,
    RLOOConfig,
    RLOOTrainer,
    SFTConfig,
    SFTTrainer,
)
from trl.experimental.gmpo import GMPOConfig, GMPOTrainer

from answer_lines import answer_lines

PROMPT = [7, 8]
PAD = 0
EOS = 2
MODEL = torch.nn.Module()  # In training; never called.
MODEL.is_gradient_checkpointing = False


def bare(cls: type, config: Any, **attributes: Any) -> Any:
    """A trainer without a model, a data set or an optimizer."""
    trainer = object.__new__(cls)
    trainer.__dict__.update(
        args=config,
        accelerator=Accelerator(cpu=True),
        model=MODEL,
        aux_loss_enabled=False,
        current_gradient_accumulation_steps=1,
        _tp_size=1,
        _total_train_tokens=0,
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
        _logs=defaultdict(list, rewards=defaultdict(list), extra=defaultdict(list)),
        _pending_extra_logs=defaultdict(list),
        _pending_metrics=defaultdict(list),
    )
    trainer.__dict__.update(attributes)
    return trainer


def config_of(cls: type, settings: dict[str, Any], **fixed: Any) -> Any:
    directory = tempfile.mkdtemp(prefix="holdfast-trl-")
    return cls(output_dir=directory, use_cpu=True, bf16=False, report_to=[], **fixed, **settings)


class Round:
    """
    Completions as TRL sees them: every position of a sequence, `tool_mask` where it is not trained.
    `cut`: which of them end without an end-of-sequence token; None: none does.
    """

    def __init__(
        self, sequences: list[dict[str, Any]], holes: bool, cut: list[bool] | None = None
    ) -> None:
        self.sequences = sequences
        self.cut = cut or [False] * len(sequences)
        self.holes = holes
        self.places = [
            [t for t, bit in enumerate(one["mask"]) if bit or holes] for one in sequences
        ]
        self.width = max(map(len, self.places))

    def rows(self, name: str) -> list[list[float]]:
        """Per sequence; a number where ours may be anything, which TRL multiplies with 0."""
        column = [one["inputs"][name] for one in self.sequences]
        read = lambda values, t: -1.0 if values[t] is None else values[t]  # noqa: E731
        return [[read(values, t) for t in places] for values, places in zip(column, self.places)]

    def padded(self, name: str) -> torch.Tensor:
        rows = [row + [-1.0] * (self.width - len(row)) for row in self.rows(name)]
        return torch.tensor(rows, dtype=torch.float64)

    def gradients(self, leaf: torch.Tensor) -> list[list[float]]:
        """[N][T], 0 where TRL has no position."""
        found = []
        for one, places, grad in zip(self.sequences, self.places, leaf.grad.tolist()):
            row = [0.0] * len(one["mask"])
            for k, t in enumerate(places):
                row[t] = grad[k]
            found.append(row)
        return found

    def generated(self) -> dict[str, Any]:
        count = len(self.sequences)
        masks = [
            [one["mask"][t] for t in places] for one, places in zip(self.sequences, self.places)
        ]
        return {
            "prompts": [PROMPT] * count,
            "completions": [
                [1] * (len(places) - 1) + [1 if cut else EOS]
                for places, cut in zip(self.places, self.cut)
            ],
            "tool_mask": masks if self.holes else None,
            "behaviour": self.rows("behaviour_logp"),
        }


def sampled(
    trainer: Any, round: Round, rewards: list[list[float | None]], weights: list[float]
) -> None:
    """What generation, rewards and the models would give. `rewards`: one column per function."""
    columns = [[float("nan") if x is None else x for x in column] for column in rewards]
    g = round.generated()
    logp = round.padded("logp").requires_grad_()
    by_model = {
        "live": logp,
        id(trainer.model): round.padded("old_logp"),
        "ref": round.padded("ref_logp"),
    }
    entropy = round.padded("entropy").requires_grad_()

    def forward(model: Any, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor, None]:
        return by_model[model if isinstance(model, str) else id(model)], entropy, None

    trainer.__dict__.update(
        _get_per_token_logps_and_entropies=forward,
        _calculate_rewards=lambda *_: torch.tensor(columns, dtype=torch.float64).T,
        ref_model="ref",
        reward_weights=torch.tensor(weights, dtype=torch.float64),
        reward_funcs=[None] * len(weights),
        reward_func_names=[f"reward_{k}" for k in range(len(weights))],
        num_generations=trainer.args.num_generations,
        num_iterations=trainer.args.num_iterations,
        beta=trainer.args.beta,
        epsilon_low=trainer.args.epsilon,
        epsilon_high=trainer.args.epsilon
        if trainer.args.epsilon_high is None
        else trainer.args.epsilon_high,
        mask_truncated_completions=trainer.args.mask_truncated_completions,
        max_completion_length=trainer.args.max_completion_length,
        pad_to_multiple_of=None,
        _tokenizer=SimpleNamespace(pad_token_id=PAD),
        eos_token_ids=[EOS],
        leaves={"logp": logp, "entropy": entropy},
        given=g,
    )


def grpo(
    argument: dict[str, Any],
    trainer_of: type[GRPOTrainer] = GRPOTrainer,
    settings_of: type[GRPOConfig] = GRPOConfig,
) -> dict[str, Any]:
    count = len(argument["sequences"])
    sizes = {
        "per_device_train_batch_size": count,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
    }
    config = config_of(
        settings_of, argument["settings"], num_generations=argument["group"], **sizes
    )
    copied = (
        "use_vllm vllm_importance_sampling_correction vllm_importance_sampling_mode "
        "vllm_importance_sampling_clip_max vllm_importance_sampling_clip_min loss_type "
        "multi_objective_aggregation scale_rewards importance_sampling_level "
        "off_policy_mask_threshold top_entropy_quantile entropy_coef use_adaptive_entropy"
    ).split()
    trainer = bare(trainer_of, config, **{name: getattr(config, name) for name in copied})
    trainer.__dict__.update(
        _entropy_bonus_enabled=config.entropy_coef != 0.0,
        environment_factories=None,
        environments=None,
        tools=[],
    )
    round = Round(argument["sequences"], holes=True, cut=argument["cut"])
    sampled(trainer, round, argument["rewards"], argument["weights"])
    g = trainer.given
    trainer._generate = lambda prompts: (
        g["prompts"],
        g["completions"],
        g["tool_mask"],
        g["completions"],
        g["behaviour"],
        {},
        None,
        None,
    )
    return both_of(trainer, round)


def gmpo(argument: dict[str, Any]) -> dict[str, Any]:
    return grpo(argument, GMPOTrainer, GMPOConfig)


def rloo(argument: dict[str, Any]) -> dict[str, Any]:
    count = len(argument["sequences"])
    sizes = {
        "per_device_train_batch_size": count,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
    }
    config = config_of(RLOOConfig, argument["settings"], num_generations=argument["group"], **sizes)
    trainer = bare(
        RLOOTrainer,
        config,
        normalize_advantages=config.normalize_advantages,
        reward_clip_range=config.reward_clip_range,
    )
    round = Round(argument["sequences"], holes=False, cut=argument["cut"])
    sampled(trainer, round, argument["rewards"], argument["weights"])
    g = trainer.given
    trainer._generate = lambda prompts, *_: (g["prompts"], g["completions"], g["completions"])
    return both_of(trainer, round)


def both_of(trainer: Any, round: Round) -> dict[str, Any]:
    """TRL's advantages, then its loss with them."""
    inputs = trainer._generate_and_score_completions([{"prompt": "p"} for _ in round.sequences])
    loss = trainer._compute_loss("live", inputs)
    loss.backward()
    gradients = {
        name: round.gradients(leaf)
        for name, leaf in trainer.leaves.items()
        if leaf.grad is not None
    }
    return {
        "loss": loss.item(),
        "gradients": gradients,
        "advantages": inputs["advantages"].tolist(),
    }


class Outputs:
    """
    What TRL's language-model head gives: log-probabilities of the labels, 0 where they are ignored.
    """

    def __init__(self, log_probs: torch.Tensor, label_mask: torch.Tensor) -> None:
        self.log_probs = log_probs
        self.label_mask = label_mask
        self.entropy = torch.zeros_like(log_probs)
        self.mean_logits = torch.zeros_like(log_probs)
        self.is_top1 = torch.zeros_like(label_mask)


def language_model(
    round: Round, mask: torch.Tensor, order: list[int], name: str
) -> tuple[Any, torch.Tensor]:
    """Position t of ours is the target t: the first has none before it."""
    leaf = round.padded(name).requires_grad_()
    return lambda **_: Outputs((leaf * mask)[order][:, 1:], mask[order][:, 1:]), leaf


def masks_of(round: Round) -> torch.Tensor:
    rows = [one["mask"] + [0] * (round.width - len(one["mask"])) for one in round.sequences]
    return torch.tensor(rows, dtype=torch.bool)


def dpo(argument: dict[str, Any]) -> dict[str, Any]:
    config = config_of(DPOConfig, argument["settings"])
    round = Round(argument["sequences"], holes=True)
    mask = masks_of(round)
    order = [
        *range(0, len(mask), 2),
        *range(1, len(mask), 2),
    ]  # ours: by turns; TRL's: chosen, then rejected
    model, leaf = language_model(round, mask, order, "logp")
    reference, _ = language_model(round, mask, order, "ref_logp")
    copied = "beta f_divergence_type ld_alpha label_smoothing use_weighting".split()
    trainer = bare(DPOTrainer, config, **{name: getattr(config, name) for name in copied})
    weights = config.loss_weights or [1.0] * len(config.loss_type)
    trainer.__dict__.update(
        loss_types=config.loss_type,
        loss_weights=weights,
        precompute_ref_logps=False,
        ref_model=reference,
    )
    ids = mask[order].long()
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "completion_mask": ids}
    loss = trainer._compute_loss(model, inputs, return_outputs=False)
    loss.backward()
    return {"loss": loss.item(), "gradients": {"logp": round.gradients(leaf)}}


def kto(argument: dict[str, Any]) -> dict[str, Any]:
    """Sequences of label 0 are what the KL is estimated with. The first id of a row names it."""
    config = config_of(KTOConfig, argument["settings"])
    round = Round(argument["sequences"], holes=True)
    mask = masks_of(round)
    labels = [one["inputs"]["label"] for one in round.sequences]
    matched = [place for place, label in enumerate(labels) if label != 0]
    mismatched = [place for place, label in enumerate(labels) if label == 0]

    def model_of(name: str) -> tuple[Any, torch.Tensor]:
        leaf = round.padded(name).requires_grad_()

        def forward(input_ids: torch.Tensor, **_: Any) -> Outputs:
            order = input_ids[:, 0].tolist()
            return Outputs((leaf * mask)[order][:, 1:], mask[order][:, 1:])

        return forward, leaf

    def rows(order: list[int], prefix: str) -> dict[str, torch.Tensor]:
        ids = mask[order].long()
        ids[:, 0] = torch.tensor(order)
        return {
            f"{prefix}input_ids": ids,
            f"{prefix}attention_mask": torch.ones_like(ids),
            f"{prefix}completion_mask": mask[order].long(),
        }

    model, leaf = model_of("logp")
    copied = "beta desirable_weight undesirable_weight loss_type".split()
    trainer = bare(KTOTrainer, config, **{name: getattr(config, name) for name in copied})
    trainer.__dict__.update(
        calculate_KL=config.loss_type == "kto",
        precompute_ref_logps=False,
        ref_model=model_of("ref_logp")[0],
    )
    inputs = {
        **rows(matched, ""),
        **rows(mismatched, "KL_"),
        "label": torch.tensor([labels[place] > 0 for place in matched]),
    }
    loss = trainer._compute_loss(model, inputs, return_outputs=False)
    loss.backward()
    metrics = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    return {
        "loss": loss.item(),
        "gradients": {"logp": round.gradients(leaf)},
        "metrics": metrics,
    }


def sft(argument: dict[str, Any]) -> dict[str, Any]:
    config = config_of(SFTConfig, argument["settings"])
    round = Round(argument["sequences"], holes=True)
    mask = masks_of(round)
    model, leaf = language_model(round, mask, list(range(len(mask))), "logp")
    trainer = bare(
        SFTTrainer, config, compute_loss_func=None, label_smoother=None, is_deepspeed_enabled=False
    )
    ids = mask.long()
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": ids.masked_fill(~mask, -100),
    }
    loss = trainer.compute_loss(model, inputs, num_items_in_batch=mask.sum())
    loss.backward()
    return {"loss": loss.item(), "gradients": {"logp": round.gradients(leaf)}}


COMMANDS = {"grpo": grpo, "gmpo": gmpo, "rloo": rloo, "dpo": dpo, "kto": kto, "sft": sft}


def main() -> None:
    torch.set_default_dtype(torch.float64)  # TRL makes tensors of lists of numbers.
    answer_lines(COMMANDS)


main()
