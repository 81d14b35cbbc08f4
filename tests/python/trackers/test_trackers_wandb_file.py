from pathlib import Path

from in_trackers import in_trackers


def test_a_record_over_several_blocks_is_whole_and_a_torn_one_is_not_read(tmp_path: Path) -> None:
    said = in_trackers(
        tmp_path,
        """
        import struct
        from holdfast_worker.trackers.wandb_file import BLOCK, records

        def chunk(kind, body):
            return struct.pack("<IHB", 0, len(body), kind) + body

        room = BLOCK - 7 - 7 - 7 - 3
        data = b":W&B000" + chunk(1, b"one") + chunk(2, b"x" * room) + chunk(4, b"yy")
        say([len(one) for one in records(data)])
        say([len(one) for one in records(data + chunk(1, b"torn")[:-1])])
        say([len(one) for one in records(data[:-1])])
        """,
    )
    room = 32_768 - 24
    assert said == [[3, room + 2], [3, room + 2], [3]]
