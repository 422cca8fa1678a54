"""Security advisories: public records about security faults of software, in the format of OSV (Open Source
Vulnerability)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.model.base import Model, Page, PageQuery, visible
from localstore.core.model.limits import ADVISORY_PACKAGES, ADVISORY_TEXT_BYTES, ADVISORY_VERSIONS

SCHEMA = "1.6.0"

_Short = Annotated[str, visible(200)]
_Aliases = Annotated[list[_Short], msgspec.Meta(max_length=20)]


class RangeEvent(Model, frozen=True, omit_defaults=True):
    """One event in the history of a package. It has one member: the version that `introduced` the fault, the
    version that `fixed` it, or the `last_affected` version."""

    introduced: _Short | None = None
    fixed: _Short | None = None
    last_affected: _Short | None = None


_Events = Annotated[list[RangeEvent], msgspec.Meta(min_length=1, max_length=ADVISORY_VERSIONS)]


class Range(Model, frozen=True):
    """A range of affected versions. `events`: where the fault begins and ends, in the order of the versions;
    `type`: how versions are compared."""

    type: Literal["SEMVER", "ECOSYSTEM", "GIT"]
    events: _Events


class Package(Model, frozen=True):
    ecosystem: _Short
    name: _Short


_Ranges = Annotated[list[Range], msgspec.Meta(max_length=20)]
_Versions = Annotated[list[_Short], msgspec.Meta(max_length=ADVISORY_VERSIONS)]


class Affected(Model, frozen=True):
    """A package that an advisory is about."""

    package: Package
    ranges: _Ranges = msgspec.field(default_factory=list)
    versions: _Versions = msgspec.field(default_factory=list)


AffectedPackages = Annotated[list[Affected], msgspec.Meta(max_length=ADVISORY_PACKAGES)]


class Reference(Model, frozen=True):
    """A web address with more information."""

    type: Literal["ADVISORY", "ARTICLE", "FIX", "REPORT", "WEB"]
    url: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^https?://[^\s\x00-\x1f]+(?!\n)$", max_length=2000, description="an address of the web"
        ),
    ]


class NodeFields(Model, frozen=True):
    """Members that this relay adds to the OSV format. `repo`: OWNER/NAME on this relay."""

    repo: str
    severity: Literal["low", "medium", "high", "critical"]


class Advisory(Model, frozen=True):
    """A security advisory, as an OSV record."""

    schema_version: str
    id: str
    modified: str
    published: str
    summary: str
    details: str
    aliases: list[str]
    affected: list[Affected]
    references: list[Reference]
    database_specific: NodeFields


class AdvisoryDraft(Model, frozen=True, forbid_unknown_fields=True):
    """An advisory as the owner of a repository writes it. Without `affected` it applies to every version of
    the repository."""

    summary: _Short
    details: Annotated[str, msgspec.Meta(max_length=ADVISORY_TEXT_BYTES)] = ""
    severity: Literal["low", "medium", "high", "critical"] = "medium"
    aliases: _Aliases = msgspec.field(default_factory=list)
    affected: AffectedPackages = msgspec.field(default_factory=list)
    references: Annotated[list[Reference], msgspec.Meta(max_length=20)] = msgspec.field(default_factory=list)


class AdvisoryQuery(PageQuery, frozen=True):
    """A filter of advisories. `repo`: OWNER/NAME; only advisories about this repository of the relay."""

    repo: Annotated[str, msgspec.Meta(max_length=200)] | None = None


LIST = Endpoint("GET", "/api/v1/advisories", query=AdvisoryQuery, returns=Page[Advisory])
GET = Endpoint("GET", "/api/v1/advisories/{advisory}", returns=Advisory)
