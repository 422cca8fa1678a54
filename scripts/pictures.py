"""Makes pictures of the app's screens, to look at them.

    python -m scripts.pictures FOLDER [--size 80x24 --size 140x40] [--theme terminal] [--only issues]
        [--colours 16] [--light]

It makes its own relay, and a repository with issues, a proposal and checks. It draws the screen of a terminal
emulator as PNG files, with a font of this machine (DejaVu Sans Mono).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pyte
from PIL import Image, ImageDraw, ImageFont

from localstore.core.model import issue as issues
from localstore.core.model import label as labels
from localstore.core.model import repo as repos
from localstore.core.model.issue import CommentBody, IssueCreate
from localstore.core.model.label import LabelCreate
from scripts.bench.app import relay_on
from scripts.bench.collaboration.folders import environment, make_linked_folder, svc, write
from scripts.bench.ingest import signed_in
from scripts.bench.tui import Terminal
from svc.api import Api

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono{}.ttf"
WIDE, HIGH, POINTS = 9, 19, 15
PAUSE = 0.8  # seconds without a byte after which a screen is complete
GROUND, TEXT = "#1e1e1e", "#d4d4d4"
LIGHT_GROUND, LIGHT_TEXT = "#ffffff", "#333333"
FAINT_TEXT = ("#959595", "#777777")  # on a dark and on a light background
COLOURS = {
    "black": "#1e1e1e",
    "red": "#cd3131",
    "green": "#0dbc79",
    "brown": "#e5e510",
    "blue": "#2472c8",
    "magenta": "#bc3fbc",
    "cyan": "#11a8cd",
    "white": "#e5e5e5",
    "brightblack": "#767676",
    "brightblue": "#3b8eea",
    "brightred": "#f14c4c",
    "brightgreen": "#23d18b",
    "brightbrown": "#f5f543",
    "brightmagenta": "#d670d6",
    "brightcyan": "#29b8db",
    "brightwhite": "#ffffff",
}
LIGHT = COLOURS | {
    "black": "#000000",
    "red": "#cd3131",
    "green": "#107c10",
    "brown": "#949800",
    "blue": "#0451a5",
    "magenta": "#bc05bc",
    "cyan": "#0598bc",
    "white": "#555555",
    "brightblack": "#666666",
    "brightblue": "#0451a5",
    "brightred": "#cd3131",
    "brightgreen": "#14ce14",
    "brightbrown": "#b5ba00",
    "brightmagenta": "#bc05bc",
    "brightcyan": "#0598bc",
    "brightwhite": "#a5a5a5",
}
"""The 16 colours of a terminal with a light background."""
FAINT = "faint"  # stands for the text colour of a cell that is faint
TITLES = (
    "Connection pool leaks when a stream is abandoned",
    'DigestAuth fails with qop="auth-int"',
    "UnicodeDecodeError when the server lies about its charset",
    "Documentation: the retry section contradicts the reference",
    "Timeouts are ignored behind a SOCKS proxy",
    "Redirect from https to http should warn",
    "Cookies with SameSite=None are dropped",
    "Add type stubs for `httpx.Auth` flows",
)
LABELS = {"perf": "0e8a16", "bug": "d73a4a", "docs": "0075ca", "good first issue": "7057ff"}
RUNS = (
    ("lint", "--conclusion", "failure", "--summary", "**Two** lines are too long:\n\n- `pool.py:3`"),
    ("unit", "--conclusion", "success", "--summary", "212 passed"),
    ("docs", "--conclusion", "skipped"),
    ("wheels", "--conclusion", "cancelled"),
    ("types", "--status", "in_progress"),
    ("fuzz", "--status", "queued"),
)
EARLIER = tuple(
    (name, "--conclusion", conclusion)
    for conclusions in ("failure", "success", "success")
    for name, conclusion in (("lint", conclusions), ("unit", "success"))
)
BODY = """## What happened

