from pathlib import Path

from in_trackers import in_trackers


def test_half_a_point_is_completed_and_a_fork_names_its_parent(tmp_path: Path) -> None:
    said = in_trackers(
        tmp_path,
        """
        settings = {"name": "mlflow", "uri": f"file://{DIR}/runs", "experiment": "e"}
        one = sink(**settings)
        say(one.open().after)
        one.write([point(1, a=1.0, b=2.0)])
        one._fresh(point(2, a=3.0))
        one._client.log_metric(one._id, "a", 3.0, step=2)
        two = sink(**settings)
        say(two.open().after)
        two.write([point(2, a=3.0, b=4.0, **{"@": 5.0})])
        two.end({"status": "done", "card": "# card"})
        client = two._client
        say([[[m.step, m.value] for m in client.get_metric_history(two._id, k)] for k in "ab_"])
        ended = client.get_run(two._id)
        say([ended.info.status, ended.data.params, two._id == one._id])
        run.update(id="b", uid="b-1", parent={"id": "a", "uid": "a-12345678", "round": 2})
        fork = sink(**settings)
        fork.open()
        tags = client.get_run(fork._id).data.tags
        say([tags["holdfast.parent"], tags["mlflow.parentRunId"] == one._id])
        """,
    )
    assert said == [
        0,
        1,
        [[[1, 1.0], [2, 3.0]], [[1, 2.0], [2, 4.0]], [[2, 5.0]]],
        ["FINISHED", {"seed": "1", "model.path": "/m"}, True],
        ["a, up to round 2", True],
    ]


def test_a_point_outside_loops_may_come_after_those_of_later_steps(tmp_path: Path) -> None:
    said = in_trackers(
        tmp_path,
        """
        settings = {"name": "mlflow", "uri": f"file://{DIR}/runs", "experiment": "e"}
        before = {**point(2, a=2.0), "step": 0}
        one = sink(**settings)
        one.open()
        one.write([point(1, a=1.0), before])
        two = sink(**settings)
        two.open()
        two.write([before, {**point(3, a=3.0), "step": 0}, point(4, a=4.0)])
        said = [[m.step, m.value] for m in two._client.get_metric_history(two._id, "a")]
        say(sorted(said))
        """,
    )
    assert said == [[[0, 2.0], [1, 1.0], [4, 4.0]]]


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    (said,) = in_trackers(
        tmp_path,
        """
        try:
            sink(name="mlflow", uri="http://127.0.0.1:9", experiment="e").open()
        except Exception as error:
            say(str(error))
        """,
    )
    assert said == (
        "Cannot reach MLflow at http://127.0.0.1:9. Fix: start the server, or correct `uri`"
    )
