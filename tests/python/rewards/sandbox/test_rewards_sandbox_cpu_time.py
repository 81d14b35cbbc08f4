"""CPU time that is read and a clock that runs as the test says."""

from __future__ import annotations

import math

from holdfast_worker.rewards.sandbox.cpu_time import PAUSE_S, CpuTime


class Machine:
    def __init__(self) -> None:
        self.now = 0.0
        self.used = {1: 0.0, 2: 5.0}
        self.reads = 0
        self.cpu = CpuTime(read=self._read, clock=lambda: self.now)
        for pid in self.used:
            self.cpu.begins(pid)

    def _read(self, pid: int) -> float:
        self.reads += 1
        return self.used[pid]


def test_it_is_used_up_by_work_and_not_by_the_clock() -> None:
    machine = Machine()
    machine.cpu.allow(2)
    machine.now += 1000
    assert not machine.cpu.is_used_up()
    machine.used[2] += 1
    machine.cpu.ends(2, 6.5)  # The last reading of one that has ended.
    machine.now += 1000
    assert not machine.cpu.is_used_up()
    assert machine.cpu.pause_s() == 0.5
    machine.used[1] += 0.5
    machine.now += 0.5
    assert machine.cpu.is_used_up()
    assert machine.cpu.used_s() == 7.0


def test_it_is_read_only_when_it_may_be_used_up() -> None:
    machine = Machine()
    machine.cpu.allow(2)
    before = machine.reads
    machine.now += 1.9
    assert not machine.cpu.is_used_up()
    assert machine.reads == before
    machine.used[1] += 1.9999
    machine.now += 0.2
    assert not machine.cpu.is_used_up()
    assert math.isclose(machine.cpu.pause_s(), PAUSE_S)
    machine.cpu.allow(math.inf)
    machine.now += 1e9
    assert not machine.cpu.is_used_up()
