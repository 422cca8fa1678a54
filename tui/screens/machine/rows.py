"""The rows of the screen "this machine", made from an `Overview` of the machine's state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from svc.console.table import size
from tui.screens.machine.reading import AppRow, Loaded, Model, Overview, Pull
from tui.text import Part, ago, folded, safe
from tui.widgets.lines import Item, heading

BAR = 10  # columns of a bar
NAME, WIDEST = 16, 34  # columns of a name, at least and at most
SIZE = 10
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
    overview: Overview, rates: Mapping[str, float], engine: tuple[str, str], now: float, width: int
) -> list[Item]:
    """All rows of the screen. `rates`: bytes per second of each pull, by name; `engine`: as
    `reading.engine_words` returns it; `now`: seconds since 1970; `width`: columns."""
    names = [model.name.short for model in overview.models] + [pull.name for pull in overview.pulls]
    names += [row.state.id for row in overview.apps]
    most = WIDEST if width >= 100 else WIDEST - 8
    wide = min(most, max(NAME, *(len(name) for name in names), 0)) if names else NAME
    rows = [*_server(overview, engine), BLANK, heading("Models", len(overview.models) or None)]
    pulls = {pull.name: pull for pull in overview.pulls}
    for model in overview.models:
        pull = pulls.pop(model.name.short, None)
        if pull is not None and not pull.failure:
            rows.append(_pull(pull, rates, wide))
        else:
            rows.append(_model(model, overview, wide, now))
    for pull in pulls.values():
        rows += [_pull(pull, rates, wide), *_reason(pull.failure, width)]
    if not overview.models and not overview.pulls:
        rows.append(Item(None, (("no models here; p pulls one", "dim"),)))
    rows += [BLANK, heading("Apps", len(overview.apps) or None)]
    for row in overview.apps:
        detail = row.state.detail if row.state.state == "failed" and not row.missing else ""
        rows += [_app(row, overview.free, wide, now), *_reason(row.problem or detail or "", width)]
    if not overview.apps:
        rows.append(Item(None, (("no apps here; a launches one: its folder, or an installed one", "dim"),)))
    return rows


def _server(overview: Overview, engine: tuple[str, str]) -> list[Item]:
    """The row of the LLM server and, if there is none, what to do about it."""
    status, (device, problem) = overview.status, engine
    name: tuple[Part, ...] = (("LLM  ", "title"), LIGHTS.get(status.kind, ("·", "dim")))
    place: Part = (f" 127.0.0.1:{status.port}  ", "text")
    help_rows = [Item(None, ((f"     {safe(problem)}", "warn"),))] if problem else []
    if status.kind == "none":
        words: Part = ("no server; S starts it" if not problem else "no server", "dim")
        return [Item(None, (*name, place, words)), *help_rows]
    if status.kind == "held":
        helps = "end it, or name another port: ollama_port_override in .svc.yaml, SVC_LLM_PORT"
        held: Part = (f"held by {safe(status.holder or 'another program')}", "bad")
        return [Item(None, (*name, place, held)), Item(None, ((f"     {helps}", "warn"),))]
    if status.kind == "hung":
        hung: Part = (f"process {status.pid or '?'} does not answer; l shows its log", "warn")
        return [Item(None, (*name, place, hung))]
    taken = sum(loaded.size for loaded in overview.loaded.values())
    words_of_memory = f" · {_of(taken, overview.total)}" if overview.total else ""
    on = f" · {safe(device)}" if device and status.kind == "embedded" else ""
    words = (f"{WORDS.get(status.kind, status.kind)}{on}{words_of_memory}", "dim")
    count = len(status.leases)
    needed = "1 lease" if count == 1 else f"{count} leases" if count else "stays" if status.stays else ""
    return [Item(None, (*name, place, words), ((f"{needed} ", "dim"),) if needed else ()), *help_rows]


def _model(model: Model, overview: Overview, wide: int, now: float) -> Item:
    name, loaded = model.name.short, overview.loaded.get(str(model.name))
    parts: tuple[Part, ...]
    if loaded is not None:
        until = until_words(loaded, now)
        parts = (("loaded", "good"), (f"  ctx {loaded.context}  {until}", "dim"))
    elif overview.free is not None and model.need > overview.free:
        parts = ((unfit_words(model.need, overview.free), "warn"),)
    else:
        parts = ((safe(model.kind), "dim"),)
    start: tuple[Part, ...] = ((_name(name, wide), "text"), (f"{size(model.size):>{SIZE}}  ", "dim"))
    return Item(("model", name), (*start, *parts), text=name)


def _pull(pull: Pull, rates: Mapping[str, float], wide: int) -> Item:
    name: Part = (_name(pull.name, wide), "text")
    if pull.failure:
        parts: tuple[Part, ...] = ((f"{'':>{SIZE}}  ", "text"), ("✗ was not pulled", "bad"))
        return Item(("model", pull.name), (name, *parts), text=pull.name)
    total: Part = (f"{size(pull.total) if pull.total else '':>{SIZE}}  ", "dim")
    if not pull.total:
        return Item(("model", pull.name), (name, total, ("pulling", "accent")), text=pull.name)
    share = min(1.0, pull.completed / pull.total)
    rate = rates.get(pull.name, 0.0)
    rate_words = f"  {size(rate)}/s" if rate else ""
    present = f"  {100 * pull.known // pull.total} % known here" if pull.known else ""
    parts = (*bar(share), (f" {int(100 * share):>3} %", "text"), (rate_words, "dim"), (present, "good"))
    return Item(("model", pull.name), (name, total, *parts), text=pull.name)


def _app(row: AppRow, free: int | None, wide: int, now: float) -> Item:
    state = row.state
    parts: list[Part] = []
    match state.state:
        case "running":
            since = ago(state.since_at or "", now).removesuffix(" ago")
            parts = [(f"running {since}", "good"), (f"  {safe(state.model or '')}", "dim")]
            if state.page:
                parts.append((f"  {safe(state.page)}", "dim"))
        case "pulling" if state.pulled and state.pulled[1]:
            share = min(1.0, state.pulled[0] / state.pulled[1])
            parts = [*bar(share), (f" {int(100 * share):>3} %", "text"), ("  pulls its model", "dim")]
        case "starting" | "pulling":
            parts = [(state.state, "accent")]
        case "failed":
            parts = [("✗ failed", "bad")]
        case "ended":
            parts = [(f"ended with {state.code}", "bad" if state.code else "dim")]
        case _:
            parts = [(safe(state.detail or "stopped"), "dim")]
    if row.problem:
        parts = [("✗ cannot be launched", "bad")]
    lacks = [f"needs {safe(', '.join(row.missing))}"] if row.missing else []
    lacks += [unfit_words(row.need, free)] if row.need and free is not None else []
    first: tuple[Part, ...] = tuple((f"{words}  ", "warn") for words in lacks)
    return Item(("app", state.id), ((f"{_name(state.id, wide)}  ", "text"), *first, *parts), text=state.id)


def _reason(words: str, width: int) -> list[Item]:
    """The reason for a failure as rows of at most `width` columns; [] for ""."""
    if not words:
        return []
    rows = folded(((safe(words), "dim"),), max(20, width - 6))
    return [Item(None, (("    ", "text"), *row)) for row in rows]


def bar(share: float) -> tuple[Part, Part]:
    """A bar whose full part is the `share` (0 to 1) of it, as (full part, empty part)."""
    full = int(BAR * share)
    return ("▒" * full, "accent"), ("·" * (BAR - full), "dim")


def until_words(loaded: Loaded, now: float) -> str:
    """When a model is unloaded, in words: `until 14:30` in this machine's time, or `stays loaded`."""
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
    """A number of bytes in GiB, as a number without unit; with one decimal below ten."""
    number = count / (1 << 30)
    if not count:
        return "0"
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def _of(taken: int, total: int) -> str:
    return f"{gib(taken)} of {gib(total)} GiB"


def _name(name: str, wide: int) -> str:
    """The name of a model in its column, `wide` cells wide. A name that is too long is cut at its start,
    since models differ by their tags at the end."""
    words = safe(name)
    return f"{words if len(words) <= wide else '…' + words[1 - wide :]:<{wide}}"
