"""Turns suggested lines into a seal: the server prepares the seal, this machine computes it itself, and then
signs it.

The server says where the lines of a thread are now. This is checked, too: in the verified seals, the lines to
be replaced must be the lines for which the suggestion was made."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core import seal as seals
from localstore.core.diff import anchors
from localstore.core.diff.suggestions import Suggested, apply_suggestions, message
from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.errors import ServerMisbehaved
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.proposal import Proposal
from localstore.core.model.seal import PreparedSeals
from localstore.core.model.thread import Thread
from localstore.core.paths import terminal_safe
from localstore.record.database import SealedFile
from localstore.sync import verify
from svc.api import Api
from svc.flows.proposal.merging import VerifiedObjects, payload_of


def signature(
    api: Api,
    repo_id: str,
    proposal: Proposal,
    threads: Sequence[Thread],
    text: str | None,
    prepared: PreparedSeals,
    key: DeviceKey,
    me: str,
) -> str:
    """Check the seal that the server prepared from these suggestions, and return its signature. `text` is the
    message that the user wants. `me` is the id of the user's account. If the seal differs from the one that
    this machine computes, raises ServerMisbehaved and signs nothing."""
    if len(prepared.seals) != 1:
        raise _mismatch("number of seals")
    checked = VerifiedObjects(api, repo_id)
    changed = _suggested_files(checked, proposal.head_seal, threads)
    files = {**checked.files(proposal.head_seal), **changed}
    root = verify.content_digest(files, unb64u(prepared.tree_key, 32), checked.opaque(proposal.head_seal))
    prepared_seal = prepared.seals[0]
    raw, payload = unb64u(prepared_seal.bytes), payload_of(prepared_seal.bytes)
    authors = [thread.author.handle or thread.author.id for thread in threads if thread.author.id != me]
    expected = {
        "repository": (payload.repo_id, repo_id),
        "branch": (payload.branch, proposal.head),
        "parent": (payload.parents, [proposal.head_seal]),
        "message": (payload.message, message(proposal.number, len(threads), authors, text)),
        "device key": (payload.provenance.device_key_id, key.id),
        "tree key": (payload.tree_key_id, prepared.tree_key_id),
        "author": (payload.provenance.author, None),
        "git origin": (payload.provenance.git, None),
        "merge origin": (payload.provenance.merge, None),
        "tree": (payload.content_digest, root.hex()),
        "id": (seals.seal_id(raw), prepared_seal.digest),
    }
    wrong = [name for name, (sent, own) in expected.items() if sent != own]
    if wrong:
        raise _mismatch(", ".join(wrong))
    return b64u(key.sign(raw))


def _suggested_files(checked: VerifiedObjects, head: str, threads: Sequence[Thread]) -> dict[str, SealedFile]:
    """Return the files that suggestions change, with the suggested lines in them. The suggestions are in
    `threads`, and apply to the seal `head`."""
    files: dict[str, SealedFile] = {}
    by_path: dict[str, list[Suggested]] = {}
    for thread in threads:
        at = thread.place
        if at is None or thread.suggestion is None or at.seal_id != head:
            raise _mismatch("place")
        was = anchors.content(_text(checked, thread.seal_id, thread.path), thread.start, thread.end)
        if anchors.content(_text(checked, head, at.path), at.start, at.end) != was:
            raise _mismatch("place")
        by_path.setdefault(at.path, []).append(Suggested(at.start, at.end, thread.suggestion.text))
    for path, some in by_path.items():
        try:
            text = apply_suggestions(_text(checked, head, path), some)
        except IndexError:
            raise _mismatch("place") from None
        files[path] = SealedFile("text", digest(text), len(text))
    return files


def _text(checked: VerifiedObjects, seal: str, path: str) -> bytes:
    file = checked.files(seal).get(path)
    if file is None or file.kind != "text":
        raise _mismatch("file")
    checked.load([file.digest])
    return checked.texts[file.digest]


def _mismatch(what: str) -> ServerMisbehaved:
    return ServerMisbehaved(
        f"the server prepared suggestions with another {terminal_safe(what)}; nothing was signed"
    )
