"""Requests and answers about the live frontier of a branch, which is the state of its files with all unsealed
edits (docs/design/004). The struct of an update is in `localstore.core.lane.update`."""

from __future__ import annotations

from typing import Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Forbidden, Invalid
from localstore.core.lane.update import LiveUpdate, UpdateKind
from localstore.core.model.base import Count, Model, Sent
from localstore.core.model.limits import LARGE_ANSWER


class ReplicaUnknown(Forbidden):
    """The branch does not know this replica id: the branch was recreated, or the relay was restored from a
    backup. The client automatically continues under a new id."""

    code = "replica_unknown"


class LaneMoved(Conflict):
    """Others have changed a text since a captured edit of it (an edit found on disk) was made. The client
    merges their changes and sends the edit again."""

    code = "lane_moved"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"others changed {path} after the version that this edit was made from; "
            "run: svc pull --merge, then push again"
        )


class ClockReused(Conflict):
    """A replica used an update number twice, because its local record was restored from a copy."""

    code = "clock_reused"


class UpdateInvalid(Invalid):
    """A CRDT update does not belong to its lane, or does not have the strict form that the relay demands."""

    code = "update_invalid"


LaneKind = Literal["text", "blob", "chunked", "gone"]


class Row(Model, array_like=True, frozen=True):
    """One path of the live frontier. It is encoded as an array, so that the first answer is small.

    `gen`: id of the lane, which is the sequence number of the update that created the file. `ver`: sequence
    number of the last update; `other`: of the last update by another replica. `digest` and `size` describe
    the current bytes. `live`: the bytes differ from the lane's first text, so a merge needs the lane's CRDT
    state. In a row of the kind `gone`, `ver` is the number at which the path was removed."""

    path: str
    kind: LaneKind
    gen: Count
    epoch: Count
    ver: Count
    other: Count
    digest: str
    size: Count
    live: bool = False


class BootstrapRequest(Sent, frozen=True):
    """A request for the live frontier. `since`: send only rows with a later `ver`. `replica`: the id of the
    working copy, None the first time. `n`: the highest update number that the working copy has used; if
    the relay knows a higher one, it answers clock_reused."""

    device_key_id: str
    replica: Count | None = None
    since: Count = 0
    n: Count = 0


class Bootstrap(Model, frozen=True):
    """The live frontier after update number `seq`. `tree_key` (32 bytes): for computing content digests.
    `kind`: kind of the repository, which decides how large files may be. `repo` (OWNER/NAME) and `class`:
    the working copy stores them in its link. `live_by`: for each path, the handles of others who have
    unsealed edits of it."""

    branch_id: str
    replica: Count
    seq: Count
    sealed_head: str | None
    tree_key: str
    tree_key_id: str
    rows: list[Row]
    kind: str = "app"
    repo: str = ""
    class_: str = msgspec.field(name="class", default="")
    live_by: dict[str, list[str]] = msgspec.field(default_factory=dict)


class LaneName(Sent, frozen=True):
    """A lane whose state is requested. `gen`: its id. `epoch`: the epoch of the lane that the device has,
    None if it has none."""

    path: str
    gen: Count
    epoch: Count | None = None


class LanesRequest(Sent, frozen=True):
    """A request for the states of lanes. `replica`: the caller's replica id. In the answer, `other` is the
    number of the newest update by another replica."""

    lanes: list[LaneName]
    replica: Count | None = None


class LaneState(Model, frozen=True):
    """The CRDT state of a lane. `genesis`: hex digest of the text with which its epoch began. `state`: b64u,
    None if the lane still has that text. `finals`: the final states of those earlier epochs that some
    device may still have, by epoch."""

    path: str
    kind: LaneKind
    gen: Count
    epoch: Count
    ver: Count
    other: Count
    digest: str
    size: Count
    genesis: str
    state: str | None
    finals: dict[str, FinalState] = msgspec.field(default_factory=dict)


class FinalState(Model, frozen=True):
    """The final state of an earlier epoch of a lane. `genesis`: hex digest of its first text; `state`: b64u,
    None if the text did not change."""

    genesis: str
    state: str | None


