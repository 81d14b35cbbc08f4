from pathlib import Path

from in_trackers import in_trackers


def test_a_row_that_is_written_again_is_there_once(tmp_path: Path) -> None:
    said = in_trackers(
        tmp_path,
        """
        settings = {"name": "trackio", "project": "p", "uri": None, "dir": f"{DIR}/t"}
        one = sink(**settings)
        say(one.open().after)
        one.write([point(1), point(2)])
        one.write([point(2), point(3)])
        one.end({"status": "done", "card": "# card"})
        from trackio.sqlite_storage import SQLiteStorage
        rows = SQLiteStorage.get_logs("p", run_id=run["uid"])
        say([[row["step"], row["reward/mean"]] for row in rows])
        config = SQLiteStorage.get_run_config("p", "a", run_id=run["uid"])
        say([config["model_card"], config["seed"]])
        """,
    )
    assert said == [0, [[1, 0.5], [2, 1.0], [3, 1.5]], ["# card", 1]]
