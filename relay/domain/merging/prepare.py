"""The first half of a merge: computes the trees and the bytes to sign. Meanwhile others can write to the
repository without waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import msgspec

from localstore.core import seal as seals
from localstore.core.encoding import b64u
from localstore.core.errors import Invalid
from localstore.core.model.merge import (
    BaseMoved,
    MergePrepareRequest,
    MergeSeal,
    NotMergeable,
    PreparedMerge,
    Preview,
    PreviewRequest,
    Strategy,
    UpdatePrepareRequest,
)
from localstore.core.model.ref import NoBranch
from localstore.core.model.seal import SealChange
from localstore.core.seal import MergeOrigin
from relay.base.clock import now_ms, rfc3339
from relay.caller import View
from relay.db import ref as refs
from relay.db.engine.database import Tx
from relay.db.live.replica import KeyRow
from relay.db.ref import RefRow
from relay.db.seal import SealDraft
from relay.domain.history import sealed
from relay.domain.live.epochs import LaneTexts
from relay.domain.merging.subjects import About
from relay.domain.merging.work import (
    MergeResult,
    MergeSides,
    Ready,
    Step,
    ToWorkOut,
    Working,
    find_sides,
    require_few,
    run_with_work,
)
from relay.domain.proposal import mergeable, states
from relay.domain.protection import protection
from relay.domain.sealing import seal
from relay.domain.sealing.payload import check_message, make_draft
from relay.domain.sealing.trees import Chain, SealWords, require_budget

THREE = "--squash, --rebase or --merge"


@dataclass(slots=True, frozen=True)
class _Task:
    """A merge to prepare. `onto`: the branch that gets the seals. `number`: number of the proposal, or None
    without a proposal."""

    strategy: Strategy
    onto: RefRow
    key: KeyRow
    sides: MergeSides
    number: int | None
    message: str
    way_out: str


@dataclass(slots=True, frozen=True)
class _Drafted:
    """The unsigned seals of a merge. `chain`: has the directories of their trees. `texts`: texts that were
    merged by lines, by digest; `merged`: the paths of these texts."""

    chain: Chain
    seals: list[SealDraft]
    texts: dict[bytes, bytes]
    merged: list[str]


async def merge(view: View, number: str, body: MergePrepareRequest) -> PreparedMerge:
    """Compute the merge of a proposal, and return the bytes to sign

    Raises BaseMoved, HeadMoved, Draft, MergeConflict, NotMergeable.
    """
    if body.message is not None:
        check_message(body.message)
        if body.strategy == "rebase":
            raise Invalid("a rebase keeps the messages of its seals; omit the message", pointer="/message")
    return await run_with_work(view.node, view.me.account_id, partial(_compute_merge, view, number, body))


async def _compute_merge(view: View, number: str, body: MergePrepareRequest, ready: Ready) -> PreparedMerge:
    async with view.read(snapshot=True) as tx:
        row = await states.find(tx, view, number)
        if body.auto:
            mergeable.require_open(row)
        else:
            await mergeable.require_mergeable(tx, view, row)
        base, head = await mergeable.branches_of(tx, view, row)
        mergeable.require_heads(row, base, head, body.expected_base, body.expected_head)
        key = await seal.signing_key(tx, view, body.device_key_id)
        sides = await find_sides(tx, mergeable.head_of(base), mergeable.head_of(head))
        if sides.theirs in sides.bases:
            raise NotMergeable(
                f"{base.name} has everything of #{row.number}; close it: svc pr close {row.number}",
                blocked_by=["nothing_to_merge"],
            )
        if body.strategy is None and sides.ours not in sides.bases:
            branch = head.name if row.head_repo_id is None else f"the branch of #{row.number}"
            raise BaseMoved(
                f"{base.name} has seals that {branch} lacks; choose how to merge: {THREE}", base=base.head
            )
        if body.strategy == "merge":
            _require_enabled(view, row.number)
        titles = {"merge": f"Merge #{row.number}: {row.title}"}
        strategy: Strategy = body.strategy or "fast_forward"
        message = body.message or titles.get(strategy, f"{row.title} (#{row.number})")
        task = _Task(strategy, base, key, sides, row.number, message, _way_out(row.number, base.name))
        drafted = await _draft_seals(tx, view, task, ready)
    return await _store(view, task, About("merge", row.number, sides.theirs, strategy), drafted)


async def update(view: View, number: str, body: UpdatePrepareRequest) -> PreparedMerge:
    """Compute the merge of the base into the branch of a proposal"""
    if body.message is not None:
        check_message(body.message)
    return await run_with_work(view.node, view.me.account_id, partial(_compute_update, view, number, body))


async def _compute_update(view: View, number: str, body: UpdatePrepareRequest, ready: Ready) -> PreparedMerge:
    async with view.read(snapshot=True) as tx:
        row = await states.find(tx, view, number)
        mergeable.require_open(row)
        if row.head_repo_id is not None:
            raise NotMergeable(
                f"the branch of #{row.number} is in another repository; bring {row.base} into it there",
                blocked_by=["head_elsewhere"],
            )
        base, head = await mergeable.branches_of(tx, view, row)
        await protection.check(tx, view, head.name, "write")
        mergeable.require_heads(row, base, head, body.expected_base, body.expected_head)
        key = await seal.signing_key(tx, view, body.device_key_id)
        sides = await find_sides(tx, mergeable.head_of(head), mergeable.head_of(base))
        if sides.theirs in sides.bases:
            raise NotMergeable(
                f"{head.name} has everything of {base.name}, so there is nothing to bring",
                blocked_by=["up_to_date"],
            )
        message = body.message or f"Merge {base.name} into {head.name}"
        task = _Task("update", head, key, sides, row.number, message, _way_out(row.number, base.name))
        drafted = await _draft_seals(tx, view, task, ready)
    return await _store(view, task, About("update", row.number, sides.theirs, "update"), drafted)


def _way_out(number: int, base: str) -> str:
    return f"to join them: svc pr checkout {number}, then svc merge {base}, svc resolve, svc push"


async def preview(view: View, body: PreviewRequest) -> Preview:
    """Compute the merge of a seal into a branch, and return the bytes to sign

    The merge is a seal with two parents, which the session's own key signs.
    """
    if body.message is not None:
        check_message(body.message)
    return await run_with_work(view.node, view.me.account_id, partial(_compute_preview, view, body))


async def _compute_preview(view: View, body: PreviewRequest, ready: Ready) -> Preview:
    async with view.read(snapshot=True) as tx:
        base_row = await tx.one(refs.ONE, repo_id=view.repo.id, type="branch", name=body.base)
        if base_row is None:
            raise NoBranch(body.base, view.repo.default_branch)
        base = refs.to_row(base_row)
        theirs = await sealed.find_head(view, tx, body.head)
        if base.head is None or theirs is None:
            raise NotMergeable("a branch without a seal is not merged", ["no_seal"])
        sides = await find_sides(tx, base.head, theirs)
        if theirs in sides.bases:
            raise NotMergeable(f"{base.name} has everything of {body.head}", ["up_to_date"])
        blocked = await mergeable.find_obstacles(tx, view, base, theirs)
        key = await seal.signing_key(tx, view, view.me.device_key_id or "")
        message = body.message or f"Merge {body.head} into {base.name}"
        task = _Task("merge", base, key, sides, None, message, "")
        chain = Chain(view, tx)
        work = Working.onto(chain, ready)
        bases = [await work.root(base_id) for base_id in sides.bases]
        ours, root = await work.root(sides.ours), await work.root(theirs)
        outcome = await work.outcome(bases, ours, root, apart=True)
        drafts = []
        if not outcome.conflicts:
            result = MergeResult(outcome.changes, [], {})
            drafts = [await _seal(task, chain, work, ours, [sides.ours, theirs], result, [theirs])]
            await require_budget(chain, drafts[0].root)
    files = sorted(outcome.changes)
    answer = Preview(
        preview_id="",
        base_seal=sides.ours,
        head_seal=theirs,
        mergeable=not outcome.conflicts,
        conflicts=outcome.conflicts,
        files=files,
        bytes=None,
        blocked_by=blocked,
        expires_at=rfc3339(now_ms()),
    )
    if not drafts:
        return answer
    about = About("preview", 0, theirs, "merge")
    plan = seal.SealsToStore("merge", base, key, drafts, subject=about.to_text())
    expires = await seal.store(view, plan, LaneTexts(), chain.written)
    return msgspec.structs.replace(
        answer,
        preview_id=drafts[0].id,
        bytes=b64u(drafts[0].payload),
        expires_at=rfc3339(expires),
    )


def _require_enabled(view: View, number: int) -> None:
    if not view.node.config.flags.on("TR_REPO_MERGE_ENABLED"):
        raise NotMergeable(
            "this server makes no seals with two parents (TR_REPO_MERGE_ENABLED is off); "
            f"run: svc pr merge {number} --squash",
            blocked_by=["merge_disabled"],
        )


async def _draft_seals(tx: Tx, view: View, task: _Task, ready: Ready) -> _Drafted:
    chain = Chain(view, tx)
    work = Working.onto(chain, ready)
    sides = task.sides
    ours, theirs = await work.root(sides.ours), await work.root(sides.theirs)
    if task.strategy == "rebase":
        drafts, result = await _rebase(task, chain, work, ours)
    elif task.strategy == "fast_forward":
        # The branch's own seals stay in the history where they continue the base's.
        parent = sides.theirs if sides.joined else sides.ours
        result = MergeResult({} if sides.joined else await work.changes(ours, theirs), [])
        start = theirs if sides.joined else ours
        drafts = [await _seal(task, chain, work, start, [parent], result, [sides.theirs])]
    else:
        bases = [await work.root(base_id) for base_id in sides.bases]
        result = await work.merge(bases, ours, theirs, task.way_out, apart=task.strategy == "merge")
        parents = [sides.ours, sides.theirs] if task.strategy == "merge" else [sides.ours]
        drafts = [await _seal(task, chain, work, ours, parents, result, [sides.theirs])]
    await require_budget(chain, drafts[-1].root)
    return _Drafted(chain, drafts, work.texts, result.merged)


async def _rebase(
    task: _Task, chain: Chain, work: Working, root: bytes
) -> tuple[list[SealDraft], MergeResult]:
    """Make the branch's seals into drafts (unsigned seals) on top of the base. Returns (drafts, merged). The
    drafts keep the messages of the seals, and seals that would change nothing are left out. `merged` has the
    paths whose texts were merged in any of the drafts. `root`: the tree of the base."""
    require_few(task.sides.line)
    drafts: list[SealDraft] = []
    merged: set[str] = set()
    parent = task.sides.ours
    seal_rows = {
        seal_row.id: seal_row
        for seal_row in await seal.find(chain.inside, task.onto.repo_id, task.sides.line)
    }
    steps: list[Step] = []
    for name in task.sides.line:
        parents = seals.decode(seal_rows[name].payload).parents
        steps.append(((await work.root(parents[0]) if parents else None,), seal_rows[name].root))
    for at, name in enumerate(task.sides.line):
        row, payload = seal_rows[name], seals.decode(seal_rows[name].payload)
        bases, theirs = steps[at]
        try:
            result = await work.merge(bases, root, theirs, task.way_out)
        except ToWorkOut as lacking:
            # The trees between rebased seals are in this chain alone.
            raise ToWorkOut(lacking.key, chain.apart(), work.texts, steps[at + 1 :]) from None
        if not result.changes:
            continue
        statement = SealWords(row.message, task.key.id, payload.provenance.author)
        rebased = await _seal(task, chain, work, root, [parent], result, [name], statement)
        drafts.append(rebased)
        merged.update(result.merged)
        parent, root = rebased.id, rebased.root
    if not drafts:
        raise NotMergeable(
            f"{task.onto.name} has the change of every seal of #{task.number}; "
            f"close it: svc pr close {task.number}",
            blocked_by=["nothing_to_merge"],
        )
    return drafts, MergeResult({}, sorted(merged))


async def _seal(
    task: _Task,
    chain: Chain,
    work: Working,
    root: bytes,
    parents: list[str],
    result: MergeResult,
    sources: list[str],
    statement: SealWords | None = None,
) -> SealDraft:
    # Without changes too: the key may be another one.
    updated = await work.update(chain, root, result.changes)
    origin = MergeOrigin("merge" if task.strategy == "update" else task.strategy, sources, task.number)
    statement = statement or SealWords(task.message, task.key.id)
    return make_draft(chain.view, task.onto.name, parents, updated, statement, result.changes, merge=origin)


async def _store(view: View, task: _Task, about: About, drafted: _Drafted) -> PreparedMerge:
    plan = seal.SealsToStore("merge", task.onto, task.key, drafted.seals, subject=about.to_text())
    expires = await seal.store(view, plan, LaneTexts(), drafted.chain.written, files=drafted.texts)
    bases, update = task.sides.bases, task.strategy == "update"
    return PreparedMerge(
        prepare_id=drafted.seals[-1].id,
        strategy=task.strategy,
        base_seal=task.sides.theirs if update else task.sides.ours,
        head_seal=task.sides.ours if update else task.sides.theirs,
        merge_base=bases[0] if bases else None,
        merge_bases=bases,
        seals=[_to_wire(seal_draft) for seal_draft in drafted.seals],
        merged=drafted.merged,
        expires_at=rfc3339(expires),
        tree_key=b64u(view.repo.tree_key),
        tree_key_id=view.repo.tree_key_id,
    )


def _to_wire(seal_draft: SealDraft) -> MergeSeal:
    merge = seals.decode(seal_draft.payload).provenance.merge
    return MergeSeal(
        bytes=b64u(seal_draft.payload),
        digest=seal_draft.id,
        content_digest=seal_draft.root.hex(),
        message=seal_draft.message,
        changes=[
            SealChange(path=path, kind=kind, digest=digest.hex(), size=size)
            for path, kind, digest, size in seal_draft.changes
        ],
        source=merge.sources[0] if merge is not None else "",
    )
