"""Signed publications: somebody with write access signs a release and its assets."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Sent
from localstore.core.model.release import Release, Version


class NothingPublished(Conflict):
    """The release has no assets, so there is nothing to sign."""

    code = "nothing_published"


class PublicationCreate(Sent, frozen=True):
    """A new signature of a release. `signature`: made with the caller's device key over
    `localstore.core.publication.payload`."""

    version: Version
    device_key_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    signature: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^[A-Za-z0-9_-]{86}(?!\n)$", description="64 bytes in base64url without padding"
        ),
    ]


CREATE = Endpoint("POST", f"{REPO}/publications", body=PublicationCreate, returns=Release, status=201)
