"""Where processes listen, as Linux tells it in /proc."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_LISTENING = "0A"  # TCP_LISTEN of <net/tcp_states.h>


def listening(processes: Iterable[int]) -> list[str]:
    """The addresses on which any of the processes accepts TCP connections."""
    mine = {inode for process in processes for inode in _sockets(process)}
    return sorted(address for address, inode in _listeners() if inode in mine)


def family(process: int) -> list[int]:
    """A process and all that it has started, and they."""
    found = [process]
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and _parent(each) == process:
            found += family(int(each.name))
    return found


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _sockets(process: int) -> Iterator[str]:
    try:
        descriptors = list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:  # it ended
        return
    for descriptor in descriptors:
        try:
            target = str(descriptor.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _listeners() -> Iterator[tuple[str, str]]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                yield _address(fields[1].partition(":")[0]), fields[9]


def _address(told: str) -> str:
    """An address as /proc writes it: words of 32 bits in this machine's order."""
    words = [int(told[at : at + 8], 16) for at in range(0, len(told), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}L", *words)))
