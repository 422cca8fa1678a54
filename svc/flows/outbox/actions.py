"""Queues actions and sends them later, in order.

An action stores a request for later. `queueable.ACTIONS` lists the endpoints whose requests can be queued.
The path of an action is the path of its request without `/api/v1`. If the request creates something, such as
a comment, `/+` is added to the path. The value of an action is the body of its request, True if there is no
body, or None for a deletion.

    outbox = open_outbox(home)
    queue = Queue(outbox, session, about="alice/notes")
    queue.put(issue.COMMENT, CommentBody(body="Seen"), id=repo.id, n="41")
    report = replay(outbox, home, lambda origin, account: api)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import structs

from localstore import outbox as outboxes
from localstore.core.endpoint import Endpoint
from localstore.core.errors import (
    Cancelled,
    ClientError,
    EditionLacks,
    QuotaExceeded,
    RateLimited,
    ServerMisbehaved,
    ServerUnreachable,
    SvcError,
    Unauthorized,
    UsageError,
)
from localstore.disk_errors import translated_disk_errors
from localstore.folder.lock import AlreadyLocked, hold_lock
from localstore.home import Home
from localstore.outbox import Folding, Outbox, QueuedAction
from svc.api import Api
from svc.flows.outbox.spoken import VERDICTS_GIVEN, say_changes, say_effect, spoken_members
from svc.http.checked import require_valid
from svc.http.session import Session
from svc.http.target import full_target

if TYPE_CHECKING:
    from svc.flows.outbox.queueable import Action

API = "/api/v1"
ADDS = "/+"
FINAL = (EditionLacks, QuotaExceeded)  # which nothing but the user can change
SENDING_SECONDS = 10.0  # that a command waits for another that sends the actions it needs


class Call(NamedTuple):
    """The request that sends an action of the outbox."""

    action: Action
    path: dict[str, str]
    query: dict[str, str]
    body: msgspec.Struct | None
    local: dict[str, Any]  # what the entry says beside its body

    @property
    def words(self) -> str:
        members = {} if self.body is None else structs.asdict(self.body)
        values = {**members, **spoken_members(members), **self.local, **self.query, **self.path}
        of = self.action.changed.format_map(values)
        return (say_changes(members, of) if of else "") or self.action.words.format_map(values)

    @property
    def done(self) -> str:
        """What is so once the request was carried out, in one sentence without a full stop. "" if that needs
        no words, or if nothing of it can be described."""
        members = {} if self.body is None else structs.asdict(self.body)
        changes = [words for name, value in members.items() if (words := say_effect(name, value))]
        if "{changes}" in self.action.done and not changes:
            return ""
        spoken = (
            {"verdict": VERDICTS_GIVEN.get(str(members.get("verdict")), "")} if "verdict" in members else {}
        )
        text = self.action.done.format_map(
            {**members, **spoken, **self.local, **self.query, **self.path, "changes": ", ".join(changes)}
        )
        return text[:1].upper() + text[1:]


class Queued(Exception):  # no error: the action waits
    """Raised when an action was put into the outbox instead of being sent. `entry` is the action."""

    def __init__(self, entry: QueuedAction) -> None:
        super().__init__(entry.path)
        self.entry = entry


class Queue:
    """Puts actions about one repository into the outbox, for the account of a session. `about` is
    OWNER/NAME."""

    def __init__(self, outbox: Outbox, session: Session, about: str = "") -> None:
        self._outbox, self._session, self._about = outbox, session, about

    def put(
        self, endpoint: Endpoint[Any], body: Any = None, query: Mapping[str, Any] | None = None, **path: str
    ) -> QueuedAction:
        """Put an action into the outbox, and return it. Raises UsageError if it is invalid or cannot be
        queued, ClientError if the outbox is full, DiskError if its disk is."""
        from svc.flows.outbox.queueable import ACTIONS  # the models of all that can be queued

        action = next((candidate for candidate in ACTIONS if candidate.endpoint == endpoint), None)
        if action is None:
            raise UsageError("this cannot be queued; run it without --queue")
        value: Any = None if endpoint.method == "DELETE" else True
        if isinstance(body, msgspec.Struct):
            value = _members(require_valid(body))
        place = endpoint.target(**path).removeprefix(API) + (ADDS if endpoint.method == "POST" else "")
        session = self._session
        folding: Folding = "never" if action.apart else "whole" if endpoint.method == "PUT" else "members"
        about = "" if place.startswith("/documents") else self._about
        try:
            with _disk_errors(self._outbox.file):
                return self._outbox.add(
                    session.origin,
                    session.user_id,
                    session.handle or "",
                    about,
                    full_target(place, query),
                    value,
                    folding,
                )
        except OverflowError:
            raise ClientError(f"{outboxes.KEPT} actions wait already; see: svc queue list") from None

    def hold(
        self, endpoint: Endpoint[Any], body: Any, query: Mapping[str, Any], path: dict[str, str]
    ) -> NoReturn:
        """Put the action into the outbox, then raise Queued. `Http.hold` is set to this method so that
        requests are queued instead of sent."""
        raise Queued(self.put(endpoint, body, query, **path))


class SentByAnother(ClientError):
    """Raised if another process is sending the outbox at this moment, and so sends these actions, too."""


class Report(msgspec.Struct):
    """The result of sending the queued actions. `sent` and `refused` are actions. `stopped` maps (server,
    account) to the reason why the other actions of this account were not sent. `numbers` maps the id of a
    sent action to the number of the issue or proposal that the action made."""

    sent: list[QueuedAction] = msgspec.field(default_factory=list)
    refused: list[QueuedAction] = msgspec.field(default_factory=list)
    stopped: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    numbers: dict[str, int] = msgspec.field(default_factory=dict)


def open_outbox(home: Home) -> Outbox:
    file = home.root / outboxes.FILE
    with _disk_errors(file):
        return Outbox(file)


@contextmanager
def using_outbox(home: Home) -> Iterator[Outbox]:
    """A context with the outbox of this machine. An error of its disk is a DiskError."""
    file = home.root / outboxes.FILE
    with _disk_errors(file), closing(Outbox(file)) as outbox:
        yield outbox


def _disk_errors(file: Path) -> AbstractContextManager[None]:
    return translated_disk_errors(file.parent, file, "move it away to begin anew")


def has_entries(home: Home) -> bool:
    """Return whether there may be queued actions. Looks only whether the outbox's file exists, without
    opening the database."""
    return (home.root / outboxes.FILE).exists()


def call_of(entry: QueuedAction) -> Call:
    """Return the request that sends this action. Raises ClientError if a later version of svc queued the
    action."""
    from svc.flows.outbox.queueable import ACTIONS

    place, _, query = entry.path.partition("?")
    adds = place.endswith(ADDS)
    target = API + place.removesuffix(ADDS)
    methods = ("POST",) if adds else ("DELETE",) if entry.value is None else ("PATCH", "PUT")
    for action in ACTIONS:
        match = _pattern(action.endpoint.path).fullmatch(target)
        if match is None or action.endpoint.method not in methods:
            continue
        body, local = None, {}
        if action.endpoint.body is not None and isinstance(entry.value, dict):
            local = {name: entry.value.get(name, "") for name in action.local}
            sent = {name: value for name, value in entry.value.items() if name not in local}
            body = msgspec.convert(sent, action.endpoint.body)
        path = {name: unquote(text) for name, text in match.groupdict().items()}
        return Call(action, path, dict(parse_qsl(query, keep_blank_values=True)), body, local)
    raise ClientError(f"a later version queued the action {entry.path}; upgrade to send it")


def describe_action(entry: QueuedAction) -> str:
    """Return a few words about an action, such as `comment on #12`. If the action cannot be read, returns its
    path."""
    try:
        return call_of(entry).words
    except (ClientError, msgspec.ValidationError):
        return entry.path


def describe_effect(entry: QueuedAction) -> str:
    """Return in one sentence what is so once an action was carried out, such as `Label bug created`. Returns
    "" if the screens show that by themselves."""
    try:
        return call_of(entry).done
    except (ClientError, msgspec.ValidationError):
        return ""


def text_of(entry: QueuedAction) -> str:
    """Return the text of the comment that an action adds; "" if it adds no comment."""
    body = entry.value.get("body") if isinstance(entry.value, dict) else None
    return body if isinstance(body, str) and entry.path.endswith(f"/comments{ADDS}") else ""


def replay(
    outbox: Outbox,
    home: Home,
    connect: Callable[[str, str], Api],
    on_action: Callable[[QueuedAction, SvcError | None], None] = lambda _entry, _error: None,
    only: tuple[str, str, str] | None = None,
) -> Report:
    """Send the queued actions of each account, oldest first. Returns a report of what was sent and refused.

    An action that the server refuses stays in the outbox as refused. If an action gets no answer, the other
    actions of its account stay queued. Raises ClientError while another process is sending.

    `connect` is called with (origin, account) and returns the API; it raises Unauthorized if that account
    must sign in. `on_action` is called with each action and, if it was refused, its error. `only` limits the
    call to the actions of one (origin, account, path). They must not depend on actions queued before them.
    With `only`, the call waits while another process is sending."""
    report = Report()
    try:
        with hold_lock(home.root / outboxes.LOCK, "svc queue", 0.0 if only is None else SENDING_SECONDS):
            for origin, account in _accounts(outbox) if only is None else [only[:2]]:
                path = None if only is None else only[2]
                try:
                    api = connect(origin, account)
                    _replay_account(outbox, home, api, (origin, account, path), report, on_action)
                except (Unauthorized, ServerUnreachable) as error:
                    report.stopped[origin, account] = error.detail
    except AlreadyLocked as error:
        raise SentByAnother(
            f"another app or command sends the queued actions at this moment ({error.holder})"
        ) from None
    return report


def _accounts(outbox: Outbox) -> Iterator[tuple[str, str]]:
    waiting = (entry for entry in outbox.list() if entry.state != "refused")
    return iter(dict.fromkeys((entry.origin, entry.account) for entry in waiting))


def _replay_account(
    outbox: Outbox,
    home: Home,
    api: Api,
    which: tuple[str, str, str | None],
    report: Report,
    on_action: Callable[[QueuedAction, SvcError | None], None],
) -> None:
    """Send the queued actions of one account, and add the results to `report`. `which` is (origin, account,
    path of the actions). If the path is None, all actions of the account are sent."""
    from localstore.core.model import document, issue, proposal
    from svc.flows.outbox import document_edits

    while (entry := outbox.next(*which)) is not None:
        try:
            call = call_of(entry)
        except (ClientError, msgspec.ValidationError) as error:
            _refuse(outbox, entry, ClientError(str(error)), report, on_action)
            continue
        if not outbox.count_attempt(entry.id):
            continue
        try:
            answer = api.http.send_under(entry.id, call.action.endpoint, call.body, call.query, call.path)
        except SvcError as error:
            if isinstance(error, Cancelled):
                raise
            if _may_pass(error):
                report.stopped[which[:2]] = error.detail or error.title
                return
            _refuse(outbox, entry, error, report, on_action)
            continue
        if call.action.endpoint == document.PUT:
            document_edits.finish(outbox, home, entry, answer)
        else:
            outbox.remove(entry.id)
        report.sent.append(entry)
        if call.action.endpoint in (issue.CREATE, proposal.CREATE):
            report.numbers[entry.id] = answer.number
        on_action(entry, None)


def _refuse(
    outbox: Outbox,
    entry: QueuedAction,
    error: SvcError,
    report: Report,
    on_action: Callable[[QueuedAction, SvcError | None], None],
) -> None:
    from svc.flows.outbox import document_edits

    if entry.path.startswith("/documents/") and not entry.path.endswith(ADDS):
        error.detail = document_edits.explain_refusal(error, entry)
        outbox.refuse(entry.id, error.code, error.detail, document_edits.join_edits)
    else:
        outbox.refuse(entry.id, error.code, error.detail or error.title)
    report.refused.append(entry)
    on_action(entry, error)


def _may_pass(error: SvcError) -> bool:
    """Return whether the same request may succeed later. That is so if there was no answer, if the server is
    overloaded, or if the session has ended."""
    waits = (ServerUnreachable, ServerMisbehaved, RateLimited, Unauthorized)
    return isinstance(error, waits) or (error.status >= 500 and not isinstance(error, FINAL))


def _members(body: msgspec.Struct) -> dict[str, Any]:
    """Return the members of a request's body that are set. A member is not set if it is None or an empty
    list. Only a member that may be any JSON value, such as the content of a document, is set even if it is an
    empty list."""
    values = {field.encode_name for field in structs.fields(body) if field.type is Any}
    members = msgspec.to_builtins(body)
    return {k: v for k, v in members.items() if v is not None and (v != [] or k in values)}


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return a pattern that matches the paths of requests to an endpoint. It has a group for each parameter.
    `template` is the endpoint's path."""
    pieces = re.split(r"\{([a-z0-9_]+)(\.\.\.)?\}", template)
    expression = re.escape(pieces[0])
    for name, rest, literal in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        expression += f"(?P<{name}>{'.+' if rest else '[^/]+'})" + re.escape(literal)
    return re.compile(expression)
