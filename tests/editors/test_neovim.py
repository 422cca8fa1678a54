"""The Neovim plugin: real Neovim, real agents, a real relay. Skipped where there is no Neovim."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.live.devices import Device
from tests.patience import until
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay
from tests.svc.agent.pair import shared
from tests.svc.agent.plugin import Plugin
from tests.svc.conftest import ROOT

pytestmark = pytest.mark.skipif(shutil.which("nvim") is None, reason="needs Neovim")
FIRST = "alpha beta gamma\nsecond ä😀 line\n"


class Neovim:
    """One that runs without a screen, with the plugin, and a file open."""

    def __init__(self, device: Device, file: Path, scratch: Path) -> None:
        self._socket = str(scratch / "nvim.sock")
        environment = device.environment | {"HOME": str(scratch), "XDG_RUNTIME_DIR": str(scratch)}
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        plugin = ROOT / "editors" / "neovim"
        words = ["-u", "NONE", "-n", "--cmd", f"set rtp+={plugin}", "-c", "runtime plugin/svc.lua"]
        self._process = subprocess.Popen(
            ["nvim", "--headless", "--listen", self._socket, *words, str(file)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: Path(self._socket).exists())

    def keys(self, typed: str) -> None:
        self._ask("--remote-send", typed)

    def value(self, expression: str) -> str:
        return self._ask("--remote-expr", expression)

    def text(self) -> str:
        return self.value(r'join(getline(1, "$"), "\n") . (&eol ? "\n" : "")')

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, how: str, words: str) -> str:
        done = subprocess.run(
            ["nvim", "--server", self._socket, how, words], capture_output=True, text=True, timeout=60
        )
        return done.stdout + done.stderr  # 0.7 answers on stderr


@pytest.fixture
def name(devices: tuple[Device, Device], request: pytest.FixtureRequest) -> str:
    """A file that was written long before it is opened, as most are: Neovim asks before it writes one that
    was written since."""
    name = shared(devices, f"{request.node.name}.txt", FIRST)
    os.utime(devices[0].folder / name, (1.7e9, 1.7e9))
    return name


@pytest.fixture
def neovim(devices: tuple[Device, Device], name: str, tmp_path: Path) -> Iterator[Neovim]:
    found = Neovim(devices[0], devices[0].folder / name, tmp_path)
    found.keys(":SvcEdit<CR>")
    yield found
    found.close()


def _same(neovim: Neovim, other: Plugin, devices: tuple[Device, Device], name: str) -> str:
    def equal() -> bool:
        other.hear()
        files = [(device.folder / name).read_text() for device in devices]
        return other.settled() and files == [other.text] * 2 and neovim.text() == other.text

    until(equal, "all are the same", pause=0.2)
    return neovim.text()


def test_what_is_typed_in_neovim_and_elsewhere_is_everywhere(
    neovim: Neovim, devices: tuple[Device, Device], name: str
) -> None:
    other = Plugin(devices[1].home, devices[1].folder, name).opened()
    neovim.keys("Ofirst ü<Esc>G$a!<Esc>")
    other.type("beta", "OTHER ")
    text = _same(neovim, other, devices, name)
    assert text == "first ü\nalpha OTHER beta gamma\nsecond ä😀 line!\n"
    neovim.keys("ggdd:write<CR>")  # deletes a line; the agent writes the file
    assert _same(neovim, other, devices, name) == "alpha OTHER beta gamma\nsecond ä😀 line!\n"
    until(lambda: neovim.value("&modified").strip() == "0")
    neovim.keys("u")
    assert _same(neovim, other, devices, name) == text
    other.splice(0, len(text), "")
    assert _same(neovim, other, devices, name) in ("", "\n")
    other.splice(0, 0, "no newline")
    assert _same(neovim, other, devices, name) == "no newline"
    neovim.keys("Go<Esc>ilast<Esc>")
    other.splice(0, 0, "a\n")
    assert _same(neovim, other, devices, name) == "a\nno newline\nlast"
    other.close()


def test_the_agent_is_killed_under_neovim(neovim: Neovim, devices: tuple[Device, Device], name: str) -> None:
    other = Plugin(devices[1].home, devices[1].folder, name).opened()
    neovim.keys("Obefore<Esc>")
    _same(neovim, other, devices, name)
    devices[0].end_agent(signal.SIGKILL)
    neovim.keys("oduring<Esc>")
    other.type("second", "other ")
    neovim.keys("oafter<Esc>")
    assert _same(neovim, other, devices, name) == (
        "before\nduring\nafter\nalpha beta gamma\nother second ä😀 line\n"
    )
    other.close()


def test_it_saves_once_until_an_agent_is_there_again(
    neovim: Neovim, devices: tuple[Device, Device], name: str
) -> None:
    file = devices[0].folder / name
    other = Plugin(devices[1].home, devices[1].folder, name).opened()
    neovim.keys("Obefore<Esc>")
    _same(neovim, other, devices, name)  # it has found the agent
    neovim.keys(":lua was = require('svc').command; tries = 0<CR>")
    neovim.keys(":lua require('svc').command = 'false'; system = vim.fn.system<CR>")
    neovim.keys(":lua vim.fn.system = function(...) tries = tries + 1; return system(...) end<CR>")
    until(lambda: neovim.value("luaeval('tostring(rawget(vim.fn, [[system]]) ~= system)')").strip() == "true")
    devices[0].end_agent(signal.SIGKILL)
    neovim.keys("oduring<Esc>")
    until(lambda: "during" in file.read_text())
    file.write_text(f"{file.read_text()}by another program\n")
    tries = int(neovim.value("luaeval('tries')"))
    until(lambda: int(neovim.value("luaeval('tries')")) > tries + 1)
    neovim.keys(":lua require('svc').command = was<CR>")
    text = f"before\nduring\n{FIRST}by another program\n"
    assert _same(neovim, other, devices, name) == text
    other.close()


def test_a_file_that_cannot_be_written_leaves_the_text_in_the_buffer(
    neovim: Neovim, devices: tuple[Device, Device], name: str
) -> None:
    file = devices[0].folder / name
    neovim.keys("Obefore<Esc>")
    until(lambda: "before" in file.read_text())
    neovim.keys(f":let g:was = system('mkdir {file}.d')<CR>:file {file}.d<CR>")  # a folder now: open() fails
    devices[0].end_agent(signal.SIGKILL)
    neovim.keys("oduring<Esc>")
    until(lambda: "cannot be written" in neovim.value('execute("messages")'))
    assert neovim.text() == "before\nduring\n" + FIRST
    assert neovim.value("&modified").strip() == "1"