The client **hangs** after about 30 seconds; see `AsyncClient.send` and [the docs](https://a.example/async).
Related to #2, cc @bob.

```python
async def main() -> None:
    async with Client(http2=True) as client:
        await client.get("https://a.example/items")   # never returns
```

| version | Python | result |
|:--|--:|--:|
| 0.27.0 | 3.11 | ok |
| main | 3.13 | **hangs** |

- [x] I searched the tracker
- [ ] I tried `http2=False`
  - nested

> It did not do so before.

<details><summary>Log</summary>

    Traceback (most recent call last)

</details>
"""
POOL = '''"""Connections that are kept for the next request."""

import time


class Pool:
    """Keeps at most `size` connections."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self._idle: list[Connection] = []

    def take(self, host: str) -> Connection:
        for connection in self._idle:
            if connection.host == host:
                self._idle.remove(connection)
                return connection
        return Connection(host)

    def give(self, connection: Connection) -> None:
        if len(self._idle) < self.size:
            self._idle.append(connection)

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def count(pools: list[Pool]) -> int:
    return sum(len(pool._idle) for pool in pools)
'''
POOL_NOW = (
    POOL.replace("size: int = 10", "size: int = 10, wait: float = 5.0")
    .replace("        self.size = size\n", "        self.size, self.wait = size, wait\n")
    .replace("if connection.host == host:", "if connection.host == host and not connection.stale(self.wait):")
    .replace(
        "        if len(self._idle) < self.size:\n            self._idle.append(connection)\n",
        "        # an abandoned stream is closed, not kept\n        if connection.abandoned:\n"
        "            connection.close()\n"
        "        elif len(self._idle) < self.size:\n            self._idle.append(connection)\n",
    )
    .replace("return sum(len(pool._idle) for pool in pools)", "return sum(map(len, pools))  # of all hosts")
)
BEFORE = {
    "README.md": BODY.replace("##", "#", 1).encode(),
    "src/pool.py": POOL.encode(),
    "src/transport/http/headers.py": b"ACCEPT = 'accept'\nHOST = 'host'\n",
    "src/transport/http/old.py": b"GONE = True\n",
    "docs/guide/pools.md": b"# Pools\n\nA pool keeps ten connections.\n",
    "tests/names.py": b"NAMES = ['a', 'b']\nMORE = ['c', 'd']\nLAST = ['e']\n",
}
AFTER = {
    "src/pool.py": POOL_NOW.encode(),
    "src/transport/http/headers.py": b"ACCEPT = 'accept'\nHOST = 'host'\nVIA = 'via'\n",
    "docs/guide/pools.md": b"# Pools\n\nA pool keeps ten connections, and closes abandoned streams.\n",
    "docs/guide/pool.bin": bytes(range(256)),
    "tests/test_pool.py": b"def test_an_abandoned_stream_is_closed() -> None:\n    assert Pool().take('a')\n",
    "tests/more_names.py": b"NAMES = ['a', 'b']\nMORE = ['c', 'd']\nLAST = ['e']\n",
}
GONE = ("src/transport/http/old.py", "tests/names.py")
PROJECT = """[project]
name = "httpx"
dependencies = ["anyio", "certifi", "httpcore==1.*", "idna"]
[dependency-groups]
dev = ["pytest==8.3.4", "trio"]
"""
REPO = "Gk\r"  # from Home: its last rows are the repositories, and the last one is not this one
SCREENS = {
    "home": "",
    "overview": REPO + "1",
    "code": REPO + "2",
    "issues": REPO + "3",
    "issue": REPO + "3\r",
    "proposals": REPO + "3p",
    "proposal": REPO + "3p\r",
    "files": REPO + "3p\r\r",
    "changes": REPO + "3p\r\r}}}}J",
    "beside": REPO + "3p\r\r}}}}vJ",
    "tree": REPO + "3p\r\rf",
    "workflows": REPO + "4",
    "releases": REPO + "5",
    "history": REPO + "2h",
    "settings": REPO + "8",
    "refs": REPO + "b",
    "new": REPO + "3aStalls\r",
    "merge": REPO + "3p\rM",
    "inbox": "i",
    "sync": "s",
    "machine": "M",
    "security": REPO + "6",
    "insights": REPO + "7",
    "release": REPO + "5\r",
    "run": REPO + "4\r",
    "edit": REPO + "3\rT",
    "palette": REPO + "3 ",
    "command": REPO + "3:",
    "help": REPO + "3?",
    "labels": REPO + "3\rl",
    "account": "a",
}


ENVIRONMENTS = {
    "256": {"TERM": "xterm-256color"},
    "16": {"TERM": "xterm-16color"},
    "none": {"TERM": "xterm-256color", "NO_COLOR": "1"},
    "dark": {"TERM": "xterm-256color", "COLORFGBG": "15;0"},
    "true": {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
}
"""What the terminal can: 256 colours, 16, none; 256 with a background that is known; all."""


def furnish(api: Api, base: Path, env: dict[str, str]) -> Path:
    """Make a linked folder whose repository has something for every screen. Returns the folder."""
    folder, repo_id = make_linked_folder(api, base, env, "httpx")
    write(folder, BEFORE)
    svc(folder, env, "push", "-m", "Keep connections")
    write(folder, {"pyproject.toml": PROJECT.encode()})
    svc(folder, env, "push", "-m", "Say what it depends on")
    for name, colour in LABELS.items():
        api.send(labels.CREATE, LabelCreate(name=name, color=colour), id=repo_id)
    for number, title in enumerate(TITLES):
        names = [*LABELS][number % 3 : number % 3 + number % 4]
        api.send(issues.CREATE, IssueCreate(title=title, body=BODY, labels=names), id=repo_id)
    said = CommentBody(body="It does so here too:\n\n1. start\n2. *wait*")
    api.send(issues.COMMENT, said, id=repo_id, n=str(len(TITLES)))
    svc(folder, env, "repo", "branch", "close-streams")
    svc(folder, env, "switch", "close-streams")
    write(folder, AFTER)
    for path in GONE:
        (folder / path).unlink()
    svc(folder, env, "push", "-m", "Close abandoned streams")
    svc(folder, env, "pr", "create", "-t", "Close abandoned streams", "-b", BODY)
    remark(folder, env)
    svc(folder, env, "switch", "main")
    for name, *how in (*EARLIER, *RUNS):
        svc(folder, env, "repo", "run", "create", name, *how)
    svc(folder, env, "repo", "protect", "set", "release/*", "--required-approvals", "2", "--require-checks")
    svc(folder, env, "repo", "release", "create", "v1.0", "-n", "## Fixed\n\n- streams\n- cookies")
    friend(api, env, repo_id)
    return folder


def remark(folder: Path, env: dict[str, str]) -> None:
    """Comment on lines of the proposal. One of these lines no longer exists."""
    number = str(len(TITLES) + 1)
    on = ("pr", "comment", number, "--path", "src/pool.py")
    svc(folder, env, *on, "--line", "17", "-b", "Is `stale` cheap? It runs for **each** idle connection.")
    svc(folder, env, *on, "--line", "10", "--side", "old", "-b", "Nobody else reads this one.")
    svc(
        folder,
        env,
        *on,
        "--line",
        "34",
        "--suggest",
        "    return sum(len(pool) for pool in pools)",
        "-b",
        "Why?",
    )


def friend(api: Api, env: dict[str, str], repo_id: str) -> None:
    """Have another account open issues and comment, so that the account's inbox has entries."""
    with tempfile.TemporaryDirectory() as home:
        theirs = {**env, "SVC_HOME": home}
        svc(Path(home), theirs, "login", "--device-key", "--handle", "maria")
        full_name = api.send(repos.GET, id=repo_id).full_name
        where = ["-R", full_name]
        svc(Path(home), env, "repo", "collaborator", "add", "maria", "--role", "write", *where)
        svc(Path(home), theirs, "repo", "invite", "accept", full_name)
        svc(Path(home), theirs, "issue", "comment", "3", "-b", "I see this too, @bench", *where)
        svc(Path(home), theirs, "issue", "edit", "4", "--add-assignee", "bench", *where)
        svc(Path(home), theirs, "issue", "comment", "5", "-b", "Why?", *where)
        svc(Path(home), theirs, "pr", "comment", str(len(TITLES) + 1), "-b", "Nice", *where)


class Screen(pyte.Screen):
    """A terminal's screen that remembers which text is faint. pyte's own screen does not."""

    def select_graphic_rendition(self, *attrs: int, **given: bool) -> None:
        """Set colours and styles for what is written next. `attrs`: numbers of the escape sequence."""
        super().select_graphic_rendition(*attrs, **given)
        left = list(attrs)
        while left:
            number = left.pop(0)
            if number in (38, 48):  # a colour: 5 and its number, or 2 and three parts
                del left[: 2 if left[:1] == [5] else 4]
            elif number == 2 and self.cursor.attrs.fg == "default":
                self.cursor.attrs = self.cursor.attrs._replace(fg=FAINT)
            elif number == 22 and self.cursor.attrs.fg == FAINT:
                self.cursor.attrs = self.cursor.attrs._replace(fg="default")


class Shown(Terminal):
    """A terminal whose screen becomes a picture."""

    SCREEN = Screen


def draw_screen(screen: pyte.Screen, light: bool = False) -> Image.Image:
    """The screen of a terminal as a picture. `light`: the terminal has a light background."""
    ground, text = (LIGHT_GROUND, LIGHT_TEXT) if light else (GROUND, TEXT)
    colours = LIGHT if light else COLOURS
    image = Image.new("RGB", (screen.columns * WIDE, screen.lines * HIGH), ground)
    draw = ImageDraw.Draw(image)
    plain, bold = (ImageFont.truetype(FONTS.format(kind), POINTS) for kind in ("", "-Bold"))
    for y in range(screen.lines):
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            front, back = _colour(cell.fg, text, colours), _colour(cell.bg, ground, colours)
            if cell.fg == FAINT:
                front = FAINT_TEXT[light]
            if cell.reverse:
                front, back = back, front
            at = (x * WIDE, y * HIGH)
            draw.rectangle((*at, at[0] + WIDE - 1, at[1] + HIGH - 1), fill=back)
            if cell.data.strip():
                draw.text(at, cell.data, fill=front, font=bold if cell.bold else plain)
            if cell.underscore:
                draw.line((at[0], at[1] + HIGH - 2, at[0] + WIDE - 1, at[1] + HIGH - 2), fill=front)
    return image


def _colour(name: str, default: str, colours: dict[str, str]) -> str:
    if name == "default":
        return default
    return colours.get(name) or (f"#{name}" if len(name) == 6 else default)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", action="append", default=[])
    parser.add_argument("--theme", action="append", default=[])
    parser.add_argument("--colours", default="256", choices=sorted(ENVIRONMENTS))
    parser.add_argument("--only", action="append", default=[], choices=sorted(SCREENS))
    parser.add_argument("--light", action="store_true", help="a terminal with a light background")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as where:
        base = Path(where)
        with relay_on(base / "relay") as server:
            api, _ = signed_in(base, server)
            env = environment(base, server)
            folder = furnish(api, base, env)
            program = str(Path(sys.executable).with_name("svc"))
            for theme in given.theme or ["terminal"]:
                for size in given.size or ["80x24", "100x30", "140x40"]:
                    width, height = map(int, size.split("x"))
                    for name in given.only or SCREENS:
                        its = {**env, **ENVIRONMENTS[given.colours]}
                        terminal = Shown([program, "tui", "--theme", theme], folder, width, height, its)
                        terminal.shows("httpx")
                        for key in SCREENS[name]:
                            terminal.keys(key, PAUSE)
                        terminal.read(0.8)
                        file = f"{name}-{theme}-{given.colours}-{size}.png"
                        draw_screen(terminal.screen, given.light).save(given.folder / file)
                        terminal.kill()
    print(f"pictures in {given.folder}")


if __name__ == "__main__":
    main()
