"""Computes the memory that a model needs, the memory that is available, and the size of context that fits."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from localstore.core.model.limits import MIB
from localstore.models.gguf import Header
from localstore.models.store import Installed

DEFAULT_CONTEXT = 4096
SMALLEST_CONTEXT = 512
SLOTS = 4
_OVERHEAD = 128 * MIB  # of the engine, its buffers and the process
_CACHE_MIB = 512  # of prompts that were answered, at most


class Plan(NamedTuple):
    """How to load a model: tokens of `context`, number of `slots` (conversations at once), MiB of cached
    prompts, and the bytes of memory that all this needs."""

    context: int
    slots: int
    cache_mib: int
    need: int


def trained_context(header: Header) -> int:
    return header.of_architecture("context_length", DEFAULT_CONTEXT)


def token_bytes(header: Header) -> int:
    """Return the bytes of memory that each token of context needs. They are the keys and values of the token
    in every layer of the model (its KV cache), with 16 bits for each number."""
    heads = header.of_architecture("attention.head_count", 1)
    length = header.of_architecture("embedding_length", 1) // heads
    wide = header.of_architecture("attention.key_length", length)
    wide += header.of_architecture("attention.value_length", length)
    return (
        header.of_architecture("block_count", 1)
        * header.of_architecture("attention.head_count_kv", heads)
        * wide
        * 2
    )


def plan(installed: Installed, requested: int | None, available: int | None) -> Plan | None:
    """Return how to load a model. The context is the requested one, limited by what the model was trained for
    and by the `available` bytes of memory. Returns None if not even the smallest context fits."""
    header = installed.about.header
    most = trained_context(header)
    context = min(requested or DEFAULT_CONTEXT, most)
    each = token_bytes(header)
    fixed = installed.size + _OVERHEAD
    while True:
        for slots in range(SLOTS, 0, -1):
            need = fixed + context * slots * each
            if available is None or need <= available:
                spare = _CACHE_MIB if available is None else min(_CACHE_MIB, (available - need) // MIB // 4)
                return Plan(context, slots, int(spare), need)
        if context <= SMALLEST_CONTEXT:
            return None
        context = max(context // 2, SMALLEST_CONTEXT)


def smallest_need(installed: Installed) -> int:
    """Return the bytes of memory that the model needs with the smallest context."""
    header = installed.about.header
    return installed.size + _OVERHEAD + min(SMALLEST_CONTEXT, trained_context(header)) * token_bytes(header)


def available() -> int | None:
    """Return the bytes of memory that a process can get without swapping. It is the memory that is free on
    the system or in this process's control group, whichever is less. None if the system does not report
    it."""
    limits = [limit for limit in (_system(), _group()) if limit is not None]
    return min(limits) if limits else None


def total() -> int | None:
    """Return the memory of this machine in bytes, or the limit of this process's control group if the limit
    is smaller. None if the system does not report it."""
    limits = [limit for limit in (_system("MemTotal"), _group_limit()) if limit is not None]
    return min(limits) if limits else None


def _system(line: str = "MemAvailable") -> int | None:
    with suppress(OSError):
        match = re.search(rf"(?m)^{line}:\s+(\d+) kB$", Path("/proc/meminfo").read_text("ascii", "replace"))
        if match:
            return int(match[1]) * 1024
    return None


def _group_folder() -> Path:
    own = Path("/proc/self/cgroup").read_text("ascii").strip().rpartition(":")[2]
    return Path("/sys/fs/cgroup") / own.lstrip("/")


def _group_limit() -> int | None:
    with suppress(OSError, ValueError):  # the latter: "max"
        return int((_group_folder() / "memory.max").read_text())
    return None


def _group() -> int | None:
    most = _group_limit()
    if most is None:
        return None
    with suppress(OSError, ValueError):
        folder = _group_folder()
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        cached = int(statistics.get("inactive_file", 0))
        return most - int((folder / "memory.current").read_text()) + cached
    return None
