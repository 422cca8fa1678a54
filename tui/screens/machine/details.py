"""The preview on the screen "this machine". It shows a model, a pull, an app or the LLM server, with its
log."""

from __future__ import annotations

from collections.abc import Sequence

from svc.console.table import size
from tui.screens.machine.reading import AppRow, Loaded, MachineState, Model, Pull
from tui.screens.machine.rows import (
    LIGHTS,
    WORDS,
    app_light,
    bar,
    gib,
    memory_words,
    unfit_words,
    until_words,
)
from tui.text import Part, ago, fold, hang, safe

Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
NAME = 10  # columns of the name of a fact
BLOCK: Part = ("▎ ", "accent")  # before each line of a command
LEAST_LOG = 4  # lines of a log that are shown at least, if it has them


def server_rows(
    overview: MachineState, engine: tuple[str, str], log: Sequence[str], room: tuple[int, int]
) -> list[Line]:
    """Returns rows about the local LLM server, and the keys to begin with. `room`: the columns and rows of
    the preview."""
    status, (device, problem), (width, _) = overview.status, engine, room
    sign, role = LIGHTS.get(status.kind, ("·", "dim"))
    words = {
        "none": "does not run",
        "held": f"its port is held by {safe(status.holder or 'another program')}",
        "hung": "does not answer",
    }.get(status.kind, f"runs: {WORDS.get(status.kind, status.kind)}")
    runs = status.kind in WORDS
    taken = sum(loaded.size for loaded in overview.loaded.values())
    rows: list[Line] = [
        ((f"{sign} ", role), (words, "text")),
        *(fold([(safe(problem), "warn")], width) if problem else []),
        BLANK,
        *_fact("address", f"http://127.0.0.1:{status.port}", width),
        *_fact("process", str(status.pid or ""), width),
        *_fact("computes", safe(device) if runs else "", width),
        *_fact("memory", memory_words(taken, overview.total) if runs else "", width),
        *_fact("free", f"{gib(overview.free)} GiB" if runs and overview.free is not None else "", width),
    ]
    leases = [*status.leases] or (["nobody; it stays until S stops it"] if status.stays else [])
    for place, lease in enumerate(leases):
        rows += _fact("used by" if not place else "", safe(lease), width)
    rows += [BLANK, *_keys(width, *_next_keys(overview))]
    return [*rows, *_log_rows(log, len(rows), room)]


def _next_keys(overview: MachineState) -> list[tuple[str, str]]:
    """Returns (key, what it does) for the keys that the user is likely to need next."""
    kind = overview.status.kind
    first = {"none": ("S", "starts the server; an app or a chat starts it too"), "held": ("r", "looks again")}
    keys = [first.get(kind, ("S", "stops the server"))]
    keys.append(("p", "pulls a model: OWNER/NAME of a server or registry, or a GGUF file"))
    if overview.models:
        keys.append(("c", "chats with the model under the cursor"))
    return [*keys, ("a", "launches an app: the one under the cursor, or a folder")]


def model_rows(model: Model, overview: MachineState, now: float, width: int) -> list[Line]:
    loaded = overview.loaded.get(str(model.name))
    fits = overview.free is None or model.need <= overview.free
    state: Line = (("● ", "good"), ("loaded", "good")) if loaded else (("○ ", "dim"), ("not loaded", "text"))
    if loaded is None and not fits:
        state = (("✗ ", "warn"), (unfit_words(model.need, overview.free or 0), "warn"))
    rows: list[Line] = [
        state,
        BLANK,
        *_fact("name", safe(str(model.name)), width),
        *_fact("size", size(model.size), width),
        *_fact("kind", safe(model.kind), width),
        *_fact("needs", f"{gib(model.need)} GiB of memory at least" if model.need else "", width),
        *_fact("made of", safe(model.architecture), width),
        *(_loaded_rows(loaded, now, width) if loaded else []),
        BLANK,
    ]
    keys = [("enter", "shows what is in it"), ("c", "chats with it"), ("x", "removes it from this machine")]
    return [*rows, *_keys(width, *keys, *([("u", "unloads it")] if loaded else []))]


def _loaded_rows(loaded: Loaded, now: float, width: int) -> list[Line]:
    return [
        *_fact("takes", f"{gib(loaded.size)} GiB", width),
        *_fact("context", f"{loaded.context} tokens" if loaded.context else "", width),
        *_fact("stays", until_words(loaded, now).removeprefix("stays "), width),
    ]


