"""What an operation may read and answer."""

from pathlib import Path

import pytest

from holdfast_worker import operation
from holdfast_worker.operation import BadDataError, OperationIO, TooLargeError
from holdfast_worker.wire.types import ArtifactRef


def test_read_artifact_checks_name_presence_and_hash(tmp_path: Path) -> None:
    import hashlib

    sha256 = hashlib.sha256(b"data").hexdigest()
    io = OperationIO.alone(str(tmp_path))
    with pytest.raises(BadDataError, match="is not there"):
        io.read_artifact(ArtifactRef(sha256=sha256, bytes=4))
    (tmp_path / sha256[:2]).mkdir()
    (tmp_path / sha256[:2] / sha256).write_bytes(b"data")
    assert io.read_artifact(ArtifactRef(sha256=sha256, bytes=4)) == b"data"
    (tmp_path / sha256[:2] / sha256).write_bytes(b"dat4")
    with pytest.raises(BadDataError, match="holds 4 bytes with sha256"):
        io.read_artifact(ArtifactRef(sha256=sha256, bytes=4))
    with pytest.raises(BadDataError, match="not a sha256"):
        io.read_artifact(ArtifactRef(sha256="../../etc/passwd", bytes=4))


def test_a_blob_too_many_is_refused_where_it_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "ANSWER_BYTES_MAX", 10)
    io = OperationIO.alone()
    assert io.blob(b"12345") == 0
    with pytest.raises(TooLargeError, match="at most 1024 blobs of 10 bytes together. Fix: "):
        io.blob(b"123456")
    assert io.blobs == [b"12345"]
