"""Other machines: network namespaces, each with its own address and loopback, on one bridge with this machine."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_numbers = itertools.count()


@dataclass(frozen=True)
class Machine:
    """Another machine.

    Attributes:
        address: Its own address.
        ours: This machine's address, as seen from there.
        inside: Prefix of a command to run it there.
    """

    address: str
    ours: str
    inside: tuple[str, ...]

    def script(self, file: Path, program: object) -> Path:
        """Make a program on this machine that runs another one there."""
        file.write_text(f'#!/bin/sh\nexec {" ".join(self.inside)} {program} "$@"\n')
        file.chmod(0o755)
        return file


@contextmanager
def other_machines(count: int) -> Iterator[list[Machine]]:
    """Make them; skip the test if that is not permitted."""
    # Each process, and each of its tests, has its own network.
    tag, net = f"{os.getpid() % 10**7}{next(_numbers) % 10}", f"10.{os.getpid() % 200 + 20}.{next(_numbers) % 250}"
    bridge, names = f"po{tag}", [f"py-ort-{tag}-{number}" for number in range(count)]
    made = []
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{net}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, name in enumerate(names):
            ours = f"{bridge}{number}"
            _ip("netns", "add", name)
            _ip("link", "add", ours, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", ours, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{net}.{number + 2}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            made.append(Machine(f"{net}.{number + 2}", f"{net}.1", ("ip", "netns", "exec", name)))
    except (OSError, subprocess.CalledProcessError) as e:
        _unmake(bridge, names)
        pytest.skip(f"network namespaces cannot be made here: {e}")
    try:
        yield made
    finally:
        _unmake(bridge, names)


def _unmake(bridge: str, names: Sequence[str]) -> None:
    if shutil.which("ip"):
        for number, name in enumerate(names):
            _ip("link", "del", f"{bridge}{number}", check=False)
            _ip("netns", "del", name, check=False)
        _ip("link", "del", bridge, check=False)


def _ip(*args: str, check: bool = True) -> None:
    subprocess.run(["ip", *args], check=check, capture_output=True)


@contextmanager
def running(
    command: Sequence[object], log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server that writes into `log`; end it and its processes afterwards."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group at once, like a machine that loses its power."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def wait_for_port(address: str, port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    """Wait until a server listens there."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"nobody listens at {address}:{port}: {log.read_text(errors='replace')[-2000:]}")