def pull_rows(pull: Pull, rate: float, width: int) -> list[Line]:
    if pull.failure:
        return [
            (("✗ ", "bad"), ("was not pulled", "bad")),
            *fold([(safe(pull.failure), "text")], width),
            BLANK,
            *_keys(width, ("p", "pulls it again"), ("x", "forgets it")),
        ]
    share = min(1.0, pull.completed / pull.total) if pull.total else 0.0
    progress: Line = (*bar(share), (f" {int(100 * share)} %", "text")) if pull.total else (("asking", "dim"),)
    seconds = (pull.total - pull.completed) / rate if rate else 0.0
    time = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s" if seconds else ""
    return [
        (("◐ ", "accent"), ("pulling  ", "accent"), *progress),
        BLANK,
        *_fact("came", f"{size(pull.completed)} of {size(pull.total)}" if pull.total else "", width),
        *_fact("a second", size(rate) if rate else "", width),
        *_fact("left", time, width),
        *_fact("known", f"{size(pull.known)} were here already" if pull.known else "", width),
        *_fact("process", str(pull.pid or ""), width),
        BLANK,
        *_keys(width, ("x", "ends it; what came is kept")),
    ]


def app_rows(
    row: AppRow, log: Sequence[str], free: int | None, now: float, room: tuple[int, int]
) -> list[Line]:
    """Returns rows about an app: its state, what it runs, and the end of its log."""
    state, (width, _) = row.state, room
    sign, word, role = app_light(row)
    since = ago(state.since_at, now) if state.since_at and state.state == "running" else ""
    rows: list[Line] = [
        ((f"{sign} ", role), (word, role), (f"  started {since}" if since else "", "dim")),
        *fold([(safe(row.problem or state.detail or ""), "warn")], width)[
            : 6 if row.problem or state.detail else 0
        ],
        BLANK,
        *_fact("page", safe(state.page or ""), width),
        *_fact("process", str(state.pid or ""), width),
        *_fact("model", safe(state.model or ""), width),
        *_fact("needs", safe(", ".join(row.missing)), width, "warn"),
        *(
            _fact("memory", unfit_words(row.need, free), width, "warn")
            if row.need and free is not None
            else []
        ),
        *_fact("folder", safe(state.folder), width),
    ]
    if row.command:
        rows += [BLANK, (("runs", "dim"),)]
        rows += [(BLOCK, *part) for part in fold([(safe(row.command), "text")], width - 2)]
    for note in state.notes:
        rows += fold([(safe(note), "dim")], width)
    if not log and state.state != "running":
        key = ("p", "pulls the model that it needs") if row.missing else ("a", "launches it")
        rows += [BLANK, *_keys(width, key)]
    return [*rows, *_log_rows(log, len(rows), room)]


def _log_rows(log: Sequence[str], above: int, room: tuple[int, int]) -> list[Line]:
    """Returns the end of a log, as many rows as fit into the preview below its first `above` rows."""
    width, height = room
    if not log:
        return []
    lines = [part for line in log[-height:] for part in hang(line, width)]
    count = max(LEAST_LOG, height - above - 2)
    title = "log"
    rule: Line = ((f"{title} ", "dim"), ("─" * max(0, width - len(title) - 1), "line"))
    return [BLANK, rule, *(((line, "text"),) for line in lines[-count:])]


def _fact(name: str, value: str, width: int, role: str = "text") -> list[Line]:
    """Returns rows with the name of a fact and its value, wrapped. Returns [] if the value is empty."""
    if not value:
        return []
    first, *rest = fold([(value, role)], max(12, width - NAME))
    return [((f"{name:<{NAME}}", "dim"), *first), *(((" " * NAME, "text"), *row) for row in rest)]


def _keys(width: int, *keys: tuple[str, str]) -> list[Line]:
    """Returns rows with keys, each with what it does, wrapped beside the key."""
    wide = max(len(key) for key, _ in keys) + 1
    rows: list[Line] = []
    for key, words in keys:
        first, *rest = fold([(words, "dim")], max(8, width - wide))
        rows += [((f"{key:<{wide}}", "accent"), *first), *(((" " * wide, "text"), *row) for row in rest)]
    return rows
