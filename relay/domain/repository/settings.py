"""The content of a repository's settings page, one panel at a time, and the acts of its forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from localstore.core.errors import Invalid, NotFound
from localstore.core.model.access import (
    AccessGrant,
    AccessRequest,
    Collaborator,
    Invite,
    InviteCreate,
    RoleChange,
    TransferCreate,
)
from localstore.core.model.base import PageQuery
from localstore.core.model.check import Check
from localstore.core.model.listing import Listing, ListingSet
from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.model.repo import RepoPatch
from localstore.core.model.webhook import Webhook, WebhookCreate, WebhookEdit
from localstore.core.numbers import whole_number
from localstore.core.validation import check_members
from relay.caller import Caller, View
from relay.domain.access import collaborator, invite, request, transfer
from relay.domain.catalog import listing
from relay.domain.checks import check
from relay.domain.protection import protection
from relay.domain.repository import repo as repos
from relay.domain.repository.act_form import ActForm, lines, names
from relay.domain.repository.place import ShownRepository, address_of
from relay.domain.webhook import webhook

PANELS: dict[str, str] = {
    "general": "General",
    "listing": "Listing",
    "upstream": "Upstream source",
    "marketplace": "Marketplace",
    "access": "Access",
    "automation": "Automation",
    "checks": "Checks",
    "lifecycle": "Lifecycle",
}
ASKED = ("visibility", "transfer", "delete")  # pages that want the name typed
ROWS = 100  # of each list


@dataclass(slots=True)
class Settings:
    """The content of one panel of the settings page. Only the lists of this panel are filled. `asks`: the
    destructive act that the page asks the reader to confirm."""

    panel: str
    asks: str = ""
    listing: Listing | None = None
    people: list[Collaborator] = field(default_factory=list)
    invites: list[Invite] = field(default_factory=list)
    requests: list[AccessRequest] = field(default_factory=list)
    hooks: list[Webhook] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    rules: list[Protection] = field(default_factory=list)


async def read(place: ShownRepository, panel: str, asks: str) -> Settings:
    """Read a panel of the settings page. `asks`: the destructive act to confirm, or "". Raises NotFound for
    everybody except the owner, and for an unknown panel."""
    panel = panel or "general"
    if panel not in PANELS or (asks and asks not in ASKED) or not place.may_act("repo.update"):
        raise NotFound
    answer, view, query = Settings(panel, asks), place.view, PageQuery(limit=ROWS)
    if panel == "listing" and place.repo.listing_id is not None and place.may("listing.get"):
        answer.listing = await listing.get(view)
    if panel == "access":
        if place.may("collaborator.list"):
            answer.people = list((await collaborator.page(view, query)).items)
        if place.may("invite.list"):
            answer.invites = list((await invite.page(view, query)).items)
        if place.may("access.list"):
            answer.requests = list((await request.page(view, query)).items)
    if panel == "automation" and place.may("webhook.list"):
        answer.hooks = list((await webhook.page(view, query)).items)
    if panel == "checks":
        answer.checks = list((await check.page(view, query)).items) if place.may("check.list") else []
        answer.rules = list((await protection.page(view, query)).items)
    return answer


def _at(place: ShownRepository, panel: str) -> str:
    return place.tab("settings", view=panel)


async def edit_general(view: View, place: ShownRepository, form: ActForm) -> str:
    patch: dict[str, Any] = {"name": form.name.strip(), "description": form.text.strip(), "kind": form.kind}
    if form.branch.strip():
        patch["default_branch"] = form.branch.strip()
    edited = await repos.edit(view, check_members(RepoPatch(**patch)))
    return f"{address_of(edited)}/dev?tab=settings"


async def set_archived(view: View, place: ShownRepository, form: ActForm) -> str:
    await repos.edit(view, RepoPatch(archived=form.object_of_act == "on"))
    return _at(place, "lifecycle")


async def set_visibility(view: View, place: ShownRepository, form: ActForm) -> str:
    _require_name(place, form)
    await repos.edit(view, check_members(RepoPatch(visibility=form.object_of_act)))  # type: ignore[arg-type]  # checked
    return _at(place, "lifecycle")


async def delete(view: View, place: ShownRepository, form: ActForm) -> str:
    _require_name(place, form)
    await repos.delete(view)
    return "/"


async def offer(view: View, place: ShownRepository, form: ActForm) -> str:
    _require_name(place, form)
    await transfer.create(view, check_members(TransferCreate(form.handle.strip())))
    return _at(place, "lifecycle")


def _require_name(place: ShownRepository, form: ActForm) -> None:
    """Raise Invalid unless the reader typed the name of the repository into the form."""
    if form.confirm.strip() != place.repo.full_name:
        raise Invalid(f"type {place.repo.full_name} to confirm it", pointer="/confirm")


async def list_it(view: View, place: ShownRepository, form: ActForm) -> None:
    shots = [path for line in lines(form.text).split("\n") if (path := line.strip())]
    body = ListingSet(form.name.strip(), form.title.strip() or None, shots, form.images or "none")  # type: ignore[arg-type]  # checked
    await listing.put(view, check_members(body))


async def unlist(view: View, place: ShownRepository, form: ActForm) -> None:
    await listing.remove(view)


async def send_invite(view: View, place: ShownRepository, form: ActForm) -> None:
    await invite.create(view, check_members(InviteCreate(form.handle.strip(), form.role or "read")))  # type: ignore[arg-type]  # checked


async def cancel_invite(view: View, place: ShownRepository, form: ActForm) -> None:
    await invite.cancel(view, form.object_of_act)


async def set_role(view: View, place: ShownRepository, form: ActForm) -> None:
    await collaborator.set_role(view, form.handle, check_members(RoleChange(form.role)))  # type: ignore[arg-type]  # checked


async def remove_collaborator(view: View, place: ShownRepository, form: ActForm) -> None:
    await collaborator.remove(view, form.object_of_act)


async def grant(caller: Caller, place: ShownRepository, form: ActForm) -> None:
    await request.grant(caller, form.object_of_act, AccessGrant())


async def decline(caller: Caller, place: ShownRepository, form: ActForm) -> None:
    await request.decline(caller, form.object_of_act)


async def add_hook(view: View, place: ShownRepository, form: ActForm) -> None:
    events: list[Any] = names(form.events)
    await webhook.create(view, check_members(WebhookCreate(form.url.strip(), events, form.secret)))


async def switch_hook(view: View, place: ShownRepository, form: ActForm) -> None:
    state, _, hook = form.object_of_act.partition(" ")
    await webhook.edit(view, hook, WebhookEdit(active=state == "on"))


async def delete_hook(view: View, place: ShownRepository, form: ActForm) -> None:
    await webhook.delete(view, form.object_of_act)


async def enable_check(view: View, place: ShownRepository, form: ActForm) -> None:
    await check.enable(view, form.name.strip())


async def disable_check(view: View, place: ShownRepository, form: ActForm) -> None:
    await check.disable(view, form.object_of_act)


async def protect(view: View, place: ShownRepository, form: ActForm) -> None:
    approvals = whole_number(form.approvals or "0", 3)
    if approvals is None:
        raise Invalid("the number of approvals is a whole number", pointer="/approvals")
    body = ProtectionSet(
        require_review=approvals > 0,
        require_checks=bool(form.require_checks),
        lock_writes=bool(form.lock_writes),
        required_approvals=approvals,
        require_resolution=bool(form.require_resolution),
        fresh_approvals=bool(form.fresh_approvals),
    )
    await protection.put(view, form.name.strip(), check_members(body))


async def unprotect(view: View, place: ShownRepository, form: ActForm) -> None:
    await protection.clear(view, form.object_of_act)
