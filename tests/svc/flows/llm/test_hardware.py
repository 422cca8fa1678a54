"""What a machine could generate with, from the files in which Linux says so."""

from __future__ import annotations

import platform
import signal
from pathlib import Path

import pytest

from svc.flows.llm import hardware


def test_the_engine_of_these_tests_works() -> None:
    found = hardware.engine()
    assert found.works, found.why
    assert found.version
    assert found.system
    assert "CPU" not in [one["name"] for one in found.devices]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86")
def test_a_processor_that_lacks_what_the_engine_needs(tmp_path: Path) -> None:
    cpu = tmp_path / "cpuinfo"
    cpu.write_text("processor\t: 0\nflags\t\t: fpu sse2 avx fma\n")
    assert hardware.find_lacking(cpu) == ["avx2", "f16c"]
    assert hardware.find_lacking(tmp_path / "none") == []
    assert "lacks AVX2, F16C" in hardware.reason(1, "", ["avx2", "f16c"])
    assert "this processor lacks" in hardware.reason(-signal.SIGILL, "", [])


def test_a_missing_library_is_named_with_its_package() -> None:
    said = "libgomp.so.1: cannot open shared object file: No such file or directory"
    assert "apt install libgomp1" in hardware.reason(1, said, [])
    assert "pip install 'svc[llm]'" in hardware.reason(1, "cannot import name 'x'", [])


def test_graphics_processors_are_named_once(tmp_path: Path) -> None:
    drm, nvidia = tmp_path / "drm", tmp_path / "nvidia"
    for number, vendor in ((0, "0x1002"), (1, "0x10de"), (2, "0x9999")):
        device = drm / f"card{number}/device"
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "uevent").write_text("DRIVER=amdgpu\n")
    (drm / "card0-HDMI").mkdir()
    (nvidia / "0000:01").mkdir(parents=True)
    (nvidia / "0000:01/information").write_text("Model: \t\t NVIDIA RTX\nIRQ: 1\n")
    found = hardware.gpus([], drm, nvidia)
    assert [(one.name, one.vendor, one.usable) for one in found][:2] == [
        ("NVIDIA RTX", "NVIDIA", False),
        ("AMD card0", "AMD", False),
    ]
    assert all("ollama" in one.why for one in found)
    assert all(one.usable and not one.why for one in hardware.gpus([{"name": "Vulkan0"}], drm, nvidia))


def test_neural_processors(tmp_path: Path) -> None:
    device = tmp_path / "accel0/device"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x8086")
    (device / "uevent").write_text("DRIVER=intel_vpu\n")
    (found,) = hardware.npus(tmp_path)
    assert (found.vendor, found.driver, found.usable) == ("Intel", "intel_vpu", False)
    assert hardware.npus(tmp_path / "none") == []
