"""What is said of a step that no rank took."""

from __future__ import annotations

from holdfast_worker.loss import Culprit
from holdfast_worker.trainer.engines.skipped_step import place_of, skipped_at, too_many


def test_a_node_of_the_expression_is_named_by_its_number_and_text():
    skipped = skipped_at("loss", Culprit(3, "exp", 1, 7))
    assert skipped == {"cause": "loss", "node": "3 (exp)", "sequence": 1, "token": 7}
    assert place_of(skipped) == "node 3 (exp), sequence 1, token 7"


def test_the_input_with_the_largest_gradient_has_no_number():
    skipped = skipped_at("grad_norm", Culprit(-1, "logp", 0, None))
    assert skipped == {"cause": "grad_norm", "node": "logp", "sequence": 0, "token": None}
    assert place_of(skipped) == "node logp, sequence 0"


def test_an_unknown_cause_says_so():
    skipped = skipped_at("grad_norm", None)
    assert skipped == {"cause": "grad_norm", "node": None, "sequence": None, "token": None}
    assert place_of(skipped) == "an unknown node"


def test_too_many_names_the_last_steps_place_and_the_limit():
    error = too_many(2, skipped_at("loss", Culprit(3, "exp", 1, 7)))
    assert error.code == "non_finite"
    assert str(error) == (
        "non_finite: Cannot step because the loss is not finite: first at node 3 (exp), "
        "sequence 1, token 7 of the step. 2 consecutive step(s) were skipped, the maximum of "
        "trainer.non_finite_max"
    )
