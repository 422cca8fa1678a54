"""Makes one seal of the head branch that applies suggestions of threads. The relay computes it, and the
caller's device signs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core import tree
from localstore.core.diff.suggestions import Suggested, apply_suggestions, message
from localstore.core.encoding import b64u, digest
from localstore.core.errors import Conflict, NotFound, TooLarge
from localstore.core.model.limits import TEXT_FILE, in_words
from localstore.core.model.merge import NotMergeable
from localstore.core.model.review import HeadMoved
from localstore.core.model.seal import PreparedSeal, PreparedSeals
from localstore.core.model.thread import SuggestionMoved, SuggestionsPrepareRequest
from localstore.core.tree import TreeEntry
from relay.base.clock import rfc3339
from relay.caller import View
from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.domain.discussion import sight
from relay.domain.discussion.rows.thread import ThreadRow
from relay.domain.history import content, sealed
from relay.domain.live.epochs import LaneTexts
from relay.domain.proposal import mergeable, placing, states
from relay.domain.proposal.applied import SUBJECT
from relay.domain.protection import protection
from relay.domain.sealing import seal
from relay.domain.sealing.payload import check_message, make_draft
from relay.domain.sealing.trees import Chain, SealWords, require_budget
from relay.memory import trees


async def prepare(view: View, number: str, body: SuggestionsPrepareRequest) -> PreparedSeals:
    """Compute one seal that applies suggestions, to be signed and sent to seals/finalize

    Raises SuggestionMoved if the lines are no longer those that were commented on. Raises SuggestionsOverlap,
    HeadMoved, BranchProtected.
    """
    if body.message is not None:
        check_message(body.message)
    sealed.require_plaintext(view)
    async with view.read() as tx:
        n = (await states.find(tx, view, number)).number
    await placing.settle(view.node, view.repo.id, n)
    async with view.read(snapshot=True) as tx:
        row = await states.find(tx, view, number)
        mergeable.require_open(row)
        if row.head_repo_id is not None:
            raise NotMergeable(
                f"the branch of #{row.number} is in another repository; make these changes there",
                blocked_by=["head_elsewhere"],
            )
        _, head = await mergeable.branches_of(tx, view, row)
        tip = mergeable.head_of(head)
        if body.expected_head not in (None, tip):
            raise HeadMoved(row.number, tip)
        key = await seal.signing_key(tx, view, body.device_key_id)
        await protection.check(tx, view, head.name, "write")
        threads = await _find_threads(tx, view, row.number, body.threads, tip)
        root = await seals.root_of(tx, view.repo.id, tip)
        chain = Chain(view, tx)
        changes, texts = await _change_files(chain, root, threads)
        made_root = await chain.update(root, changes)
        authors = [
            thread.author_handle or thread.author_id
            for thread in threads
            if thread.author_id != view.me.account_id
        ]
        statement = SealWords(message(row.number, len(threads), authors, body.message), key.id)
        seal_draft = make_draft(view, head.name, [tip], made_root, statement, changes)
        await require_budget(chain, seal_draft.root)
    subject = " ".join([SUBJECT, str(row.number), *(thread.id for thread in threads)])
    plan = seal.SealsToStore("seals", head, key, [seal_draft], subject=subject)
    expires = await seal.store(view, plan, LaneTexts(), chain.written, files=texts)
    prepared_seal = PreparedSeal(
        bytes=b64u(seal_draft.payload), digest=seal_draft.id, content_digest=seal_draft.root.hex()
    )
    return PreparedSeals(
        prepare_id=seal_draft.id,
        seals=[prepared_seal],
        expires_at=rfc3339(expires),
        tree_key=b64u(view.repo.tree_key),
        tree_key_id=view.repo.tree_key_id,
    )


async def _find_threads(tx: Tx, view: View, number: int, ids: Sequence[str], tip: str) -> list[ThreadRow]:
    """Find the threads, in the requested order. Raises NotFound for threads that the caller does not see.
    Raises Conflict for threads without a suggestion that can be applied now, and SuggestionMoved if lines
    were edited."""
    threads = [await sight.find(tx, view, number, thread_id) for thread_id in dict.fromkeys(ids)]
    for thread in threads:
        if thread.suggestion is None or thread.draft:
            raise Conflict(f"thread {thread.id} suggests no other lines, or waits for a review")
        if thread.applied_seal is not None:
            raise Conflict(f"the suggestion of thread {thread.id} is in {thread.applied_seal[:12]} already")
    moved = [thread.id for thread in threads if thread.at_seal != tip or thread.how == "edited"]
    if moved:
        raise SuggestionMoved(
            f"the lines of {', '.join(moved[:5])} were edited since; nothing was applied; "
            f"see: svc pr threads {number}",
            moved,
        )
    return threads


async def _change_files(
    chain: Chain, root: bytes | None, threads: Sequence[ThreadRow]
) -> tuple[dict[str, TreeEntry | None], dict[bytes, bytes]]:
    """Apply the suggestions of the threads to their files. Returns (entries of the changed files by path,
    their texts by digest)."""
    view, tx = chain.view, chain.inside
    paths = sorted({thread.at_path for thread in threads})
    entries = await trees.drive(tree.lookup(root, paths), chain.load, len(paths))
    changes: dict[str, TreeEntry | None] = {}
    texts: dict[bytes, bytes] = {}
    for path in paths:
        old = entries.get(path)
        if old is None or old.kind != "text" or not view.sees(path):
            raise NotFound
        text = (await content.read(view.node, tx, view.repo.id, [old.digest]))[old.digest]
        suggestions = [
            Suggested(thread.at_first, thread.at_last, thread.suggestion or "")
            for thread in threads
            if thread.at_path == path
        ]
        new = apply_suggestions(text, suggestions)
        if len(new) > TEXT_FILE:
            raise TooLarge(f"{path}: a text file holds at most {in_words(TEXT_FILE)}")
        if new != text:
            texts[digest(new)] = new
            changes[path] = TreeEntry("text", digest(new), len(new))
    if not changes:
        raise Conflict("the lines are as suggested already, so there is nothing to seal")
    return changes, texts
