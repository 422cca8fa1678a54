"""Resources as frozen Structs: the body on the wire, the local row and the fields of `--json` in one.

snake_case members; times are RFC 3339 UTC strings ending in `_at`; sizes are bytes; digests are lowercase hex
BLAKE3-256; binary is base64url without padding; ids are opaque. Readers ignore unknown members, except
in signed data (`seal`, `update`). One module per noun, the same word as in every other layer.
"""

from localstore.core.model.auth import (
    Challenge,
    DeviceCode,
    DeviceKey,
    DeviceKeyProof,
    DeviceKeyStart,
    Handle,
    PairingCode,
    ScriptToken,
    SealedSession,
    Session,
    SessionGrant,
    UserInfo,
)
from localstore.core.model.base import Actor, Model, Page, Problem
from localstore.core.model.history import (
    Blame,
    BlameRange,
    Blob,
    ChangedFile,
    Compare,
    Entry,
    PublicSeal,
    Seal,
    SealKey,
    SealSummary,
    Tree,
)
from localstore.core.model.live import (
    Bootstrap,
    Lane,
    LaneState,
    LaneStates,
    Row,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.model.node import ClientConfig, Health, NodeInfo, Version
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Coordinates, Deleted, Repo, Viewer
from localstore.core.model.seal import Prepared, PreparedSeals, SealChange, TreeDelta

__all__ = [
    "Actor",
    "Blame",
    "BlameRange",
    "Blob",
    "Bootstrap",
    "Challenge",
    "ChangedFile",
    "ClientConfig",
    "Compare",
    "Coordinates",
    "Deleted",
    "DeviceCode",
    "DeviceKey",
    "DeviceKeyProof",
    "DeviceKeyStart",
    "Entry",
    "Handle",
    "Health",
    "Lane",
    "LaneState",
    "LaneStates",
    "Model",
    "NodeInfo",
    "Page",
    "PairingCode",
    "Prepared",
    "PreparedSeals",
    "Problem",
    "PublicSeal",
    "Ref",
    "Repo",
    "Row",
    "ScriptToken",
    "Seal",
    "SealChange",
    "SealKey",
    "SealSummary",
    "SealedSession",
    "Session",
    "SessionGrant",
    "Tree",
    "TreeDelta",
    "UpdateAnswer",
    "UpdateAnswers",
    "UpdateBatch",
    "UserInfo",
    "Version",
    "Viewer",
]
