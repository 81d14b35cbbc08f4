"""What a person reads of an algorithm that was tried."""

from __future__ import annotations

from holdfast_worker.trainer.trial_report import ROWS_MAX, Report, ReportRow, show


def report_of(rows: int, loss: float | None) -> Report:
    row: ReportRow = {
        "sequence": 3,
        "draw": 1,
        "reward": 0.5,
        "advantage": -1.0,
        "tokens": 7,
        "stop": "stop",
        "loss": None,
        "gradient": 0.25,
    }
    return {
        "sequences": rows,
        "advantage": {"mean": -1.0, "not_0": rows},
        "credit": {"coef": {"kl": 0.1}},
        "notes": ["ref_logp is not in the batch"],
        "losses": [
            {
                "part": "loss",
                "update": 1,
                "loss": loss,
                "not_finite": None if loss is not None else "ratio",
                "gradient": 0.25,
                "metrics": {"kl": 0.5},
                "rows": [row] * rows,
            }
        ],
    }


def test_show_prints_each_loss_with_a_row_for_each_sequence(capsys) -> None:
    show(report_of(1, 0.125), "grpo on round 2")
    assert capsys.readouterr().out.splitlines() == [
        "grpo on round 2: 1 sequences",
        "note       ref_logp is not in the batch",
        "advantage  mean -1, 1 not 0",
        "coef       kl 0.1",
        "",
        "loss  0.125",
        "gradient   0.25",
        "metric     kl 0.5",
        "sequence  draw  reward  advantage  tokens  stop  loss  gradient",
        "       3     1     0.5         -1       7  stop     -      0.25",
    ]


def test_show_says_where_a_loss_is_not_finite_and_how_many_rows_it_leaves_out(capsys) -> None:
    show(report_of(ROWS_MAX + 2, None), "grpo on round 2")
    lines = capsys.readouterr().out.splitlines()
    assert "loss  not finite: first at ratio" in lines
    assert lines[-1] == "and 2 more: --json has all"
