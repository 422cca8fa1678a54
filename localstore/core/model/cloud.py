"""Machines with a GPU that an account launches at a compute provider, through the relay."""

from __future__ import annotations

from typing import Annotated, Literal

from localstore.core.endpoint import Endpoint
from localstore.core.errors import EditionLacks
from localstore.core.model.base import Count, Model, Page, PageQuery, Sent, visible


class CloudCapability(EditionLacks):
    """The relay cannot launch machines. `missing`: which parts it lacks: billing, a credential, a
    provider."""

    code = "cloud_capability"


Mode = Literal["inference", "fine-tuning", "custom"]
Missing = Literal["billing", "credential", "provider", "funding"]
InstanceState = Literal["provisioning", "running", "stopping", "stopped", "failed"]


class LaunchContextCreate(Sent, frozen=True):
    """A request to prepare the launch of a machine. `gpu`: name of the GPU, such as `RTX 4090`, `A6000` or
    `H100`. `region`: where the machine should run; by default anywhere."""

    gpu: Annotated[str, visible(60)]
    mode: Mode
    region: Annotated[str, visible(60)] | None = None


class Estimate(Model, frozen=True):
    """The price of a machine: cents for each hour, in `currency` (ISO 4217)."""

    hourly_cents: Count
    currency: str


class LaunchContext(Model, frozen=True):
    """A launch that is prepared and not started. If `missing` is empty, the machine can be started until
    `expires_at`."""

    context_id: str
    app_id: str
    gpu: str
    mode: Mode
    region: str | None
    estimate: Estimate | None
    missing: list[Missing]
    expires_at: str


class LaunchCreate(Sent, frozen=True):
    """A request to start a machine. `context_id`: the prepared launch."""

    context_id: Annotated[str, visible(100)]


class Instance(Model, frozen=True):
    """A machine that was launched."""

    id: str
    app_id: str
    state: InstanceState
    gpu: str
    mode: Mode
    region: str | None
    hourly_cents: Count
    currency: str
    created_at: str
    stopped_at: str | None = None


CLOUD = "/api/v1/cloud"
PREPARE = Endpoint(
    "POST",
    f"{CLOUD}/launch/{{app_id}}/context",
    body=LaunchContextCreate,
    returns=LaunchContext,
    status=201,
)
LAUNCH = Endpoint("POST", f"{CLOUD}/launch/{{app_id}}", body=LaunchCreate, returns=Instance, status=202)
LIST = Endpoint("GET", f"{CLOUD}/instances", query=PageQuery, returns=Page[Instance])
STOP = Endpoint("POST", f"{CLOUD}/instances/{{id}}/stop", returns=Instance, status=202)
STATUS = Endpoint("GET", f"{CLOUD}/instances/{{id}}/status", returns=Instance)
