"""A conversation with a model of the local LLM server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe
from localstore.models.errors import ModelMissing
from localstore.models.names import ModelName
from localstore.models.store import Models
from svc.flows.llm.talk import Server

_OPTIONS = (
    "frequency_penalty",
    "min_p",
    "num_ctx",
    "num_keep",
    "num_predict",
    "presence_penalty",
    "repeat_last_n",
    "repeat_penalty",
    "seed",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
)


class Conversation:
    """A chat with a model: its messages, and the settings for answers."""

    def __init__(self, server: Server, model: ModelName) -> None:
        self.server = server
        self.model = model
        self.messages: list[dict[str, str]] = []
        self.options: dict[str, Any] = {}
        self.system = ""
        self.format: Any = None
        self.keep_alive: str | None = None
        self.think: bool | None = None
        self.last: dict[str, Any] = {}

    def say(self, text: str) -> Iterator[tuple[str, bool]]:
        """Send a message, and yield (piece of the answer, whether the piece is the model's thinking). If the
        caller stops early, the model stops, and the partial answer is kept. If the request fails, the message
        is removed from the chat and ServerFailed is raised."""
        self.messages.append({"role": "user", "content": text})
        system = [{"role": "system", "content": self.system}] if self.system else []
        body: dict[str, Any] = {"model": str(self.model), "messages": [*system, *self.messages]}
        body["options"] = self.options
        for name in ("format", "keep_alive", "think"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        pieces: list[str] = []
        finished = False
        try:
            with closing(self.server.stream("/api/chat", body)) as lines:  # type: ignore[type-var]
                for line in lines:
                    message = line.get("message") or {}
                    if message.get("thinking"):
                        yield str(message["thinking"]), True
                    if message.get("content"):
                        pieces.append(str(message["content"]))
                        yield pieces[-1], False
                    if line.get("done"):
                        self.last, finished = line, True
        finally:
            if pieces or finished:
                self.messages.append({"role": "assistant", "content": "".join(pieces)})
            else:
                self.messages.pop()

    def set(self, words: str) -> str:
        """Carry out the line `/set WORDS` that the user typed. Returns a text that describes the new setting.
        Raises UsageError if there is no such setting."""
        what, _, rest = words.strip().partition(" ")
        rest = rest.strip()
        if what == "system":
            self.system = rest.strip('"')
            return f"system: {self.system or 'none'}"
        if what == "format":
            self.format = "json" if rest == "json" else None
            return f"format: {self.format or 'none'}"
        if what in ("think", "nothink"):
            self.think = what == "think"
            return f"think: {self.think}"
        name, _, value = (rest if what == "parameter" else words.strip()).partition(" ")
        if name not in _OPTIONS or not value.strip():
            raise UsageError(
                f"/set takes system TEXT, format json, think, nothink, or one of {', '.join(_OPTIONS)} "
                f"with a value; not '{terminal_safe(words[:60])}'"
            )
        self.set_option(name, value.strip())
        return f"{name}: {self.options[name]}"

    def set_option(self, name: str, value: str) -> None:
        """Set an option of the model. If the option is `stop`, the value is added to the earlier ones. Raises
        UsageError if there is no such option or the value is invalid."""
        if name not in _OPTIONS:
            raise UsageError(
                f"no option is called '{terminal_safe(name[:60])}'; there are {', '.join(_OPTIONS)}"
            )
        if name == "stop":
            self.options["stop"] = [*self.options.get("stop", []), value.strip('"')]
            return
        try:
            number = msgspec.json.decode(value.encode())
        except msgspec.MsgspecError:
            number = None
        if not isinstance(number, (int, float)) or isinstance(number, bool):
            raise UsageError(f"{name} is a number")
        self.options[name] = number


def bring(server: Server, models: Models, name: ModelName) -> None:
    """Make sure that the server has the model. A server that svc did not start may lack a model that svc has
    installed; the model is then uploaded. Raises ModelMissing if svc has not installed the model either."""
    names = {
        str(model.get("name"))
        for model in server.get("/api/tags").get("models") or []
        if isinstance(model, dict)
    }
    if str(name) in names:
        return
    installed = models.find(name)
    models.files_to_load(installed)
    digests = {}
    for number, digest in enumerate(installed.record.digests, 1):
        if not server.has_blob(digest):
            server.send_blob(digest, models.blob(digest))
        digests[f"file-{number}.gguf"] = f"sha256:{digest}"
    for line in server.stream("/api/create", {"model": str(name), "files": digests}):
        if line.get("status") == "success":
            return
    raise ModelMissing(name.short)
