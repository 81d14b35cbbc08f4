"""
Where the ranks of a group meet: on one address, that of the named interface. torch's own store
listens on every address of the machine, regardless of the given host, and answers any client.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from datetime import timedelta
from typing import Any

LOOPBACK = "127.0.0.1"
LOOPBACK_NAME = "lo0" if sys.platform == "darwin" else "lo"
SIOCGIFADDR = 0x8915  # linux/sockios.h


def interface_address(name: str | None) -> str:
    """
    The IPv4 address of a network interface; None: the loopback's. Raises ValueError if it has none.
    """
    if name is None or name == LOOPBACK_NAME:
        return LOOPBACK
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24])
        except OSError as error:
            known = ", ".join(sorted(name for _, name in socket.if_nameindex()))
            raise ValueError(
                f"Cannot use network interface '{name}' because it has no IPv4 address here "
                f"({error.strerror}). "
                f"Fix: set workers.interface to one of {known}"
            ) from None


def environment(interface: str | None, address: str) -> dict[str, str]:
    """What keeps the sockets of gloo, NCCL and vLLM on that interface."""
    name = interface or LOOPBACK_NAME
    return {
        "MASTER_ADDR": address,
        "GLOO_SOCKET_IFNAME": name,
        "NCCL_SOCKET_IFNAME": name,
        "VLLM_HOST_IP": address,
    }


def free_port(address: str) -> int:
    """
    A port that was free a moment ago. Binding it may still lose the race: then the group starts on
    another.
    """
    with socket.socket() as sock:
        sock.bind((address, 0))
        return sock.getsockname()[1]


def bound_store(*, host_name: str, port: int, is_master: bool, **options: Any) -> Any:
    """A TCPStore whose server listens only on `host_name`. The other arguments are TCPStore's."""
    from torch.distributed import TCPStore

    if is_master:
        options["master_listen_fd"] = listening(host_name, port)
    return TCPStore(host_name=host_name, port=port, is_master=is_master, **options)


def listening(host: str, port: int) -> int:
    """The descriptor of a socket; the receiver closes it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(socket.SOMAXCONN)
        return listener.detach()


def join_group(context: Any, *, backend: str, timeout: timedelta) -> None:
    """torch's default process group, over the rendezvous of a RankContext."""
    import torch.distributed as dist

    rank, world_size = context.rank, context.world_size
    place = {"host_name": context.master_addr, "port": context.master_port, "is_master": rank == 0}
    store = bound_store(**place, world_size=world_size, timeout=timeout)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)


def bind_stores_of_libraries() -> None:
    """
    The stores that torch creates from an address given by a library (`tcp://HOST:PORT`, `env://`).
    """
    from torch.distributed import rendezvous

    def bound(*, multi_tenant: bool = False, **arguments: Any) -> Any:
        return bound_store(
            **arguments
        )  # Several tenants of one port would need to find its first one's socket.

    rendezvous.TCPStore = bound
