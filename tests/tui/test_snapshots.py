"""The screens of one small world at three sizes: their text and styles, as somebody has looked at them.

`TEST_WRITE=1` writes them anew; `git diff` then says what changed, and `python -m scripts.pictures` how it
looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
from rich.color import ColorSystem
from rich.style import Style
from textual.pilot import Pilot

from svc.flows.apps.place import App, Apps
from tests.llm.conftest import add
from tests.svc.conftest import Svc
from tests.tui.test_app import open_proposal, press, project, sees, settle, shown
from tui.app import SvcApp

__all__ = ["project"]
Open = Callable[..., SvcApp]
FOLDER = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("TEST_WRITE") == "1"
# Screen → keys from Home, and words that stand there last; from 100 columns on other ones.
STOPS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "home": ((), "Repositories 1", "Read me."),
    "overview": (("enter", "1"), "Read me.", "Read me."),
    "code": (("enter", "2"), "README.md", "1 file"),
    "issues": (("enter", "3"), "Stalls at night", "see #2"),
    "issue": (("enter", "3", "enter"), "see #2", "see #2"),
    "workflows": (("enter", "4"), "lint", "no summary"),
    "run": (("enter", "4", "enter"), "runs it again", "runs it again"),
    "releases": (("enter", "5"), "v1", "• it"),
    "security": (("enter", "6"), "Protection rules", "Protection rules"),
    "insights": (("enter", "7"), "Dependents", "Dependents"),
    "inbox": (("i",), "nothing new", "nothing new"),
    "sync": (("s",), "nothing waits", "none is watched"),
    "machine": (("M",), "needs bob/pictures", "needs bob/pictures"),
}
BODY = "## Why\n\nIt **hangs**, `so` it does:\n\n- [x] one\n\n```\ncode\n```\n\nsee #2"
VARIES = (
    (re.compile(r"\b[0-9a-f]{8,}\b"), "x"),  # ids
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "d"),  # times, which are dates for a clock that stands in 1970
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "p"),
)


@pytest.fixture
def world(project: str, alice: Svc) -> str:
    assert alice("label", "create", "crash", "--color", "d73a4a").code == 0
    assert alice("issue", "create", "-t", "Crash at start").code == 0
    made = alice("issue", "create", "-t", "Stalls at night", "-b", BODY, "--label", "crash")
    assert made.code == 0, made.err
    assert alice("repo", "run", "create", "lint", "--conclusion", "failure").code == 0
    assert alice("repo", "release", "create", "v1", "-n", "## Fixed\n\n- it").code == 0
    add(Path(os.environ["SVC_LLM_HOME"]), "tiny", "say")
    folder = Path.cwd().parent / "draw"
    folder.mkdir()
    (folder / ".svc.yaml").write_text("kind: app\nmodels: [bob/pictures]\nlaunch: {command: [draw]}\n")
    Apps(Path(os.environ["SVC_HOME"])).record(App(id="draw", folder=str(folder)))
    return project


def same_length(found: re.Match[str], sign: str) -> str:
    return sign * len(found[0])


def dumped(app: SvcApp, system: ColorSystem | None = None) -> str:
    """The text of the screen with its styles: `|row|`, and below it for each run of one style its letter
    and its length. `system`: the colours of the terminal, None for all."""
    letters: dict[str, str] = {}
    rows: list[str] = []
    for strip in app.screen._compositor.render_strips():
        text = strip.text
        for pattern, sign in VARIES:
            text = pattern.sub(lambda found, sign=sign: same_length(found, sign), text)  # type: ignore[misc]
        cells = [said(segment.style, system) for segment in strip for _ in segment.text]
        runs = [(style, len(list(run))) for style, run in groupby(cells)]
        for style, _ in runs:
            letters.setdefault(style, chr(ord("a") + len(letters)))
        rows += [f"|{text}|", " ".join(f"{letters[style]}{count}" for style, count in runs)]
    return "\n".join([*rows, *(f"{letter}: {style}" for style, letter in letters.items()), ""])


def said(style: Style | None, system: ColorSystem | None = None) -> str:
    """The style in words. `system`: the colours of the terminal, None for all."""
    if style is None:
        return "none"
    plain = style.clear_meta_and_links()
    if system is not None:
        near = [colour and colour.downgrade(system) for colour in (plain.color, plain.bgcolor)]
        plain = plain.without_color + Style.from_color(*near)
    return str(plain)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (140, 40), (200, 50)])
async def test_screens_look_as_they_did(
    world: str, open_app: Open, width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    app = open_app()
    app.clock = lambda: 0.0
    found: dict[str, str] = {}
    async with app.run_test(size=(width, height)) as pilot:
        await sees(pilot, "● live", "Repositories 1")
        for name, (keys, narrow, wide) in STOPS.items():
            if keys:
                await press(pilot, *keys)
            words = wide if width >= 100 else narrow
            await sees(pilot, "● live", words)
            await press(pilot, "g")  # which of two answers came first says where the cursor is
            await sees(pilot, words)
            await settle(pilot)
            found[name] = dumped(app)
            assert empty_frames(shown(app)) == [], name
            await home(pilot)
    compare(found, width, height)


def empty_frames(text: str) -> list[str]:
    """Returns the titles of the frames in which nothing stands."""
    rows, titles = text.splitlines(), []
    for top, row in enumerate(rows):
        for frame in re.finditer("╭[^╮]*╮", row):
            inside = [below[frame.start() + 1 : frame.end() - 1] for below in rows[top + 1 :]]
            ends = next(at for at, below in enumerate(rows[top + 1 :]) if below[frame.start()] == "╰")
            if not "".join(inside[:ends]).strip():
                titles.append(frame[0].strip("╭─╮ "))
    return titles


SPARSE: dict[str, tuple[dict[str, str], ColorSystem | None]] = {
    "16": ({"TERM": "xterm-16color", "COLORTERM": "", "NO_COLOR": ""}, ColorSystem.STANDARD),
    "none": ({"TERM": "xterm-256color", "COLORTERM": "", "NO_COLOR": "1"}, None),
}
"""Terminals with few colours: environment and colours."""


@pytest.mark.parametrize("colours", SPARSE)
@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40)])
async def test_few_colours(
    world: str, open_app: Open, width: int, height: int, colours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, system = SPARSE[colours]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    app = open_app()
    app.clock = lambda: 0.0
    found: dict[str, str] = {}
    async with app.run_test(size=(width, height)) as pilot:
        await sees(pilot, "● live", "Repositories 1")
        for name in ("home", "code", "issues", "issue", "workflows", "insights"):
            keys, narrow, wide = STOPS[name]
            if keys:
                await press(pilot, *keys)
            words = wide if width >= 100 else narrow
            await sees(pilot, "● live", words)
            await press(pilot, "g")
            await sees(pilot, words)
            await settle(pilot)
            found[f"{name}-{colours}"] = dumped(app, system)
            await home(pilot)
    compare(found, width, height)


def compare(found: dict[str, str], width: int, height: int) -> None:
    """Compare screens with those that were looked at."""
    for name, text in found.items():
        file = FOLDER / f"{name}-{width}x{height}.txt"
        if WRITE:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
        assert text == file.read_text("utf-8"), f"{file.name}; TEST_WRITE=1 writes what is shown now"


@pytest.mark.parametrize(
    ("width", "height", "colours"),
    [
        *((width, height, "") for width, height in ((80, 24), (100, 30), (140, 40), (200, 50))),
        *((width, height, colours) for width, height in ((80, 24), (140, 40)) for colours in SPARSE),
    ],
)
async def test_files_look_as_they_did(
    project: str,
    alice: Svc,
    open_app: Open,
    width: int,
    height: int,
    colours: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": ""}
    environment, system = SPARSE.get(colours, (all_colours, None))
    for name, value in {"COLORFGBG": "15;0", **environment}.items():
        monkeypatch.setenv(name, value)
    propose(alice)
    app = open_app()
    app.clock = lambda: 0.0
    async with app.run_test(size=(width, height)) as pilot:
        await sees(pilot, "● live", "Repositories 1")
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter")
        await sees(pilot, "1 of 2 files, 0 seen", "It **is**.")
        await press(pilot, "m", "v" if width >= 140 else "g")
        await sees(pilot, "return 3", "Why three?", "2 of 2 files, 1 seen")
        await settle(pilot)
        suffix = f"-{colours}" if colours else ""
        found = {f"files{suffix}": dumped(app, system)}
        await press(pilot, "f")
        await settle(pilot)
        if width < 100:
            found[f"tree{suffix}"] = dumped(app, system)
    compare(found, width, height)


def propose(alice: Svc) -> None:
    """A proposal of two files, with a comment on a line."""
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("src/main.py").write_text("def main():\n    return 3\n")
    Path("docs").mkdir(exist_ok=True)
    Path("docs/new.md").write_text("# New\n\nIt **is**.\n")
    assert alice("push", "-m", "Third").code == 0
    assert alice("pr", "create", "--base", "main", "-t", "Return three", "-b", "Because.").code == 0
    on = ("--path", "src/main.py", "--line", "2")
    assert alice("pr", "comment", "1", *on, "-b", "Why three?").code == 0


async def home(pilot: Pilot[None]) -> None:
    while len(pilot.app.screen_stack) > 2:
        pilot.app.pop_screen()
    await settle(pilot)
