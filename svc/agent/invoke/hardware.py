"""Facts about this machine. A value that the system does not report is None."""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from pathlib import Path

import msgspec

from svc import __version__
from svc.agent.invoke.table import Args, Invocation, command
from svc.flows.llm.hardware import Device, Engine, engine, gpus, npus, read_or_empty

_CPU = Path("/proc/cpuinfo")
_MEMORY = Path("/proc/meminfo")
_UPTIME = Path("/proc/uptime")
_NAME = re.compile(r"(?mi)^(?:model name|hardware|cpu model)\s*:\s*(.+)$")
_KIB = re.compile(r"(?m)^(\w+):\s+(\d+) kB$")


class SystemInfo(msgspec.Struct):
    """Facts about the system. `uptime_seconds` is the number of seconds since the machine started."""

    system: str
    release: str
    machine: str
    hostname: str
    python: str
    svc: str
    uptime_seconds: int | None


class CpuInfo(msgspec.Struct):
    """Facts about the processor. `usable` is the number of cores that this process may use. `load` has the
    average number of processes that ran or waited during the last 1, 5 and 15 minutes."""

    model: str
    architecture: str
    cores: int
    usable: int
    load: list[float] | None


class MemoryInfo(msgspec.Struct):
    """Sizes of the memory in bytes. `available` is the memory that programs can get without swapping."""

    total: int | None
    available: int | None
    swap_total: int | None
    swap_free: int | None


class DiskInfo(msgspec.Struct):
    """Sizes, in bytes, of the file system that contains `path`."""

    path: str
    total: int
    used: int
    free: int


class PathArgs(Args):
    """Names a path. `path` is an absolute path; it is SVC_HOME if left out."""

    path: str | None = None


class Gpus(msgspec.Struct):
    """The graphics processors of this machine. `gpus` lists the processors that the system reports. `engine`
    lists those that the local LLM server can use to generate text."""

    gpus: list[Device]
    engine: Engine


class NpuModels(msgspec.Struct):
    """The neural processors of this machine, and the models for them. `npus` lists the processors that the
    system reports, `models` the models of this machine that can run on one. If `models` is empty, `why` is
    the reason."""

    npus: list[Device]
    models: list[str]
    why: str


@command("Hardware")
def gpu_detect(_asked: Invocation, _args: Args) -> Gpus:
    """The graphics processors, and whether the local LLM server can use them"""
    state = engine()
    return Gpus(gpus(state.devices), state)


@command("Hardware")
def npu_list_models(_asked: Invocation, _args: Args) -> NpuModels:
    """The models that run on a neural processor of this machine"""
    devices = npus()
    why = (
        "the engine has no support for neural processors"
        if devices
        else "this machine has no neural processor"
    )
    return NpuModels(devices, [], why)


@command("Hardware")
def system_info(_asked: Invocation, _args: Args) -> SystemInfo:
    """The operating system, this machine's name, and the versions of Python and svc"""
    name = platform.uname()
    return SystemInfo(
        name.system, name.release, name.machine, name.node, platform.python_version(), __version__, _uptime()
    )


@command("Hardware")
def cpu_info(_asked: Invocation, _args: Args) -> CpuInfo:
    """The processor: its model, its cores, and how busy they are"""
    match = _NAME.search(read_or_empty(_CPU))
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    load = [round(average, 2) for average in os.getloadavg()] if hasattr(os, "getloadavg") else None
    model = match[1].strip() if match else platform.processor()
    return CpuInfo(model, platform.machine(), cores, usable, load)


@command("Hardware")
def memory_info(_asked: Invocation, _args: Args) -> MemoryInfo:
    """The memory: how much there is, and how much is free"""
    kib = {name: int(amount) * 1024 for name, amount in _KIB.findall(read_or_empty(_MEMORY))}
    total = kib.get("MemTotal")
    if total is None and hasattr(os, "sysconf"):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return MemoryInfo(total, kib.get("MemAvailable"), kib.get("SwapTotal"), kib.get("SwapFree"))


@command("Hardware", PathArgs)
def disk_info(context: Invocation, args: PathArgs) -> DiskInfo:
    """A file system: how large it is, and how much is free"""
    path = str(context.host.home.root) if args.path is None else args.path
    usage = shutil.disk_usage(path)
    return DiskInfo(path, usage.total, usage.used, usage.free)


def _uptime() -> int | None:
    words = read_or_empty(_UPTIME).split()
    if words:
        return int(float(words[0]))
    clock = getattr(time, "CLOCK_UPTIME_RAW", None)
    return int(time.clock_gettime(clock)) if clock is not None else None
