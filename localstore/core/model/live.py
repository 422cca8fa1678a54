"""The live frontier of a branch (docs/design/004). The update itself is `localstore.core.lane.update`."""

from __future__ import annotations

from typing import Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Forbidden, Invalid
from localstore.core.lane.update import LiveUpdate, UpdateKind
from localstore.core.limits import LARGE_ANSWER
from localstore.core.model.base import Count, Model


class ReplicaUnknown(Forbidden):
    """A replica id that this branch never gave to this device: the branch was made again, or the relay came
    back from a backup. The client goes on under a new one by itself."""

    code = "replica_unknown"


class LaneMoved(Conflict):
    """An edit made from a file, of a text that others have changed since: it is merged, then sent again."""

    code = "lane_moved"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"others changed {path} after the version that this edit was made from; "
            "run: svc pull --merge, then push again"
        )


class ClockReused(Conflict):
    """A replica sent an update number that was already used: its local store was restored from a copy."""

    code = "clock_reused"


class UpdateInvalid(Invalid):
    """A CRDT update that does not belong to its lane, or breaks the strict grammar."""

    code = "update_invalid"


LaneKind = Literal["text", "blob", "chunked", "gone"]


class Row(Model, array_like=True, frozen=True):
    """One path of the frontier, as an array: compact, because a first bootstrap carries all of them.

    `gen`: the sequence number of the update that created this file, its lane id; `ver`: the last that touched
    it; `other`: the last by any replica but the caller's. `digest` and `size` are of the bytes as they are
    now. `live`: the bytes differ from the lane's genesis, so the state must be fetched to merge into it.
    Kind `gone`: the path was removed at `ver`.
    """

    path: str
    kind: LaneKind
    gen: Count
    epoch: Count
    ver: Count
    other: Count
    digest: str
    size: Count
    live: bool = False


class BootstrapRequest(Model, frozen=True):
    """`since`: send only rows with a later `ver`. `replica`: the id this folder was given before, absent the
    first time; `n`: the highest update number this folder has used (a lower one than known: clock_reused)."""

    device_key_id: str
    replica: Count | None = None
    since: Count = 0
    n: Count = 0


class Bootstrap(Model, frozen=True):
    """Snapshot of the frontier at `seq`. `tree_key` (32 bytes) lets the device compute content digests.
    `kind` is the repository's: it says how large a file may be; `repo` (OWNER/NAME) and `class` are what a
    link to it says. `live_by`: handles of those whose edits since the seal, from other devices, each path
    holds."""

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


class Lane(Model, frozen=True):
    """Which lane state to fetch: by its generation and the epoch the device has (None: it has none)."""

    path: str
    gen: Count
    epoch: Count | None = None


class LanesRequest(Model, frozen=True):
    """`replica`: who asks, so that `other` leaves out its own changes."""

    lanes: list[Lane]
    replica: Count | None = None


class LaneState(Model, frozen=True):
    """A lane's full CRDT state. `genesis` names the text of this epoch's genesis (hex digest);
    `state` is b64u or None when the lane is untouched since. `finals`: last states of retained older epochs
    the device may still be in, epoch → b64u state (empty string: untouched)."""

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
    """The end of a past epoch: its genesis text and its complete state."""

    genesis: str
    state: str | None


class LaneStates(Model, frozen=True):
    """`missing` lists asked paths that are gone or have another generation."""

    lanes: list[LaneState]
    missing: list[str]


class ProofContextRequest(Model, frozen=True):
    device_key_id: str
    replica: Count
    update: LiveUpdate


class ProofContext(Model, frozen=True):
    """`bytes`: what the device key signs for this update (b64u); computable offline, echoed for others."""

    bytes: str
    digest: str


class UpdateBatch(Model, frozen=True):
    """One or many updates of one replica; at most 500 or 1 MiB. Order is kept; deletes come first."""

    device_key_id: str
    replica: Count
    updates: list[LiveUpdate]
    turn_id: str | None = None


class UpdatesRequest(UpdateBatch, frozen=True):
    """A batch of `updates`, or the members of one update beside `device_key_id` and `replica`."""

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
        """What was sent, as a batch. Invalid for a batch and an update at once, or for neither."""
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
    """`result` ok: acknowledged means committed and durable. stale: the path moved on; epoch: the lane has a
    newer epoch; settled: this number was answered before and forgotten; refused: `code`, `detail` say why."""

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
