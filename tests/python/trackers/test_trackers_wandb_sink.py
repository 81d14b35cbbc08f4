from pathlib import Path

from in_trackers import in_trackers


def test_an_offline_run_continues_after_what_its_files_have(tmp_path: Path) -> None:
    said = in_trackers(
        tmp_path,
        """
        from pathlib import Path
        from holdfast_worker.trackers.wandb_file import history

        settings = {"name": "wandb", "mode": "offline", "project": "p", "entity": None, "dir": None}
        one = sink(**settings)
        say(one.open().after)
        one.write([point(1), point(2)])
        one.pause()
        # As the client names the directory of a process that begins in the same second as another.
        [first] = Path(DIR).glob("wandb/offline-run-*")
        first.rename(f"{first}-1")
        two = sink(**settings)
        say(two.open().after)
        two.write([point(2), point(3, step=2, other=1.0)])
        two.end({"status": "done", "card": "# card"})
        files = sorted(Path(DIR).glob("wandb/offline-run-*/run-*.wandb"))
        rows = [row for file in files for row in history(file)]
        say(sorted([row["_step"], row["global_step"]] for row in rows))
        """,
    )
    assert said == [0, 2, [[1, 1], [2, 2], [3, 2]]]


def test_without_a_key_it_says_what_to_set(tmp_path: Path) -> None:
    (said,) = in_trackers(
        tmp_path,
        """
        import os
        os.environ.update(HOME=DIR, WANDB_API_KEY="")
        settings = {"name": "wandb", "mode": "online", "project": "p", "entity": None, "dir": None}
        try:
            sink(**settings).open()
        except Exception as error:
            say(str(error))
        """,
    )
    assert said.startswith("Cannot log in to Weights & Biases because ")
    assert said.endswith("Fix: set WANDB_API_KEY, or `mode: offline`")
