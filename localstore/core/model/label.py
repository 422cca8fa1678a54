"""Labels of a repository, for its issues and proposals."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Description, Model, Page, PageQuery, Sent, visible
from localstore.core.model.limits import HANDLE_CHARS, LABEL_NAME_CHARS


class LabelExists(Conflict):
    """The repository has a label with this name, compared without case."""

    code = "label_exists"


_NAME = visible(LABEL_NAME_CHARS)
Name = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=LABEL_NAME_CHARS,
        # Neither . nor .., which would change the path of a URL.
        pattern=rf"^(?!\.{{1,2}}$){(_NAME.pattern or '^').removeprefix('^')}",
        description=f"{_NAME.description}, and neither . nor ..",
    ),
]
Color = msgspec.Meta(pattern=r"^#?[0-9A-Fa-f]{6}(?!\n)$", description="six hex digits, such as d73a4a")


class Label(Model, frozen=True):
    """A label of a repository. `color`: six lowercase hex digits."""

    name: str
    color: str
    description: str | None = None


class LabelCreate(Sent, frozen=True):
    """A new label. `color`: with or without a hash sign, in any case."""

    name: Name
    color: Annotated[str, Color] = "ededed"
    description: Description | None = None


class LabelPatch(Sent, frozen=True):
    """A change of a label. Members that are None change nothing."""

    name: Name | None = None
    color: Annotated[str, Color] | None = None
    description: Description | None = None


class LabelClone(Sent, frozen=True):
    """A request to copy labels. `source`: OWNER/NAME of the repository to copy from. `force`: change existing
    labels to match."""

    source: Annotated[str, msgspec.Meta(min_length=3, max_length=2 * HANDLE_CHARS + 1)]
    force: bool = False


class LabelsCloned(Model, frozen=True):
    """How many labels were created, how many were changed, and how many were equal already (`left`)."""

    created: int
    changed: int
    left: int


LIST = Endpoint("GET", f"{REPO}/labels", query=PageQuery, returns=Page[Label])
CREATE = Endpoint("POST", f"{REPO}/labels", body=LabelCreate, returns=Label, status=201)
UPDATE = Endpoint("PATCH", f"{REPO}/labels/{{name}}", body=LabelPatch, returns=Label)
DELETE: Endpoint[None] = Endpoint("DELETE", f"{REPO}/labels/{{name}}", status=204)
CLONE = Endpoint("POST", f"{REPO}/labels/clone", body=LabelClone, returns=LabelsCloned)
