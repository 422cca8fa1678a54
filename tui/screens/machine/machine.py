"""The screen "this machine": the local LLM server, models, downloads of models (pulls) and apps. Their state
is read again about every second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from localstore.core.errors import SvcError, UsageError
from localstore.models.log import tail
from localstore.models.names import parse
from svc.flows.apps.place import App
from svc.flows.models.local import file_at, is_file
from tui.actions import Action
from tui.asked import DONE
from tui.client import sentence
from tui.machine import Machine
from tui.screens.base import READING_SECONDS
from tui.screens.machine import details, work
from tui.screens.machine.log import LogScreen, plain
from tui.screens.machine.reading import RUNNING, AppRow, MachineState, Model, Pull, Reading, engine_words
from tui.screens.machine.rows import SERVER, rows_of
from tui.screens.split import SPLIT_ACTIONS, SplitScreen
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence

T = TypeVar("T")
EVERY = 1.0  # seconds between two readings, while this screen is shown
SAMPLES = 5  # readings over which the rate of a pull is computed
TAIL = 60  # lines of a log beside a row
NO_LOG = "the log is empty; an app that has a terminal prints there, and not in the log"
NO_SERVER_LOG = "the log is empty; S on the screen before starts the server"


class _Sample(NamedTuple):
    """A measurement of a pull. `completed`: how many bytes had arrived. `at`: when, by the monotonic
    clock."""

    at: float
    completed: int


class MachineScreen(SplitScreen):
    LIST = "machine"
    SHARE = 46
    WAITING = "reading what is here"
    ACTIONS = (
        Action("open", ("enter",), "show", "svc llm show {model}", footer=True),
        Action("chat", ("c",), "chat", "svc llm run {model}", footer=True),
        Action("launch_app", ("a",), "launch", "svc app launch {app}", footer=True),
        Action("open_page", ("o",), "its page", "svc app open {app}", footer=True),
        Action("pull_model", ("p",), "pull", "svc llm pull {model}", footer=True),
        Action("unload", ("u",), "unload", "svc llm stop {model}", footer=True),
        Action("toggle_server", ("S",), "server", "svc llm start", footer=True),
        Action("remove_here", ("x",), "end, remove", "svc llm rm {model}", footer=True),
        Action("server_log", ("l",), "log of the server", "svc llm logs"),
        *SPLIT_ACTIONS,
    )

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self._reading: Reading | None = None
        self._overview: MachineState | None = None
        self._engine = ("", "")
        self._rows: list[Item] = []
        self._samples: dict[str, list[_Sample]] = {}
        self._is_reading = threading.Event()
        self._tails: dict[Hashable, list[str]] = {}  # the end of the log of a row, by its key

    def title_parts(self) -> Sequence[Part]:
        return ((" This machine", "title"), ("  models and apps", "dim"))

    def make_title(self) -> tuple[Part, ...]:
        return (("This machine", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self._look()
        self._ask_engine()
        self.set_interval(EVERY, self._look)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._look()

    def do_refresh(self) -> None:
        """Read the state of the machine again, including which processors the engine can use."""
        self._look()
        self._ask_engine()

    def news(self) -> None:
        """Does nothing, because events of the server change nothing on this screen."""

    # --- reading

    def _look(self) -> None:
        """Read the state of the machine on a thread. Does nothing while it is being read already, or while
        another screen is in front."""
        if not self.in_front or self._is_reading.is_set():
            return
        self._is_reading.set()
        folder = self._folder

        def read() -> MachineState:
            try:
                if self._reading is None:
                    self._reading = Reading(self._machine.root, self._machine.environment, folder)
                return self._reading.read()
            finally:
                self._is_reading.clear()

        self._on_thread(read, self._take_state)

    def _ask_engine(self) -> None:
        self._on_thread(lambda: engine_words(self._machine.environment), self._learn)

    def _learn(self, engine: tuple[str, str]) -> None:
        self._engine = engine
        self.paint()

    def _take_state(self, overview: MachineState) -> None:
        self._overview = overview
        now = time.monotonic()
        self._samples = {
            pull.name: [*self._samples.get(pull.name, ())[-SAMPLES:], _Sample(now, pull.completed)]
            for pull in overview.pulls
            if pull.total and not pull.failure
        }
        self.paint()

    def paint(self) -> None:
        if self._overview is None or not self.is_attached:
            return
        rows = rows_of(self._overview, self._rates(), self._engine, self.svc.clock(), self.list_width)
        if rows != self._rows:
            self._rows = rows
            self.listed.show(sequence(rows))
        self.renew()
        self.show_keys()

    def _rates(self) -> dict[str, float]:
        """Returns the rate of each pull in bytes per second, by name."""
        return {name: _rate(samples) for name, samples in self._samples.items()}

    # --- the preview

    def preview_of(self, key: Hashable) -> None:
        self._paint_preview(key)
        file = self._log_of(key)
        if file is not None:
            self._on_thread(lambda: plain(tail(file, TAIL)), lambda lines: self._learn_log(key, lines))

    def _learn_log(self, key: Hashable, lines: list[str]) -> None:
        if self.is_attached and lines != self._tails.get(key, []):
            self._tails = {key: lines}
            self._paint_preview(key)

    def _log_of(self, key: Hashable) -> Path | None:
        """Returns the path of the log that belongs to the row with this key. Returns None if the row has no
        log."""
        if self._reading is None or not isinstance(key, tuple):
            return None
        if key == SERVER:
            return self._reading.server_log()
        return self._reading.app_log(str(key[1])) if key[0] == "app" else None

    def _paint_preview(self, key: Hashable) -> None:
        """Show what is known about the row with this key. Does nothing if the cursor has left the row."""
        overview = self._overview
        if overview is None or key != self.listed.key:
            return
        room, now = (self.preview_width, self.preview.size.height), self.svc.clock()
        width, log = room[0], self._tails.get(key, [])
        pull, row, model = self._pull, self._app_row, self._model
        if key == SERVER:
            rows = details.server_rows(overview, self._engine, log, room)
        elif row is not None:
            rows = details.app_rows(row, log, overview.free, now, room)
        elif pull is not None:
            rows = details.pull_rows(pull, self._rates().get(pull.name, 0.0), width)
        elif model is not None:
            rows = details.model_rows(model, overview, now, width)
        else:
            return
        self.show_preview(key, "local LLM server" if key == SERVER else safe(str(self._row_name)), rows)

    # --- what is under the cursor

    @property
    def _folder(self) -> Path:
        return self.svc.place.folder or Path.cwd()

    @property
    def _row_name(self) -> str:
        """The name of the model or app under the cursor, "" if the row is neither."""
        key = self.listed.key
        return str(key[1]) if isinstance(key, tuple) else ""

    def _under_cursor(self, kind: str) -> str:
        """Returns the name of the model or app under the cursor. `kind`: which of the two is wanted. Returns
        "" if the row is not of that kind."""
        key = self.listed.key
        return self._row_name if isinstance(key, tuple) and key[0] == kind else ""

    def facts(self) -> dict[str, str]:
        named = {kind: self._under_cursor(kind) for kind in ("model", "app")}
        return {kind: name for kind, name in named.items() if name}

    @property
    def _pull(self) -> Pull | None:
        """The pull (download of a model) under the cursor, None if the row is no pull."""
        name = self._under_cursor("model")
        pulls = self._overview.pulls if self._overview is not None else []
        return next((pull for pull in pulls if pull.name == name), None)

    @property
    def _app_row(self) -> AppRow | None:
        """The app under the cursor, None if the row is no app."""
        name = self._under_cursor("app")
        rows = self._overview.apps if self._overview is not None else []
        return next((row for row in rows if row.state.id == name), None)

    @property
    def _model(self) -> Model | None:
        """The installed model under the cursor, None if the row is no such model."""
        name = self._under_cursor("model")
        models = self._overview.models if self._overview is not None else []
        return next((model for model in models if model.name.short == name), None)

    def label_of(self, action: Action) -> str:
        """Returns what the key of an action does for the row under the cursor."""
        pull, row, model, overview = self._pull, self._app_row, self._model, self._overview
        kind = overview.status.kind if overview is not None else ""
        loaded = model is not None and overview is not None and str(model.name) in overview.loaded
        runs = row is not None and row.state.state in RUNNING
        match action.id:
            case "open":
                label = "show" if model is not None else "" if pull is not None else "log"
                return label if self._row_name or self.listed.key == SERVER else ""
            case "chat":
                return action.label if model is not None else ""
            case "unload":
                return action.label if loaded else ""
            case "open_page":
                return action.label if runs and row is not None and row.state.page else ""
            case "launch_app":
                return "" if runs else "launch" if row is not None else "launch an app"
            case "pull_model":
                return "pull again" if pull is not None and pull.failure else "pull a model"
            case "toggle_server":
                if self.listed.key != SERVER or kind in ("adopted", "held"):
                    return ""
                return "start" if kind == "none" else "stop"
            case "remove_here":
                if pull is not None:
                    return "forget" if pull.failure else "end the pull"
                return "remove" if model is not None else "stop" if runs else ""
        return super().label_of(action)

    def _is_here(self, name: str) -> bool:
        models = self._overview.models if self._overview is not None else []
        return any(model.name.short == name for model in models)

    def _model_here(self) -> str:
        """Returns the name of the installed model under the cursor. If there is none, shows a message and
        returns ""."""
        name = self._under_cursor("model")
        if self._is_here(name):
            return name
        self.say("put the cursor on a model that is here", "warn")
        return ""

    # --- actions

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        model, app = self._under_cursor("model"), self._under_cursor("app")
        if self.listed.key == SERVER:
            self.do_server_log()
        elif app:
            self._of_row(app, lambda: self._show_log(app))
        elif self._is_here(model):
            self.svc.run_words(["llm", "show", model])
        else:
            self.say(f"{model} is not here yet", "dim")

    def _show_log(self, app: str) -> None:
        if self._reading is not None:
            log = LogScreen(self._reading.app_log(app), f"app logs {app}", NO_LOG)
            self.app.push_screen(log)

    def do_server_log(self) -> None:
        if self._reading is not None:
            self.app.push_screen(LogScreen(self._reading.server_log(), "llm logs", NO_SERVER_LOG))

    def do_toggle_server(self) -> None:
        """Start the LLM server. If svc runs one already, ask whether to stop it, and stop it."""
        if self._overview is None:
            return
        status = self._overview.status
        match status.kind:
            case "none":
                self._carry_out(["llm", "start"], "starting the server")
            case "adopted":
                self.say("svc did not start this server, so it is not ended here", "warn")
            case "held":
                self.say(f"port {status.port} is held by {status.holder or 'another program'}", "warn")
            case _:
                count = len(status.leases)
                users = f"; {count} use it" if count > 1 else "; 1 uses it" if count else ""
                question = f"stop the local LLM server{users}?"
                self.confirm(question, lambda: self._carry_out(["llm", "stop"], "stopping the server"))

    def do_unload(self) -> None:
        name = self._model_here()
        if name and self._overview is not None:
            if str(parse(name)) in self._overview.loaded:
                self._carry_out(["llm", "stop", name], f"unloading {name}, once it has answered")
            else:
                self.say(f"{name} is not loaded", "dim")

    def do_remove_here(self) -> None:
        """Remove what is under the cursor, after asking the user: end a pull, remove a model, or stop an
        app."""
        pull, row, name = self._pull, self._app_row, self._under_cursor("model")
        if pull is not None and pull.failure:
            self._run(lambda: work.forget(self._machine, pull))
        elif pull is not None:
            who = f" (process {pull.pid})" if pull.pid else ""
            question = f"end the pull of {pull.name}{who}? what came is kept;"
            self.confirm(question, lambda: self._run(lambda: work.cancel(self._machine, pull)))
        elif name:
            question = f"remove {name} from this machine?"
            self.confirm(question, lambda: self._carry_out(["llm", "rm", name, "--yes"], f"removing {name}"))
        elif row is not None and row.state.state in RUNNING:
            id = row.state.id
            self.confirm(f"stop {id}?", lambda: self._run(lambda: work.stop(self._machine, id)))
        elif row is not None:
            self.say(f"{row.state.id} does not run", "dim")
        else:
            self.say("put the cursor on a model or an app", "warn")

    def do_pull_model(self) -> None:
        """Ask which model to pull. The prompt begins with the model under the cursor, if its name has an
        owner. On the row of an app, it begins with the first model that the app lacks."""
        row, pull, name = self._app_row, self._pull, self._under_cursor("model")
        value = row.missing[0] if row is not None and row.missing else ""
        if pull is not None or "/" in name:
            value = name
        self.ask("OWNER/NAME[:TAG] of a server or registry, or a GGUF file", self._pull_typed, value=value)

    def _pull_typed(self, typed: str) -> None:
        typed = typed.strip()
        if not typed:
            return
        try:
            if is_file(typed):
                file = file_at(self._folder, typed)
                self._carry_out(["llm", "pull", str(file)], f"taking in {file.name}")
                return
            name = parse(typed)
        except UsageError as error:
            self.say(error.detail, "warn")
            return
        self.say(f"pulling {name.short}", "dim")
        self._run(lambda: work.pull(self._machine, name, self.svc.client.origin))

    def do_chat(self) -> None:
        name = self._model_here()
        if name:
            self.svc.run_in_terminal(["llm", "run", name])
            self._look()

    def do_open_page(self) -> None:
        row = self._app_row
        if row is None:
            self.say("put the cursor on an app", "warn")
        elif row.state.state != "running":
            self.say(f"{row.state.id} does not run; a launches it", "warn")
        elif not row.state.page:
            self.say(f"{row.state.id} has no page: ready: in its launch: names none", "warn")
        else:
            words, doing = ["app", "open", row.state.id], f"opening {row.state.page}"
            self._of_row(row.state.id, lambda: self._carry_out(words, doing))

    def do_launch_app(self) -> None:
        """Launch the app under the cursor. If the row is no app, ask for the app to launch."""
        name = self._under_cursor("app")
        if name:
            self._launch(lambda: work.find_recorded(self._machine, name))
        else:
            self.ask("folder of an app, or its name", self._app_typed)

    def _app_typed(self, typed: str) -> None:
        folder = self._folder
        if typed.strip():
            self._launch(lambda: work.find(self._machine, typed.strip(), folder))

    def _launch(self, find: Callable[[], App]) -> None:
        """Launch the app that `find` returns. Unless the user has allowed its command before, the command is
        shown and has to be allowed first."""
        self._on_thread(lambda: work.prepare(self._machine, find()), self._take_offer)

    def _take_offer(self, offer: work.Offer) -> None:
        from tui.screens.machine.consent import Consent

        if not self.in_front:
            return
        if offer.allowed:
            self._start(offer)
        else:
            self.app.push_screen(Consent(offer, lambda: self._start(offer)))

    def _start(self, offer: work.Offer) -> None:
        app = self.svc
        self.say(f"launching {offer.app.id}", "dim")
        self._run(lambda: work.launch(self._machine, offer, lambda: not app.is_running))

    # --- work on threads

    def _on_thread(
        self, act: Callable[[], T], then: Callable[[T], None], failed: Callable[[str], None] | None = None
    ) -> None:
        """Call `act` on a thread, and `then` with its result. If `act` raises an error, call `failed` with a
        sentence about it. Without `failed`, show the sentence."""
        app, tell = self.svc, failed or self._show_failure

        def run() -> None:
            try:
                result = act()
            except (OSError, SvcError) as error:
                words = sentence(error)
                app.later(lambda: tell(words))
                return
            app.later(lambda: then(result))

        app.run_worker(run, thread=True, exit_on_error=False)

    def _run(self, act: Callable[[], str]) -> None:
        """Call `act` on a thread, show the sentence that it returns, and read the state of the machine
        again."""
        self._on_thread(act, self._done)

    def _of_row(self, app: str, act: Callable[[], None]) -> None:
        """Call `act`, which runs a command on the app with the id `app`. First check that this app still
        exists, because the command names it, and its name may belong to another app now. Keys wait for the
        screen that `act` opens."""

        def go_on(_: App) -> None:
            if self.in_front:
                act()
            self.release_keys()

        def give_up(words: str) -> None:
            self.drop_keys()
            self._show_failure(words)

        self.hold_keys(READING_SECONDS)
        self._on_thread(lambda: work.find_recorded(self._machine, app), go_on, give_up)

    def _carry_out(self, words: list[str], doing: str) -> None:
        """Run a command of svc and show how it has ended. `doing`: the message while it runs."""
        self.say(doing, "dim")
        self.svc.run_beside(words, self._show_end)

    def _show_end(self, text: str, state: Part) -> None:
        """Show the last line of a command's output. `state`: how the command has ended."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        last = lines[-1].removeprefix("svc: ") if lines else ""
        self._done(last, "text" if state[0] == DONE else "bad")

    def _show_failure(self, words: str) -> None:
        if self.is_attached:
            self.say(words, "bad")

    def _done(self, words: str, role: str = "text") -> None:
        if not self.is_attached:
            return
        if words:
            self.say(words, role)
        self._look()


def _rate(samples: Sequence[_Sample]) -> float:
    """Returns the bytes per second between the first and the last measurement."""
    first, last = samples[0], samples[-1]
    seconds = last.at - first.at
    return max(0.0, (last.completed - first.completed) / seconds) if seconds > 0 else 0.0