class LaneStates(Model, frozen=True):
    """The states of the requested lanes. `missing`: requested paths that were deleted or now have another
    lane. `left`: how many lanes at the end of the request did not fit into this answer; the client
    requests them again."""

    lanes: list[LaneState]
    missing: list[str]
    left: Count = 0


class ProofContextRequest(Sent, frozen=True):
    device_key_id: str
    replica: Count
    update: LiveUpdate


class ProofContext(Model, frozen=True):
    """The bytes that a device has to sign for an update (`bytes`, b64u). Clients can also compute them
    offline."""

    bytes: str
    digest: str


class UpdateBatch(Model, frozen=True):
    """Several updates of one replica: at most 500, and at most 1 MiB. They are applied in order. The sender
    puts deletions first."""

    device_key_id: str
    replica: Count
    updates: list[LiveUpdate]
    turn_id: str | None = None


class UpdatesRequest(UpdateBatch, frozen=True, forbid_unknown_fields=True):
    """A request to apply updates. It has either `updates` or the members of one update."""

    updates: list[LiveUpdate] | None = None  # type: ignore[assignment]  # absent where one update stands alone
    n: int | None = None
    settled: int | None = None
    path: str | None = None
    kind: UpdateKind | None = None
    gen: int | None = None
    base: int | None = None
    signature: str | None = None
    blake3: str | None = None
    size: int | None = None
    epoch: int | None = None
    ops: list[str] | None = None
    typed: bool | None = None

    def batch(self) -> UpdateBatch:
        """The updates as a batch. Raises Invalid unless the request has either a batch or a single update."""
        bare = {name: getattr(self, name) for name in LiveUpdate.__struct_fields__}
        bare = {name: value for name, value in bare.items() if value is not None}
        shared = {name: getattr(self, name) for name in UpdateBatch.__struct_fields__}
        if self.updates is not None:
            if bare:
                raise Invalid(f"send updates, or one update; not {min(bare)} beside updates", f"/{min(bare)}")
            return UpdateBatch(**shared)
        try:
            return UpdateBatch(**shared | {"updates": [msgspec.convert(bare, LiveUpdate)]})
        except msgspec.ValidationError as error:
            raise Invalid(f"send updates: […], or the members of one update: {error}") from None


class UpdateAnswer(Model, omit_defaults=True, frozen=True):
    """The answer to an update. `result` is one of:

    - `ok`: the update is committed and durable.
    - `stale`: others changed the path.
    - `epoch`: the lane has a newer epoch.
    - `settled`: the update was answered before, and that answer is no longer stored.
    - `refused`: `code` and `detail` say why."""

    n: Count
    result: Literal["ok", "stale", "epoch", "settled", "refused"]
    seq: Count = 0
    gen: Count = 0
    epoch: Count = 0
    digest: str = ""
    state_vector: str = ""
    code: str = ""
    detail: str = ""


class UpdateAnswers(Model, frozen=True):
    seq: Count
    answers: list[UpdateAnswer]
    checkpoint: bool = False


# The relay answers a repeated update with its first answer, so all of these may be repeated.
_LIVE = f"{REPO}/branches/{{branch}}/live"
BOOTSTRAP = Endpoint(
    "POST",
    f"{_LIVE}/bootstrap",
    body=BootstrapRequest,
    returns=Bootstrap,
    repeatable=True,
    cap=LARGE_ANSWER,  # a million rows of long paths
)
LANES = Endpoint(
    "POST", f"{_LIVE}/lanes", body=LanesRequest, returns=LaneStates, repeatable=True, cap=LARGE_ANSWER
)
PROOF_CONTEXT = Endpoint(
    "POST", f"{_LIVE}/proof-context", body=ProofContextRequest, returns=ProofContext, repeatable=True
)
UPDATES = Endpoint("POST", f"{_LIVE}/updates", body=UpdatesRequest, returns=UpdateAnswers, repeatable=True)
