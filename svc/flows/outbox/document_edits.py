"""Puts edits of documents into the outbox, and handles the server's answer to them.

All edits of a document on this device are joined into one action. Its value has the new content. `base` in
the value is the version on which the first of these edits was made. Once the action has been sent, its
request must not change. Edits that are made before the answer arrives are therefore stored in the member
`later`. The answer is a version of the document that includes the changes of others. If there are `later`
edits, they become a new action with that version as its `base`."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import Any

from localstore.core.document.content import encode
from localstore.core.document.edit import merge_edits
from localstore.core.errors import NotFound, SvcError
from localstore.core.model.document import PUT, Document, DocumentArchived
from localstore.home import Home
from localstore.outbox import Outbox, QueuedAction
from localstore.seen_documents import FILE, SeenDocuments

API = "/api/v1"


def path_of(document_id: str) -> str:
    """Return the path under which the outbox stores the edits of this document."""
    return PUT.target(id=document_id).removeprefix(API)


def space_of(account: str, origin: str) -> str:
    """Return the name under which `seen_documents.db` stores an account's documents on a server."""
    return f"{account}@{origin}"


def value_of(old: Document, content: Any, title: str | None) -> dict[str, Any]:
    """Return what the outbox stores for an edit of the document `old`. `title` is the new title, or None to
    keep the old one."""
    value = {"content": content, "base": old.frontier, "known_title": title or old.title}
    return value if title is None else {**value, "title": title}


def latest(value: dict[str, Any]) -> dict[str, Any]:
    """Return the state of the document after all edits in an action's value: its `content` and, if it was
    changed, its `title`."""
    newest = {**value, **value.get("later", {})}
    return {name: newest[name] for name in ("content", "title") if name in newest}


def add_edit(action: QueuedAction, content: Any, title: str | None) -> dict[str, Any]:
    """Return what the outbox stores for a document after one more edit. `action` has the earlier edits.
    `content` is the new content. `title` is the new title, or None to keep the title."""
    edit = {"content": content} if title is None else {"content": content, "title": title}
    named = {} if title is None else {"known_title": title}
    if not action.attempts:
        return {**action.value, **edit, **named}
    return {**action.value, **named, "later": {**action.value.get("later", {}), **edit}}


def join_edits(value: dict[str, Any]) -> dict[str, Any]:
    """Join the `later` edits of an action into its first edit. `value` is the value of an action that the
    server did not carry out. Returns the value to send again."""
    later = value.get("later", {})
    return {**{name: member for name, member in value.items() if name != "later"}, **later}


def following(value: dict[str, Any], answer: Document) -> dict[str, Any] | None:
    """Return the value of the action that sends the `later` edits, after the server has answered the first
    edit. Returns None if nothing is left to send. Raises TooLarge, DocumentDamaged."""
    later = value.get("later")
    if later is None:
        return None
    content, title = merge_edits(value["content"], answer.content, later["content"]), later.get("title")
    if encode(content) == encode(answer.content) and title in (None, answer.title):
        return None
    return value_of(answer, content, title)


def finish(outbox: Outbox, home: Home, action: QueuedAction, answer: Document) -> None:
    """Handle the server's answer to an edit of a document. The document is stored for reading offline. Edits
    that were made since the request was sent (`later`) become the next action."""
    # First this: a command that finds the action gone goes on from here. An older version is as good: what
    # was edited since is then an edit of that.
    with suppress(sqlite3.Error, OSError), closing(SeenDocuments(home.root / FILE)) as seen:
        seen.put(space_of(action.account, action.origin), answer)
    try:
        outbox.replace(action.id, lambda value: following(value, answer))
    except SvcError as error:
        # The first edit is carried out; the later one stands for itself, on the version that holds both.
        outbox.refuse(
            action.id,
            error.code,
            explain_refusal(error, action),
            lambda value: {**join_edits(value), "base": answer.frontier},
        )


def explain_refusal(error: SvcError, action: QueuedAction) -> str:
    """Return a sentence that says why the server refused an edit, and what to do."""
    document_id = action.path.rpartition("/")[2]
    if isinstance(error, DocumentArchived):
        return f"{error.detail}, then: svc queue retry {action.id[:12]}"
    gone = isinstance(error, NotFound)
    reason = f"there is no document {document_id}" if gone else error.detail or error.title
    return f"{reason}; what you wrote: svc doc view {document_id} --queued"
