"""Logs of bounded size: agents write the output of ranks and keep its newest part."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

LOG_BYTES_MAX = 8 * 1024 * 1024
OLDER_KEPT = 2  # PATH.1 precedes PATH, PATH.2 precedes PATH.1.
PIECE_BYTES = 64 * 1024


class RotatingLog:
    """
    A file that only its owner may read. A full file becomes PATH.1, at the end of a line if
    possible. `follow`: descriptors that must also point to the newest file.
    """

    def __init__(
        self,
        path: Path,
        *,
        bytes_max: int = LOG_BYTES_MAX,
        kept: int = OLDER_KEPT,
        follow: tuple[int, ...] = (),
    ) -> None:
        self._path, self._bytes_max, self._kept, self._follow = path, bytes_max, kept, follow
        self._fd = self._open()

    def _open(self) -> int:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._remaining = self._bytes_max - os.fstat(fd).st_size
        for other in self._follow:
            os.dup2(fd, other)
        return fd

    def write(self, data: bytes) -> None:
        """Never raises: printing to a full disk loses the text, not the work."""
        view = memoryview(data)
        while view:
            taken = len(view) if len(view) <= self._remaining else self._fits(data[-len(view) :])
            try:
                if taken == 0:
                    self._rotate()
                    continue
                taken = os.write(self._fd, view[:taken])
            except OSError:
                return
            self._remaining -= taken
            view = view[taken:]

    def _fits(self, data: bytes) -> int:
        """
        How many bytes still belong into this file: whole lines, or as much as fits of a line that
        is longer than a file.
        """
        room = max(0, self._remaining)
        whole = data.rfind(b"\n", 0, room) + 1
        return whole or (room if room == self._bytes_max else 0)

    def _rotate(self) -> None:
        for number in range(self._kept, 0, -1):
            newer = older(self._path, number - 1)
            if newer.exists():
                os.replace(newer, older(self._path, number))
        full, self._fd = self._fd, self._open()
        os.close(full)

    def close(self) -> None:
        os.close(self._fd)


def older(path: Path, number: int) -> Path:
    """The file `number` places before the newest."""
    return path.with_name(f"{path.name}.{number}") if number else path


def files_of(path: Path) -> Iterator[Path]:
    """The files of a log, the newest first."""
    number = 0
    while (file := older(path, number)).exists():
        yield file
        number += 1


class RankLog:
    """
    The log of a process that cannot limit it itself. The process gets `inlet`, the writing end of a
    pipe, which its parent then closes; a thread copies the output into the file. A faster process
    waits, as with any pipe.
    """

    def __init__(self, log: RotatingLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._fd, self.inlet = os.pipe()
        os.set_blocking(self._fd, False)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="holdfast-log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while poll.poll():
            with self._lock:
                if not self._take():
                    break

    def _take(self) -> bool:
        """Copies one available piece. False at the end."""
        try:
            data = os.read(self._fd, PIECE_BYTES)
        except BlockingIOError:  # `drain` was quicker.
            return True
        self._log.write(data)
        return bool(data)

    def drain(self) -> None:
        """Makes everything printed so far visible to readers of the log."""
        with self._lock:
            waiting = 0 if self._closed else waiting_bytes(self._fd)
            while waiting > 0 and self._take():
                waiting -= PIECE_BYTES

    def write(self, text: str) -> None:
        """Writes a message of the agent itself."""
        with self._lock:
            if not self._closed:
                self._log.write(text.encode("utf-8", "replace"))

    def close(self, timeout_s: float) -> None:
        """
        Once the process is dead. A process that left its group may hold the pipe forever: nothing
        waits for it.
        """
        self._thread.join(timeout_s)
        if self._closed or self._thread.is_alive():
            self.drain()
            return
        self._closed = True
        self._log.close()
        os.close(self._fd)


def waiting_bytes(fd: int) -> int:
    """In a pipe."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
