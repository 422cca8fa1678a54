"""Writes docs/reference from the code, and the list of pages in docs/guide/README.md from those pages.

    python -m scripts.reference            # write the files
    python -m scripts.reference --check    # print which are out of date; exit 1 if one is

Only the meanings of environment variables are written by hand, in `scripts.reference_environment`. Every
variable that the code reads must be described there, and no other.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path

from localstore.core.model.rights import Operation
from scripts.error_tree import classes
from scripts.reference_commands import commands
from scripts.reference_environment import environment
from scripts.reference_remedies import remedies

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Made from the code by: python -m scripts.reference -->\n\n"


def limits() -> str:
    """The page on limits: every named number of `localstore/core/model/limits.py`, with the comment beside
    the number."""
    from localstore.core.model import limits as values

    source = Path(values.__file__).read_text("utf-8")
    lines = source.splitlines()
    starts = {node.lineno: node for node in ast.parse(source).body if isinstance(node, ast.Assign)}
    text = ["# Limits\n", "Sizes are in bytes and times in seconds unless the name says otherwise.\n"]
    for number, line in enumerate(lines, 1):
        if line.startswith("# --- "):
            text += [f"\n## {line.removeprefix('# --- ').capitalize()}\n", _row("name", "value", "")]
            text.append(_row("---", "---:", "---"))
        elif number in starts and number > _first_heading(lines):
            node = starts[number]
            note = lines[(node.end_lineno or number) - 1].partition("#")[2].strip()
            for name in _names(node):
                text.append(_row(f"`{name}`", f"{getattr(values, name):,}", note))
    return "\n".join(text) + "\n" + _rates()


def _rates() -> str:
    """The part of the page on limits that says how often something may be done: requests, sockets and
    attempts to guess a secret."""
    from relay import domain as modules
    from relay.capacity import limiter
    from relay.http.routing import TABLE
    from relay.ssh import front  # noqa: F401  # has a limit of its own

    modules.load()
    text = [
        "\n## How often (switched off by `TR_RATE_LIMITS=off`; each relay counts for itself)\n",
        "A network is an IPv4 address or 64 bits of an IPv6 address. What was used comes back evenly.\n",
        _row("what", "at once", "all back after, seconds"),
        _row("---", "---:", "---:"),
    ]
    for what, rate in (
        ("requests of a network; of an account", limiter.ORDINARY),
        ("frames from the sockets of one session", limiter.SOCKET),
        ("frames from the sockets of a network", limiter.SOCKETS),
    ):
        text.append(_row(what, f"{rate.burst:,}", f"{rate.burst / rate.per_second:,.0f}"))
    for attempts in sorted(limiter.Attempts.ALL.values(), key=lambda attempts: attempts.what):
        text.append(_row(attempts.what, f"{attempts.most:,}", f"{attempts.seconds:,}"))
    for route in sorted(TABLE, key=lambda route: (route.path, route.method)):
        if route.per_minute is not None:
            text.append(_row(f"`{route.method} {route.path}` of a network", f"{route.per_minute:,}", "60"))
    return "\n".join(text) + "\n"


def errors() -> str:
    """The page on errors as a tree, with the code, HTTP status, exit code and meaning of each."""
    text = [
        "# Errors\n",
        "The relay answers an error as `application/problem+json` (RFC 9457) with `type`, `title`,",
        "`status`, `code`, `detail` and, for some, further members. Match on `code`; `detail` is for",
        "people. The client ends with the exit code. `not_found` has no `detail`: missing, hidden and",
        "switched off are one answer.\n",
        _row("code", "status", "exit", "meaning", "its sentences may name"),
        _row("---", "---:", "---:", "---", "---"),
    ]
    named = remedies()
    for kind in sorted(classes(), key=lambda kind: (kind.status or 999, kind.code)):
        meaning = (kind.__doc__ or "").strip().partition("\n\n")[0].replace("\n    ", " ") or _phrase_code(
            kind.code
        )
        commands = ", ".join(f"`svc {command}`" for command in named.get(kind.code, []))
        text.append(_row(f"`{kind.code}`", str(kind.status or "–"), str(kind.exit), meaning, commands))
    text += ["", "A status of – means that the error arises on this machine and is never sent."]
    return "\n".join(text) + "\n"


def routes() -> str:
    """The page on routes, grouped by noun."""
    from relay import domain as modules
    from relay.http.routing import TABLE

    modules.load()
    text = [
        "# Routes\n",
        "Each route with who may call it, its feature flag, and its bodies; the schemas are in",
        "`GET /api/v1/openapi.json`. `{name...}` takes the rest of the path. A route whose flag is off",
        "answers like a path that does not exist.\n",
    ]
    for noun in sorted({route.name.partition(".")[0] for route in TABLE}):
        text += [
            f"## {noun}\n",
            _row("route", "who", "takes → gives", "what"),
            _row("---", "---", "---", "---"),
        ]
        for route in sorted(TABLE, key=lambda one: (one.path, one.method)):
            if route.name.partition(".")[0] == noun:
                text.append(
                    _row(
                        f"`{route.method} {route.path}`",
                        _who(route.operation) + (f"; `{route.flag}`" if route.flag else ""),
                        _bodies(route),
                        route.summary,
                    )
                )
        text.append("")
    return "\n".join(text)


def _bodies(route: object) -> str:
    body, query, returns = (getattr(route, name) for name in ("body", "query", "returns"))
    takes = [f"`?{query.__name__}`"] if query else []
    takes += [f"`{body.__name__}`"] if body else []
    takes += ["stream"] if getattr(route, "stream", False) else []
    media, status = route.media, route.status  # type: ignore[attr-defined]
    gives = f"`{_type_name(returns)}`" if returns else ("–" if media == "application/json" else media)
    return f"{' '.join(takes) or '–'} → {gives}" + (f" ({status})" if status != 200 else "")


def _type_name(kind: object) -> str:
    inner = getattr(kind, "__args__", ())
    name = getattr(kind, "__name__", str(kind))
    if name == "Union":
        return " or ".join(map(_type_name, inner))
    return f"{name}[{', '.join(map(_type_name, inner))}]" if inner else name


def _who(operation: Operation) -> str:
    """A text that says who may do the operation, by the table of rights."""
    if operation.about == "node":
        return "anybody"
    if operation.about == "browser":
        return "a browser session"
    if operation.about == "account":
        return "a session, also of a guest" if operation.guest else "a session"
    least = operation.least or "read"
    words = [
        least if least == "owner" else f"{least} or above",
        *(["its author"] if operation.author else []),
    ]
    if operation.stranger:
        public = "anybody" if operation.anonymous else "a session" if operation.guest else "an account"
        words.append(f"{public} if public")
    if not operation.archived:
        words.append("not while archived")
    return "; ".join(words)


def rights() -> str:
    """The page with the table of rights, including operations without a route."""
    from localstore.core.model.rights import CALLERS, OPERATIONS
    from relay import domain as modules
    from relay.http.routing import TABLE

    modules.load()
    served = {route.operation.name for route in TABLE}
    text = [
        "# Rights\n",
        "Who may do what. `stranger`, `guest` and `anonymous` are callers without a role, in a public",
        "repository; of a private one they see nothing. `author`: who wrote what is changed. `credential`:",
        "what the token must include. A suspended repository is not found, whoever asks for whatever. An",
        "operation marked with * has no route yet.\n",
        _row("operation", *CALLERS, "archived", "credential", "edition"),
        _row("---", *[":-:"] * len(CALLERS), ":-:", "---", "---"),
    ]
    for one in OPERATIONS.values():
        marks = ["●" if one.allows(who) else "" for who in CALLERS]
        archived = "" if one.about != "repository" else "●" if one.archived else "refused"
        edition = "" if one.edition == "self-hosted-community" else one.edition
        name = f"`{one.name}`" + ("" if one.name in served else "*")
        browser = " by cookie" if one.about == "browser" else ""
        text.append(_row(name, *marks, archived, one.needs + browser, edition))
    return "\n".join(text) + "\n"


def _phrase_code(code: str) -> str:
    return code.replace("_", " ").capitalize() + "."


def _names(node: ast.Assign) -> list[str]:
    found = [name for target in node.targets for name in ast.walk(target)]
    return [name.id for name in found if isinstance(name, ast.Name)]


def _first_heading(lines: list[str]) -> int:
    return next(number for number, line in enumerate(lines, 1) if line.startswith("# --- "))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "routes.md": routes,
    "rights.md": rights,
    "environment.md": environment,
    "limits.md": limits,
    "errors.md": errors,
}


GUIDE = ROOT / "docs" / "guide"
_GUIDE_LINE = re.compile(r"<!-- Guide (\d+): (.+) -->\n\n# (.+)\n")
_GUIDE_LIST = re.compile(r"(?s)(<!-- pages -->\n).*?(<!-- /pages -->)")


def guide() -> str:
    """The text of docs/guide/README.md. It lists each page of the folder in the order that the page's first
    line states. Raises ValueError for a page that does not begin with `<!-- Guide ORDER: SUMMARY -->`."""
    pages = []
    for path in sorted(GUIDE.glob("*.md")):
        if path.name == "README.md":
            continue
        line = _GUIDE_LINE.match(path.read_text("utf-8"))
        if line is None:
            raise ValueError(f"docs/guide/{path.name}: begin with <!-- Guide ORDER: SUMMARY --> and a title")
        pages.append((int(line[1]), f"- [{line[3]}]({path.name}): {line[2]}\n"))
    listed = "".join(row for _, row in sorted(pages))
    return _GUIDE_LIST.sub(rf"\1{listed}\2", (GUIDE / "README.md").read_text("utf-8"))


def make_pages() -> dict[Path, str]:
    """Path → text of each file that this script writes."""
    return {FOLDER / name: MADE + page() for name, page in PAGES.items()} | {GUIDE / "README.md": guide()}


def stale() -> dict[Path, str]:
    """Path → text of each file that is out of date."""
    return {path: text for path, text in make_pages().items() if _read_page(path) != text}


def _read_page(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    old = stale()
    if parser.parse_args().check:
        for path in old:
            print(
                f"{path.relative_to(ROOT)} is out of date; run: python -m scripts.reference", file=sys.stderr
            )
        return 1 if old else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in old.items():
        path.write_text(text, "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
