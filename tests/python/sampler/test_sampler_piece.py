"""The Hugging Face engine's sampling loop: what it samples, and when a row ends."""

import numpy as np
import pytest

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError, Cancelled, OperationIO


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fixtures.make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def worker(model):
    worker = fixtures.make_worker()
    fixtures.load(worker, model, fixtures.publish(model, "v1"))
    return worker


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"temperature": 0.7},
        {"top_k": 5},
        {"top_p": 0.6},
        {"temperature": 0.7, "top_k": 20, "top_p": 0.9},
        {"min_p": 0.05},
        {"repetition_penalty": 1.5},
        {"temperature": 0.7, "top_k": 20, "min_p": 0.01, "repetition_penalty": 0.8},
        {"temperature": 0},
        {"temperature": 0, "repetition_penalty": 1.5},
    ],
)
def test_generate_records_the_log_probability_of_the_distribution_sampled_from(worker, sampling):
    answer, slab = fixtures.generate(worker, fixtures.slab_arguments("v1", **sampling))
    errors = fixtures.logp_errors(worker.engine.model, slab)
    assert len(errors) == answer["tokens"] > 100
    assert errors.max() <= 1e-5


def test_generate_does_not_depend_on_other_groups_for_its_randomness(worker):
    arguments = fixtures.slab_arguments("v1")
    whole = fixtures.trajectories(fixtures.generate(worker, arguments)[1])
    arguments["slab"] = {"id": "half", "draws": arguments["slab"]["draws"][3:]}
    half = fixtures.trajectories(fixtures.generate(worker, arguments)[1])
    assert [one["tokens"].tolist() for one in half] == [
        one["tokens"].tolist() for one in whole[12:]
    ]


def test_generate_ends_rows_at_the_end_token_and_counts_it(worker):
    _, slab = fixtures.generate(worker, fixtures.slab_arguments("v1", draws=12, tokens_max=150))
    end = worker.engine.tokenizer.eos_token_id
    stopped = [one for one in fixtures.trajectories(slab) if one["stop"] == "stop"]
    cut = [one for one in fixtures.trajectories(slab) if one["stop"] == "length"]
    assert stopped and cut
    for one in stopped:
        completion = one["tokens"][one["versions"][0]["start"] :].tolist()
        assert completion.count(end) == 1 and completion[-1] == end
        assert one["text"] == worker.engine.tokenizer.decode(completion[:-1])
    for one in cut:
        completion = one["tokens"][one["versions"][0]["start"] :].tolist()
        assert len(completion) == 150 and end not in completion
    # Rows have left the batch by then, and the cache has grown.
    assert fixtures.logp_errors(worker.engine.model, slab).max() <= 1e-5


def test_generate_ends_at_configured_tokens_and_ignores_the_end_token_if_asked(worker):
    end = worker.engine.tokenizer.eos_token_id
    arguments = {"draws": 12, "tokens_max": 150}
    _, slab = fixtures.generate(worker, fixtures.slab_arguments("v1", **arguments, ignore_eos=True))
    through = [completion_of(one) for one in fixtures.trajectories(slab)]
    assert {len(completion) for completion in through} == {150}
    assert any(end in completion for completion in through)
    stop = through[0][3]
    how = {"ignore_eos": True, "stop_token_ids": [stop]}
    _, slab = fixtures.generate(worker, fixtures.slab_arguments("v1", **arguments, **how))
    for before, one in zip(through, fixtures.trajectories(slab), strict=True):
        completion = completion_of(one)
        ended = stop in before
        assert completion == (before[: before.index(stop) + 1] if ended else before)
        assert one["stop"] == ("stop" if ended else "length")
        assert one["text"] == worker.engine.tokenizer.decode(completion[: -1 if ended else None])


def test_generate_refuses_a_stop_token_that_the_model_lacks(worker):
    with pytest.raises(BadDataError, match=r"stop at token 99999 because the model has \d+ tokens"):
        fixtures.generate(worker, fixtures.slab_arguments("v1", stop_token_ids=[99999]))


def completion_of(one):
    return one["tokens"][one["versions"][0]["start"] :].tolist()


def test_generate_stops_at_a_stop_string_and_cuts_the_text_before_it(worker):
    _, free = fixtures.generate(worker, fixtures.slab_arguments("v1", tokens_max=30))
    stop = fixtures.trajectories(free)[0]["text"][5:7]
    _, slab = fixtures.generate(
        worker, fixtures.slab_arguments("v1", tokens_max=30, stop=[stop, ""])
    )
    first = fixtures.trajectories(slab)[0]
    assert first["stop"] == "stop"
    assert stop not in first["text"]
    completion = first["tokens"][first["versions"][0]["start"] :].tolist()
    assert worker.engine.tokenizer.decode(completion) == first["text"] + stop
    for before, after in zip(fixtures.trajectories(free), fixtures.trajectories(slab)):
        assert before["tokens"].tolist()[: len(after["tokens"])] == after["tokens"].tolist()


def test_generate_is_greedy_at_temperature_0(worker):
    _, slab = fixtures.generate(worker, fixtures.slab_arguments("v1", temperature=0))
    for one in fixtures.trajectories(slab):
        assert (
            one["tokens"].tolist()
            == fixtures.trajectories(slab)[4 * one["draw"]]["tokens"].tolist()
        )
        start = one["versions"][0]["start"]
        logp = worker.engine._probe(worker.engine.model, [one["tokens"].tolist()])
        assert np.allclose(logp[start - 1 :], one["behaviour_logp"][start:], atol=1e-5)


def test_generate_stops_when_cancelled(worker):
    io = OperationIO.alone()
    io.cancelled.set()
    with pytest.raises(Cancelled):
        worker.operations["generate"](fixtures.slab_arguments("v1"), io)
    assert io.blobs == []


def test_generate_reports_its_progress_in_tokens(worker):
    messages = []
    io = OperationIO.alone(send_progress=messages.append)
    worker.operations["generate"](fixtures.slab_arguments("v1"), io)
    assert messages[0].phase == "generate"
    assert messages[0].done == 24
    assert messages[0].total == 24 * 12
