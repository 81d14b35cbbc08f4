from pathlib import Path

from in_trackers import in_trackers


def test_a_point_is_one_event_and_a_torn_one_is_written_again(tmp_path: Path) -> None:
    said = in_trackers(
        tmp_path,
        """
        from pathlib import Path
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        one = sink(name="tensorboard", dir=None)
        say(one.open().after)
        one.write([point(1), point(2)])
        one.pause()
        (file,) = Path(DIR, "tensorboard").iterdir()
        file.write_bytes(file.read_bytes()[:-5])
        two = sink(name="tensorboard", dir=None)
        say(two.open().after)
        two.write([point(1), point(2), point(3)])
        two.write_samples({"step": 3, "rows": [{"prompt": "a|b", "reward": 1}]})
        two.end({"status": "done", "card": "# card"})
        events = EventAccumulator(f"{DIR}/tensorboard")
        events.Reload()
        say([[e.step, e.value] for e in events.Scalars("reward/mean")])
        say(sorted(events.Tags()["tensors"]))
        """,
    )
    assert said == [
        0,
        1,
        [[1, 0.5], [2, 1.0], [3, 1.5]],
        ["holdfast/model_card", "holdfast/run", "samples"],
    ]
