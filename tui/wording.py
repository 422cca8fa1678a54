"""Adapts sentences of svc to the app. A command that can run in the app is named as the user types it there:
`:login` instead of `svc login`."""

from __future__ import annotations

import re

# The first words of the commands in the app's table.
COMMANDS = (
    *("advisories", "app", "auth", "billing", "blame", "cloud", "conflicts", "diff", "doc", "grep", "inbox"),
    *("issue", "label", "llm", "log", "login", "logout", "merge", "org", "pr", "pull", "push", "queue"),
    *("repo", "resolve", "restore", "revert", "show", "status", "switch", "upgrade", "version", "watch"),
    "watcher",
)
SHELL_ONLY = ("auth device pair", "llm run", "llm serve")  # what the app does not run of them
_COMMAND = rf"svc (?!(?:{'|'.join(SHELL_ONLY)})\b)(?=(?:{'|'.join(COMMANDS)})\b)"
_MEANT = re.compile(r"did you mean: svc ([a-z-]+(?: [a-z-]+)*)$")
_HINT = re.compile(rf"\b(run|see): {_COMMAND}")
_MEANS = re.compile(rf"(?<=\w)(?<!type): {_COMMAND}")  # what somebody has to type is for a terminal
_NAMED = re.compile(rf"(?<![\w/.-])(?<!type: ){_COMMAND}")

_UNREACHED = re.compile(
    r"cannot reach \w+://(?P<host>\S+) \((?:\[Errno -?\d+\] )?(?P<why>[^()]*)\); check .*", re.S
)
_SILENT = re.compile(r"^\w+://(\S+) did not answer, nor .*", re.S)

UNSEEN = (
    "never read on this machine, and the server does not answer; it comes by itself once the server answers"
)
UNANSWERED = "◐ never read on this machine, and the server has not answered yet"


def unread_words(state: str) -> str:
    """Returns a sentence for a pane whose content could not be read. `state`: that of the connection."""
    return UNSEEN if state == "offline" else "not read; r asks again"


def is_unreached(detail: str) -> bool:
    """Returns whether the detail of an error says that the server was not reached."""
    return any(pattern.match(detail) for pattern in (_UNREACHED, _SILENT))


def reason_unreached(detail: str) -> str:
    """Returns why the server is not reached, in a few words, without what to do about it on a command line.
    The app asks again by itself.

    reason_unreached("cannot reach http://a.example ([Errno 111] Connection refused); check the address …")
    """
    refused = _UNREACHED.match(detail)
    if refused is not None:
        return f"cannot reach {refused['host']} ({refused['why'][:1].lower()}{refused['why'][1:]})"
    return _SILENT.sub(r"\1 does not answer", detail)


def in_app(sentence: str) -> str:
    """Returns a sentence in which the commands of svc are named as the user types them in the app.

    in_app("sign in first; run: svc login")  # sign in first; run :login
    in_app("sign in: svc login")  # sign in: run :login
    """
    sentence = sentence.replace("run the command again", "try again")  # no command was typed
    sentence = _MEANT.sub(r"did you mean :\1?", sentence)
    return _NAMED.sub(":", _MEANS.sub(": run :", _HINT.sub(r"\1 :", sentence)))
