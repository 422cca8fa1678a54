"""The rows of the screen "this machine". They are made from a `MachineState`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from localstore.core.words import count
from svc.console.table import size
from tui.screens.machine.reading import AppRow, Loaded, MachineState, Model, Pull
from tui.text import Part, ago, fold, safe
from tui.widgets.lines import Item, heading

BAR = 10  # columns of a bar
NAME, WIDEST = 16, 34  # columns of a name, at least and at most
SIZE = 10
NARROW = 60  # columns of the list below which a row has what matters most only
SERVER = ("server", "")  # the key of the server's row
FAR = timedelta(days=3650)  # ahead, from which on a model stays loaded
BLANK = Item(None, (("", "text"),))
LIGHTS: dict[str, Part] = {
    "embedded": ("●", "good"),
    "ollama": ("●", "good"),
    "adopted": ("●", "good"),
    "hung": ("◐", "warn"),
    "held": ("✗", "bad"),
    "none": ("○", "dim"),
}
WORDS = {"embedded": "embedded", "ollama": "the installed ollama", "adopted": "not started by svc"}


def rows_of(
    overview: MachineState, rates: Mapping[str, float], engine: tuple[str, str], now: float, width: int
) -> list[Item]:
    """Returns all rows of the list. `rates`: the rate of each pull in bytes per second, by name. `engine`:
    the device that computes models, and the reason why models cannot be used here. `width`: the columns of
    the list."""
    names = [model.name.short for model in overview.models] + [pull.name for pull in overview.pulls]
    names += [row.state.id for row in overview.apps]
    most = 20 if width < NARROW else WIDEST if width >= 96 else WIDEST - 8
    wide = min(most, max(NAME, *(len(name) for name in names), 0)) if names else NAME
    narrow = width < NARROW
    rows = [*_server(overview, engine, width), BLANK, heading("Models", len(overview.models) or None)]
    pulls = {pull.name: pull for pull in overview.pulls}
    for model in overview.models:
        pull = pulls.pop(model.name.short, None)
        if pull is not None and not pull.failure:
            rows.append(_pull(pull, rates, wide, narrow))
        else:
            rows.append(_model(model, overview, wide, now, narrow))
    for pull in pulls.values():
        rows += [_pull(pull, rates, wide, narrow), *_reason(pull.failure, width)]
    if not overview.models and not overview.pulls:
        rows.append(Item(None, (("  no models here; p pulls one", "dim"),)))
    rows += [BLANK, heading("Apps", len(overview.apps) or None)]
    for row in overview.apps:
        detail = row.state.detail if row.state.state == "failed" and not row.missing else ""
        rows += [_app(row, overview.free, wide, now, narrow), *_reason(row.problem or detail or "", width)]
    if not overview.apps:
        rows.append(Item(None, (("  no apps here; a launches one", "dim"),)))
    return rows


def _server(overview: MachineState, engine: tuple[str, str], width: int) -> list[Item]:
    """Returns the row of the LLM server. If there is no server, another row says what to do about that."""
    status, (device, problem) = overview.status, engine
    sign, role = LIGHTS.get(status.kind, ("·", "dim"))
    name: tuple[Part, ...] = ((f"{sign} ", role), (f"127.0.0.1:{status.port}  ", "text"))
    right: tuple[Part, ...] = ()
    help_rows = _reason(problem, width, "warn")
    if status.kind == "none":
        words: Part = ("no server; S starts it" if not problem else "no server", "dim")
    elif status.kind == "held":
        words = (f"held by {safe(status.holder or 'another program')}", "bad")
        helps = "end it, or name another port: ollama_port_override in .svc.yaml, SVC_LLM_PORT"
        help_rows = _reason(helps, width, "warn")
    elif status.kind == "hung":
        words = (f"process {status.pid or '?'} does not answer; l shows its log", "warn")
        help_rows = []
    else:
        taken = sum(loaded.size for loaded in overview.loaded.values())
        words_of_memory = f" · {memory_words(taken, overview.total)}" if overview.total else ""
        on = f" · {safe(device)}" if device and status.kind == "embedded" else ""
        words = (f"{WORDS.get(status.kind, status.kind)}{on}{words_of_memory}", "dim")
        idle = "stays" if status.stays else ""
        needed = count(len(status.leases), "lease") if status.leases else idle
        right = ((f"{needed} ", "dim"),) if needed else ()
    return [heading("Server"), Item(SERVER, (*name, words), right, text="server"), *help_rows]


def _model(model: Model, overview: MachineState, wide: int, now: float, narrow: bool) -> Item:
    name, loaded = model.name.short, overview.loaded.get(str(model.name))
    parts: tuple[Part, ...]
    sign: Part = ("● ", "good") if loaded is not None else ("○ ", "dim")
    if loaded is not None:
        until = until_words(loaded, now)
        parts = (("loaded", "good"), ("" if narrow else f"  ctx {loaded.context}  {until}", "dim"))
    elif overview.free is not None and model.need > overview.free:
        parts = (("does not fit" if narrow else unfit_words(model.need, overview.free), "warn"),)
    else:
        parts = ((safe(model.kind), "dim"),)
    start: tuple[Part, ...] = (sign, (_name(name, wide), "text"), (f"{size(model.size):>{SIZE}}  ", "dim"))
    return Item(("model", name), (*start, *parts), text=name)


def _pull(pull: Pull, rates: Mapping[str, float], wide: int, narrow: bool) -> Item:
    """Returns the row of a pull. A narrow row has its progress without its size."""
    sign: Part = ("✗ ", "bad") if pull.failure else ("◐ ", "accent")
    room = "" if narrow else f"{size(pull.total) if pull.total and not pull.failure else '':>{SIZE}}"
    start: tuple[Part, ...] = (sign, (_name(pull.name, wide), "text"), (f"{room}  ", "dim"))
    if pull.failure:
        parts: tuple[Part, ...] = (("was not pulled", "bad"),)
    elif not pull.total:
        parts = (("pulling", "accent"),)
    else:
        share = min(1.0, pull.completed / pull.total)
        rate = rates.get(pull.name, 0.0)
        rate_words = f"  {size(rate)}/s" if rate else ""
        present = f"  {100 * pull.known // pull.total} % known here" if pull.known else ""
        parts = (*bar(share), (f" {int(100 * share):>3} %", "text"))
        parts += () if narrow else ((rate_words, "dim"), (present, "good"))
    return Item(("model", pull.name), (*start, *parts), text=pull.name)


def app_light(row: AppRow) -> tuple[str, str, str]:
    """Returns (sign, word, role) for the state of an app."""
    state = row.state
    if row.problem:
        return "✗", "cannot be launched", "bad"
    match state.state:
        case "running":
            return "●", "running", "good"
        case "starting" | "pulling":
            return "◐", state.state, "accent"
        case "failed":
            return "✗", "failed", "bad"
        case "ended":
            return ("✗" if state.code else "○"), f"ended with {state.code}", "bad" if state.code else "dim"
    return "○", safe(state.detail or "stopped"), "dim"


def _app(row: AppRow, free: int | None, wide: int, now: float, narrow: bool) -> Item:
    state = row.state
    sign, word, role = app_light(row)
    parts: list[Part] = [(word, role)]
    if state.state == "running" and not row.problem:
        since = ago(state.since_at or "", now).removesuffix(" ago")
        parts = [(f"running {since}", "good")]
        if not narrow:
            parts += [(f"  {safe(words)}", "dim") for words in (state.model, state.page) if words]
    elif state.state == "pulling" and state.pulled and state.pulled[1]:
        share = min(1.0, state.pulled[0] / state.pulled[1])
        parts = [*bar(share), (f" {int(100 * share):>3} %", "text"), ("  pulls its model", "dim")]
    lacks = [f"needs {safe(', '.join(row.missing))}"] if row.missing else []
    lacks += [unfit_words(row.need, free)] if row.need and free is not None else []
    first: tuple[Part, ...] = tuple((f"{words}  ", "warn") for words in lacks)
    start: tuple[Part, ...] = ((f"{sign} ", role), (f"{_name(state.id, wide)}  ", "text"))
    more = () if narrow and first else parts  # the preview has its state
    return Item(("app", state.id), (*start, *first, *more), text=state.id)


def _reason(words: str, width: int, role: str = "dim") -> list[Item]:
    """Returns the reason for a failure, in as many rows as it needs."""
    if not words:
        return []
    rows = fold(((safe(words), role),), max(20, width - 6))
    return [Item(None, (("    ", "text"), *row)) for row in rows]


def bar(share: float) -> tuple[Part, Part]:
    """Returns a bar as (full part, empty part). `share`: how much of it is full, from 0 to 1."""
    full = int(BAR * share)
    return ("▒" * full, "accent"), ("·" * (BAR - full), "dim")


def until_words(loaded: Loaded, now: float) -> str:
    """Returns in words when a model is unloaded: `until 14:30` in this machine's time, or `stays loaded`."""
    try:
        end = datetime.fromisoformat(loaded.until)
        if end - datetime.fromtimestamp(now, UTC) > FAR:
            return "stays loaded"
        return f"until {end.astimezone():%H:%M}"
    except (ValueError, TypeError, OverflowError):
        return ""


def unfit_words(need: int, free: int) -> str:
    return f"does not fit: {gib(need)} GiB, {gib(free)} free"


def gib(count: float) -> str:
    """Returns a number of bytes in GiB as a number without unit. It has one decimal if it is less than
    ten."""
    number = count / (1 << 30)
    if not count:
        return "0"
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def memory_words(taken: int, total: int | None) -> str:
    """Returns how much memory models take, of how much in all. Returns "" if the system does not report
    that."""
    return f"{gib(taken)} of {gib(total)} GiB" if total else ""


def _name(name: str, wide: int) -> str:
    """Returns the name of a model, padded to the `wide` cells of its column. If the name is too long, its
    beginning is cut off, because models differ by the tags at the end of their names."""
    words = safe(name)
    return f"{words if len(words) <= wide else '…' + words[1 - wide :]:<{wide}}"
