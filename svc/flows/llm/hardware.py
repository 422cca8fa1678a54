"""Finds the graphics and neural processors of this machine, and whether the engine can use them. The engine
is the library that generates text (xllamacpp), which svc's extra `llm` installs."""

from __future__ import annotations

import platform
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

PROBE = "llm.probe"  # above this room: started, not imported
PROBE_SECONDS = 30.0
INSTALL = "pip install 'svc[llm]'"
NEEDED = ("avx2", "fma", "f16c")  # which the engine's build for x86 uses
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel", "0x106b": "Apple", "0x1af4": "virtual"}
_GPU_TYPES = (1, 2)  # of ggml: graphics processors, with memory of their own or the machine's
_DRM = Path("/sys/class/drm")
_NPU = Path("/sys/class/accel")
_NVIDIA = Path("/proc/driver/nvidia/gpus")
_CPU = Path("/proc/cpuinfo")


class Engine(msgspec.Struct, kw_only=True):
    """The engine, which is the library that generates text (xllamacpp, installed by svc's extra `llm`).
    `works` says whether it can be loaded on this machine. If it cannot, `why` has the reason and the remedy.
    `devices` are the processors other than the CPU that it can use."""

    installed: bool = False
    works: bool = False
    version: str | None = None
    why: str = ""
    system: str = ""
    devices: list[dict[str, Any]] = []


class Device(msgspec.Struct, kw_only=True):
    """A processor other than the CPU. `usable` says whether the engine (the library that generates text) can
    use it. If it cannot, `why` says what to do instead."""

    name: str
    vendor: str
    driver: str = ""
    usable: bool = False
    why: str = ""


def find_lacking(cpu: Path = _CPU) -> list[str]:
    """Return the features of a processor that the engine (the library that generates text) needs but this
    processor lacks. The list is empty if there are none, or if the system does not report features."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    with suppress(OSError):
        match = re.search(r"(?m)^flags\s*:\s*(.+)$", cpu.read_text("ascii", "replace"))
        if match:
            flags = set(match[1].split())
            return [name for name in NEEDED if name not in flags]
    return []


def engine() -> Engine:
    """Find out whether the engine (the library that generates text) can be loaded on this machine, by loading
    it in a separate process."""
    if find_spec("xllamacpp") is None:
        return Engine(why=f"the engine is not installed; install it: {INSTALL}")
    missing = find_lacking()
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", PROBE],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Engine(installed=True, why=f"the engine was not loaded within {PROBE_SECONDS:.0f} seconds")
    if ended.returncode == 0:
        with suppress(msgspec.MsgspecError):
            probed = msgspec.json.decode(ended.stdout, type=_ProbeResult)
            devices = [device for device in probed.devices if device.get("type") in _GPU_TYPES]
            return Engine(
                installed=True, works=True, version=probed.version, system=probed.system, devices=devices
            )
    return Engine(
        installed=True, why=reason(ended.returncode, ended.stderr.decode("utf-8", "replace"), missing)
    )


class _ProbeResult(msgspec.Struct):
    version: str
    system: str
    devices: list[dict[str, Any]]


def reason(code: int, output: str, missing: list[str]) -> str:
    """Return a sentence that says why the engine (the library that generates text) cannot be loaded, and the
    remedy. `code` and `output` are the exit code and output of the process that tried to load it. `missing`
    are features that the processor lacks."""
    if "libgomp" in output:
        return "the library libgomp is missing; install it: apt install libgomp1 (dnf install libgomp)"
    if missing or code == -signal.SIGILL:
        what = ", ".join(missing).upper() or "an instruction"
        return f"this processor lacks {what}, which the engine needs; install ollama, which svc then uses"
    last = [line for line in output.splitlines() if line.strip()][-1:]
    return f"the engine cannot be loaded ({last[0] if last else f'it ended with {code}'}); {INSTALL}"


def gpus(usable: list[dict[str, Any]], drm: Path = _DRM, nvidia: Path = _NVIDIA) -> list[Device]:
    """Return the graphics processors that the system reports. `usable` are the devices that the engine (the
    library that generates text) can use. If there is one, all graphics processors count as usable."""
    devices: list[Device] = []
    for information in sorted(nvidia.glob("*/information")):
        model = re.search(r"(?m)^Model:\s*(.+)$", read_or_empty(information))
        devices.append(Device(name=model[1].strip() if model else "NVIDIA", vendor="NVIDIA", driver="nvidia"))
    for card in sorted(drm.glob("card[0-9]*")):
        vendor = _VENDORS.get(read_or_empty(card / "device/vendor").strip(), "")
        if "-" in card.name or not vendor or any(device.vendor == vendor == "NVIDIA" for device in devices):
            continue
        driver = re.search(r"(?m)^DRIVER=(.+)$", read_or_empty(card / "device/uevent"))
        name = read_or_empty(card / "device/product_name").strip() or f"{vendor} {card.name}"
        devices.append(Device(name=name, vendor=vendor, driver=driver[1] if driver else ""))
    if sys.platform == "darwin" and platform.machine() == "arm64":
        devices.append(Device(name="Apple GPU", vendor="Apple", driver="Metal"))
    for device in devices:
        device.usable = bool(usable)
        device.why = "" if usable else _instead()
    return devices


def npus(folder: Path = _NPU) -> list[Device]:
    """Return the neural processors that the system reports. The engine (the library that generates text)
    cannot use any of them."""
    devices = []
    for device in sorted(folder.glob("accel[0-9]*")):
        driver = re.search(r"(?m)^DRIVER=(.+)$", read_or_empty(device / "device/uevent"))
        vendor = _VENDORS.get(read_or_empty(device / "device/vendor").strip(), "")
        why = "the engine has no support for neural processors"
        devices.append(Device(name=device.name, vendor=vendor, driver=driver[1] if driver else "", why=why))
    return devices


def _instead() -> str:
    ollama = (
        "the installed ollama may use it" if shutil.which("ollama") else "install ollama, which svc then uses"
    )
    return f"svc's own engine computes on the processor only here; {ollama}"


def read_or_empty(file: Path) -> str:
    """Return the text of a file; "" if it cannot be read."""
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
