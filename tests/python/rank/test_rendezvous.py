"""Ranks find each other on one interface, and nobody else finds them."""

import os
import socket
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from fake_engine import FakeEngine
from holdfast_worker.operation import RankContext
from holdfast_worker.rank.rendezvous import (
    LOOPBACK,
    LOOPBACK_NAME,
    environment,
    free_port,
    interface_address,
    join_group,
    listening,
)
from listening import listening as listening_sockets
from served_agent import served


def other_interface() -> tuple[str, str]:
    """One that leads out of this machine, and its address."""
    for _, name in socket.if_nameindex():
        try:
            address = interface_address(name)
        except ValueError:
            continue
        if address != LOOPBACK:
            return name, address
    pytest.skip("this machine has only a loopback interface")


def test_the_rendezvous_is_on_loopback_unless_an_interface_is_named(tmp_path: Path) -> None:
    name, address = other_interface()

    async def test(engine: FakeEngine) -> None:
        engine.start_agent(GLOO_SOCKET_IFNAME="elsewhere", VLLM_HOST_IP="0.0.0.0")
        for group, interface, expected in (
            ("a", None, environment(None, LOOPBACK)),
            ("b", name, environment(name, address)),
        ):
            await engine.start_group(group, interface=interface)
            output = (await engine.call("environment", group=group))["outputs"][0]
            assert {key: output["env"][key] for key in expected} == expected
            assert output["meets_at"] == expected["MASTER_ADDR"]
        assert environment(None, LOOPBACK)["GLOO_SOCKET_IFNAME"] == LOOPBACK_NAME

    served(tmp_path, test)


@pytest.mark.parametrize("named", [False, True])
def test_a_rank_listens_on_its_interface_alone(
    named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch.distributed as dist

    name, address = other_interface() if named else (None, LOOPBACK)
    for variable, value in environment(name, address).items():
        monkeypatch.setenv(variable, value)
    place = {"master_addr": address, "master_port": free_port(address)}
    before = Counter(listening_sockets([os.getpid()]))
    join_group(
        RankContext("trainer", "trainer", 1, 0, 1, {}, "", **place),
        backend="gloo",
        timeout=timedelta(seconds=20),
    )
    try:
        sockets = Counter(listening_sockets([os.getpid()])) - before
    finally:
        dist.destroy_process_group()
    assert set(sockets) == {address} and sockets[address] >= 2, sockets  # The store's, and gloo's.


def test_an_interface_that_is_not_there_is_a_sentence_and_starts_no_rank(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.send(engine.start_message(interface="none9"))
        state = await engine.next("group")
        assert (state["state"], state["ranks"]) == ("failed", [])
        (failure,) = state["failures"]
        assert failure["cause"] == "bad_data"
        assert (
            "Cannot use network interface 'none9'" in failure["message"]
            and "Fix: " in failure["message"]
        )

    served(tmp_path, test)


def test_listening_answers_on_its_own_address_alone() -> None:
    _, address = other_interface()
    port = free_port(LOOPBACK)
    with socket.socket(fileno=listening(LOOPBACK, port)):
        socket.create_connection((LOOPBACK, port)).close()
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=5)
        with pytest.raises(OSError, match="Address already in use"):
            listening(LOOPBACK, port)
