"""How failures are told: causes, reports and what of them fits."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast_worker.operation import BadDataError, UserCodeError
from holdfast_worker.rank.failures import (
    REPORTS_BYTES_MAX,
    cause_of,
    fitting,
    log_tail,
    report,
    report_of_exception,
    report_of_exit,
)
from holdfast_worker.wire.received import plain


class OutOfMemoryError(RuntimeError):
    pass


@pytest.mark.parametrize(
    ("error", "booting", "cause"),
    [
        (ModuleNotFoundError("No module named 'torch'"), True, "import_error"),
        (ModuleNotFoundError("No module named 'sympy'"), False, "other"),
        (OutOfMemoryError("Tried to allocate 2.00 GiB"), False, "out_of_memory"),
        (MemoryError(), False, "out_of_memory"),
        (RuntimeError("CUDA error: out of memory"), True, "other"),
        (UserCodeError("x"), False, "user_code"),
        (BadDataError("x"), False, "bad_data"),
        (
            RuntimeError("[gloo/pair.cc:553] Connection closed by peer [127.0.0.1]:1"),
            False,
            "other",
        ),
        (ConnectionResetError("Connection reset by peer"), False, "other"),
        (ValueError("x"), False, "other"),
    ],
)
def test_cause_of(error: BaseException, booting: bool, cause: str) -> None:
    assert cause_of(error, booting=booting) == cause


def test_fitting_keeps_every_ranks_report_and_drops_what_says_least_first() -> None:
    long = {
        "traceback": "t" * 12_000,
        "log_tail": ["x" * 2_000] * 20,
        "log_errors": ["y" * 500] * 40,
    }
    few, many, crowd = (
        [replace(report(rank, cause="other", message="m"), **long) for rank in range(n)]
        for n in (2, 200, 2_000)
    )
    assert fitting(few) == few
    for reports in (many, crowd):
        kept = fitting(reports)
        assert [item.rank for item in kept] == [item.rank for item in reports]
        assert len(json.dumps(plain(kept))) <= REPORTS_BYTES_MAX
        assert all(item.message == "m" and item.log_errors == [] for item in kept)


def test_an_exception_that_cannot_tell_its_text_is_reported_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    found = report_of_exception(0, Mute())
    assert (
        found.exception == "Mute"
        and "Mute, whose text cannot be read (RuntimeError)" in found.message
    )


def test_report_of_exit_names_the_signal_or_the_code() -> None:
    assert [
        getattr(report_of_exit(0, code), key)
        for code, key in [(-9, "signal"), (-9, "cause"), (3, "exit_code")]
    ] == [
        "SIGKILL",
        "signal",
        3,
    ]


def test_log_tail_gives_the_last_lines_and_nothing_for_no_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % i for i in range(10_000)) + b"\xff no newline")
    assert log_tail(str(path))[-2:] == ["line 9999", "\ufffd no newline"]
    assert len(log_tail(str(path))) == 20
    assert log_tail(str(tmp_path / "none")) == []
