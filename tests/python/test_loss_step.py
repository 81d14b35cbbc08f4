"""One optimizer step: what is computed when, on which data, and what stops it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from holdfast_worker.loss import (
    Counts,
    Culprit,
    LossProgram,
    MicroBatch,
    StepOutcome,
    count_step,
    run_step,
    steepest,
)
from loss_expressions import Nodes, clipped, effective_sample_size, likelihood
from simulated_ranks import in_ranks

LENGTHS = [5, 2, 7, 3, 4]


class Model:
    """Log-probabilities by sequence, in float32, as a model would give them: padded, garbage where it is masked."""

    def __init__(self, rows: list[list[float]], columns: dict[str, list[list[float]]] | None = None) -> None:
        self.rows = [torch.tensor(row, dtype=torch.float32) for row in rows]
        self.columns = columns or {}
        self.weight = torch.zeros((), requires_grad=True)
        self.calls: list[tuple[set[str], bool]] = []
        self.losses: list[tuple[float, bool]] = []

    @staticmethod
    def random(**columns: float) -> Model:
        generator = torch.Generator().manual_seed(3)
        rows = [(-2 * torch.rand(length, generator=generator)).tolist() for length in LENGTHS]
        shift = lambda row, size: [x + size * math.sin(7 * i + x) for i, x in enumerate(row)]  # noqa: E731
        return Model(rows, {name: [shift(row, size) for row in rows] for name, size in columns.items()})

    def micro_batch(self, sequences: list[int], padding: int = 0) -> MicroBatch:
        width = max([1, *(len(self.rows[s]) for s in sequences if s >= 0)]) + padding
        mask = torch.zeros(len(sequences), width, dtype=torch.bool)
        columns = {name: torch.full((len(sequences), width), math.nan) for name in self.columns}
        for row, s in enumerate(sequences):
            if s >= 0:
                mask[row, : len(self.rows[s])] = True
                for name, values in self.columns.items():
                    columns[name][row, : len(self.rows[s])] = torch.tensor(values[s])
        return MicroBatch(mask.long(), mask, columns, sequences, [max(s, 0) for s in sequences])

    def forward(self, mb: MicroBatch, need: set[str]) -> dict[str, torch.Tensor]:
        self.calls.append((set(need), torch.is_grad_enabled()))
        logp = torch.full(mb.mask.shape, math.nan)
        for row, s in enumerate(mb.sequences):
            if s >= 0:
                logp[row, : len(self.rows[s])] = self.rows[s]
        return {"logp": logp + self.weight}

    def backward(self, loss: torch.Tensor, boundary: bool) -> None:
        self.losses.append((float(loss.detach()), boundary))
        loss.backward()

    def counts(self) -> Counts:
        return count_step([[1] * len(row) for row in self.rows], list(range(len(self.rows))))

    def step(self, program: LossProgram, cut: list[list[int]], padding: int = 0, **options: Any) -> StepOutcome:
        options = {"counts": self.counts(), "gather": lambda value: [value], "world_size": 1, **options}
        batches = [self.micro_batch(rows, padding) for rows in cut]
        return run_step(program, batches, forward=self.forward, backward=self.backward, **options)


WHOLE = [[0, 1, 2, 3, 4]]


def test_backward_gets_each_share_times_the_world_size_and_the_boundary_on_the_last() -> None:
    model = Model([[-1.0, -2.0], [-3.0]])
    outcome = model.step(LossProgram(likelihood()), [[0], [1], [-1]], world_size=4)
    assert model.losses == [(4.0, False), (4.0, False), (0.0, True)]
    assert outcome == StepOutcome(2.0, {}, True, None)
    assert model.calls == [({"logp"}, True)] * 3


def test_loss_and_metrics_are_the_same_bits_for_every_cut_padding_and_world_size() -> None:
    program = LossProgram(effective_sample_size())
    first = Model.random(behaviour_logp=0.9).step(program, WHOLE)
    assert first.finite and 0 < first.metrics["policy/ess"] < 1
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        assert Model.random(behaviour_logp=0.9).step(program, cut, padding=9) == first
    ranks = [[[3], [-1]], [[1, 0], [4]], [[2], [-1, -1]]]
    outcomes = in_ranks(
        3,
        lambda rank, gather: Model.random(behaviour_logp=0.9).step(program, ranks[rank], gather=gather, world_size=3),
    )
    assert outcomes == [first] * 3


def test_a_loss_that_is_not_finite_poisons_the_last_gradient_on_every_rank_whatever_is_masked() -> None:
    n = Nodes()
    program = LossProgram(n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage")))))
    models = [Model([[-1.0, -2.0], [-3.0]], {"advantage": [[1.0, 1.0], [math.inf]]}) for _ in range(2)]
    for model in models:  # The fillers' values are the model's too: masked, yet numbers.
        model.forward = lambda mb, need, own=model: {"logp": -torch.ones(mb.mask.shape) * (1 + own.weight)}
    ranks = [[[0], [-1]], [[1], [-1]]]
    outcomes = in_ranks(2, lambda rank, gather: models[rank].step(program, ranks[rank], gather=gather, world_size=2))
    assert [outcome.finite for outcome in outcomes] == [False, False]
    assert [outcome.culprit.sequence for outcome in outcomes] == [1, 1]
    assert all(math.isnan(model.weight.grad) for model in models)


def test_steepest_names_the_live_value_with_the_largest_gradient_over_all_ranks() -> None:
    n = Nodes()
    program = LossProgram(n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage")))))
    advantage = {"advantage": [[1.0, 2.0], [3.0, -9.0, 4.0]]}
    models = [Model([[-1.0, -2.0], [-3.0, -1.0, -1.0]], advantage) for _ in range(2)]

    def steepest_of(rank: int, gather: Any) -> Culprit | None:
        outcome = models[rank].step(program, [[[0]], [[1]]][rank], gather=gather, world_size=2)
        return steepest(outcome, gather)

    assert in_ranks(2, steepest_of) == [Culprit(-1, "logp", 1, 1)] * 2


def test_a_live_statistic_costs_one_forward_without_gradient_per_micro_batch() -> None:
    model = Model.random(behaviour_logp=0.9)
    program = LossProgram(effective_sample_size())
    assert program.live_statistics
    model.step(program, [[0, 1], [2, 3, 4]])
    assert model.calls == [({"logp"}, False)] * 2 + [({"logp"}, True)] * 2


def test_a_column_that_holds_the_current_logp_saves_that_forward() -> None:
    model = Model.random(behaviour_logp=0.9, old_logp=0.0)
    program = LossProgram(effective_sample_size())
    saved = model.step(program, WHOLE, logp_current="old_logp")
    assert model.calls == [({"logp"}, True)]
    assert saved == Model.random(behaviour_logp=0.9).step(program, WHOLE)


def test_a_sum_that_is_not_live_needs_no_forward() -> None:
    n = Nodes()
    loss = n("div", n("stepSum", n.input("logp")), n("stepSum", n.input("advantage")))
    program = LossProgram(n.expression(loss))
    assert not program.live_statistics
    model = Model([[-1.0, -3.0]], {"advantage": [[1.0, 3.0]]})
    assert model.step(program, [[0]]).loss == -1.0
    assert model.calls == [({"logp"}, True)]


def test_what_the_loss_does_not_read_is_never_touched() -> None:
    class Guarded(dict):
        def __getitem__(self, name: str) -> torch.Tensor:
            assert name == "advantage"
            return super().__getitem__(name)

    n = Nodes()
    program = LossProgram(n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage")))))
    model = Model([[-1.0, -3.0]], {"advantage": [[1.0, 3.0]], "ref_logp": [[0.0, 0.0]]})
    batch = model.micro_batch([0])
    batch.columns = Guarded(batch.columns)
    outcome = run_step(
        program,
        [batch],
        counts=model.counts(),
        forward=model.forward,
        backward=model.backward,
        gather=lambda value: [value],
        world_size=1,
    )
    assert outcome.loss == -10.0


def test_one_number_per_sequence_serves_as_a_token_column() -> None:
    n = Nodes()
    program = LossProgram(n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage")))))
    model = Model([[-1.0, -3.0], [-1.0]])
    batch = model.micro_batch([0, 1])
    batch.columns = {"advantage": torch.tensor([2.0, 3.0])}
    model.micro_batch = lambda *_: batch  # type: ignore[method-assign]
    assert model.step(program, [[0, 1]]).loss == -11.0


def test_old_logp_is_the_detached_logp_where_the_batch_serves_one_step() -> None:
    program = LossProgram(clipped(), old_is_current=True)
    assert program.inputs == {"logp", "advantage"} and program.columns == {"advantage"}
    model = Model([[-1.0, -2.0]], {"advantage": [[3.0, -1.0]]})
    assert model.step(program, [[0]]).loss == -2.0
    assert model.weight.grad == -2.0


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"),
    [(1.2, 1.0, -1.2), (0.8, -1.0, 0.8), (1.2, -1.0, 1.2), (0.8, 1.0, -0.8)],
)
def test_exactly_at_a_clip_edge_the_gradient_passes_as_in_torch(ratio: float, advantage: float, slope: float) -> None:
    logp = math.log(ratio)
    bound = math.exp(logp)  # The edge itself, to the last bit.
    model = Model([[logp]], {"old_logp": [[0.0]], "advantage": [[advantage]]})
    model.rows = [row.double() for row in model.rows]
    model.rows[0][0] = logp
    model.weight = torch.zeros((), dtype=torch.float64, requires_grad=True)
    model.forward = lambda mb, need: {"logp": model.rows[0].unsqueeze(0) + model.weight}  # type: ignore[method-assign]
    edges = {"low": bound, "high": 2.0} if ratio < 1 else {"low": 0.5, "high": bound}
    model.step(LossProgram(clipped(**edges)), [[0]])
    assert model.weight.grad == pytest.approx(slope, rel=1e-15)


def test_a_tie_of_minimum_splits_the_gradient() -> None:
    n = Nodes()
    program = LossProgram(n.expression(n("stepSum", n("minimum", n.input("logp"), n.scalar(-1.0)))))
    model = Model([[-1.0]])
    model.step(program, [[0]])
    assert model.weight.grad == 0.5


def test_a_sequence_value_keeps_its_gradient_when_masked_tokens_are_not_finite() -> None:
    n = Nodes()
    whole = n("perSequenceSum", n.input("logp"))
    program = LossProgram(n.expression(n("stepSum", n("div", whole, n.input("advantage")))))
    model = Model([[-1.0, -2.0]], {"advantage": [[1.0, 4.0]]})
    model.step(program, [[0]], padding=3)  # 0 / 0 at every padded token
    assert model.weight.grad == 2 * (1 + 0.25)


def test_a_loss_that_is_not_finite_names_the_first_node_sequence_and_token() -> None:
    program = LossProgram(clipped())
    columns = {"old_logp": [[-1.0, -1.0], [-1.0, -1.0]], "advantage": [[1.0, 1.0], [1.0, -1.0]]}
    model = Model([[-1.0, -1.0], [-1.0, 99.0]], columns)
    outcome = model.step(program, [[0], [1]])
    assert not outcome.finite and math.isnan(outcome.loss)
    assert outcome.culprit is not None
    assert outcome.culprit.text == "exp(sub(...))"
    assert (outcome.culprit.sequence, outcome.culprit.token) == (1, 1)
    assert [boundary for _, boundary in model.losses] == [False, True]  # Every backward ran: no rank waits for another.


def test_every_rank_learns_of_a_loss_that_is_not_finite() -> None:
    rows = [[-1.0], [math.nan], [-1.0]]
    outcomes = in_ranks(
        3,
        lambda rank, gather: Model(rows).step(LossProgram(likelihood()), [[rank]], gather=gather, world_size=3),
    )
    assert [outcome.finite for outcome in outcomes] == [False] * 3
    assert {(o.culprit.text, o.culprit.sequence, o.culprit.token) for o in outcomes if o.culprit} == {("logp", 1, 0)}


def test_a_statistic_that_is_not_finite_is_named_where_it_begins() -> None:
    model = Model([[-1.0, -2.0], [-1.0]], {"behaviour_logp": [[-1.0, -1e4], [-1.0]]})
    outcome = model.step(LossProgram(effective_sample_size()), [[1], [0]])
    assert outcome.culprit is not None
    assert (outcome.culprit.text, outcome.culprit.sequence, outcome.culprit.token) == ("exp(sub(...))", 0, 1)


def test_a_metric_that_is_not_finite_is_left_out() -> None:
    n = Nodes()
    total = n("stepSum", n.input("logp"))
    zero = n("stepSum", n.input("advantage"))
    program = LossProgram(n.expression(total, nothing=n("div", zero, zero), total=total))
    outcome = Model([[-1.0]], {"advantage": [[0.0]]}).step(program, [[0]])
    assert outcome == StepOutcome(-1.0, {"total": -1.0}, True, None)


def test_a_missing_column_or_coefficient_is_named_with_what_there_is() -> None:
    model = Model([[-1.0]], {"advantage": [[1.0]]})
    with pytest.raises(KeyError, match=r"reads 'old_logp': current columns are \['advantage'\]"):
        model.step(LossProgram(clipped()), [[0]])
    n = Nodes()
    program = LossProgram(n.expression(n("mul", n("stepSum", n.input("logp")), n.input("coef.kl"))))
    with pytest.raises(KeyError, match=r"reads 'coef.kl': current coefficients are \['coef.beta'\]"):
        model.step(program, [[0]], coef={"beta": 1.0})
    assert model.step(program, [[0]], coef={"kl": 3.0}).loss == -3.0


def test_ranks_must_bring_equally_many_micro_batches_and_whole_pairs() -> None:
    model = Model([[-1.0], [-2.0]])
    with pytest.raises(ValueError, match=r"different numbers of micro-batches: \[1, 2\]"):
        model.step(LossProgram(likelihood()), [[0]], gather=lambda value: [value, 2], world_size=2)
    n = Nodes()
    gap = n("sub", n("chosen", n("perSequenceSum", n.input("logp"))), n.input("margin"))
    with pytest.raises(ValueError, match="pairs are never cut"):
        model.step(LossProgram(n.expression(n("stepSum", gap))), [[0], [1]])


def test_count_step_leaves_out_what_has_no_trained_token() -> None:
    masks = [[0, 1, 1], [0, 1], [0, 0], [0, 1, 1, 1], [0, 0], [0, 0]]
    groups = [4, 4, 4, 9, 2, 2]
    expected = Counts(n_tokens=6, n_sequences=3, n_groups=2, n_pairs=0, group_length={4: 3, 9: 3, 2: 0})
    assert count_step(masks, groups) == expected
    assert count_step(masks, groups, pairs=True).n_pairs == 1
