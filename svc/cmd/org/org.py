"""The commands `svc org create|list|view|edit|rename|delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import organisation
from localstore.core.model.organisation import (
    BaseRole,
    Organisation,
    OrganisationChange,
    OrganisationCreate,
)
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.org.shared import explain_missing_org, handle_of
from svc.console import Column, answers

COLUMNS = (
    Column("handle", kind="name"),
    Column("role"),
    Column("members"),
    Column("base_role", spare=1),
    Column("created_at", kind="time"),
)
Name = Annotated[str, typer.Argument(metavar="ORG", help="The organisation's handle")]


@answers(COLUMNS, Organisation)
def create(ctx: Ctx, name: Annotated[str, typer.Argument(help="Its handle")]) -> None:
    """Create an organisation

    It owns repositories as a person does, and you are its first admin. People and organisations share one
    name space. An admin has the rights of the owner in all its repositories. A member has the roles given to
    them.

    Examples:
    svc org create acme && svc repo create acme/notes
    """
    record = ctx.api.send(organisation.CREATE, OrganisationCreate(handle=handle_of(name)))
    sentence = (
        f"Created the organisation {record.handle}. Invite people: svc org member add {record.handle} HANDLE"
    )
    ctx.out.done(sentence, record, COLUMNS, Organisation, value=record.handle)


@answers(COLUMNS, Organisation)
def list_organisations(ctx: Ctx, limit: Limit = 30) -> None:
    """List the organisations you are a member of

    Examples:
    svc org list
    """
    rows = ctx.api.items(organisation.LIST, limit=limit)
    ctx.out.rows(rows, COLUMNS, Organisation, empty="no organisations; make one: svc org create NAME")


@answers((*COLUMNS, Column("id")), Organisation)
def view(ctx: Ctx, org: Name) -> None:
    """Show an organisation

    Only its members see it. To list its repositories: svc repo list ORG.

    Examples:
    svc org view acme
    """
    org = handle_of(org)
    with explain_missing_org(org):
        record = ctx.api.send(organisation.GET, org=org)
    ctx.out.record(record, (*COLUMNS, Column("id")), Organisation)


@answers(COLUMNS, Organisation)
def edit(
    ctx: Ctx,
    org: Name,
    base_role: Annotated[
        BaseRole | None, typer.Option("--base-role", help="What all members have in all its repositories")
    ] = None,
) -> None:
    """Change what all members of an organisation may do

    Every member has the base role in all repositories of the organisation, including later ones. A higher
    role that a member has in a single repository stays. With none, members have only the roles given to them.

    Examples:
    svc org edit acme --base-role read
    svc org edit acme --base-role none
    """
    if base_role is None:
        raise UsageError(f"say what to change: svc org edit {org} --base-role read")
    org = handle_of(org)
    if base_role != "none":
        with explain_missing_org(org):
            mine = ctx.api.send(organisation.GET, org=org).role
        if mine == "admin":  # nobody else is asked before the server refuses
            ctx.confirm(f"Giving all members of {org} the role {base_role} in all its repositories")
    with explain_missing_org(org):
        record = ctx.api.send(organisation.UPDATE, OrganisationChange(base_role=base_role), org=org)
    sentence = f"All members of {org} have the role {record.base_role} in all its repositories"
    if base_role == "none":
        sentence = f"Members of {org} have the roles that were given to them"
    ctx.out.done(sentence, record, COLUMNS, Organisation, value=record.handle)


@answers(COLUMNS, Organisation)
def rename(ctx: Ctx, org: Name, new: Annotated[str, typer.Argument(help="The new handle")]) -> None:
    """Change an organisation's handle

    The old handle leads to its repositories for 90 days, and nobody else can take it during that time.

    Examples:
    svc org rename acme acme-labs
    """
    org, new = handle_of(org), handle_of(new)
    ctx.confirm(f"Renaming {org} to {new}")
    with explain_missing_org(org):
        record = ctx.api.send(organisation.UPDATE, OrganisationChange(handle=new), org=org)
    ctx.out.done(f"{org} is {record.handle} now", record, COLUMNS, Organisation, value=record.handle)


@answers((Column("handle"),))
def delete(ctx: Ctx, org: Name) -> None:
    """Delete an organisation that owns nothing

    A deleted repository of the organisation counts as owned until it is purged, after 30 days. The handle
    becomes free again.

    Examples:
    svc org delete acme --yes
    """
    org = handle_of(org)
    ctx.confirm(f"Deleting the organisation {org}")
    with explain_missing_org(org):
        ctx.api.send(organisation.DELETE, org=org)
    ctx.out.done(f"Deleted the organisation {org}", {"handle": org}, (Column("handle"),), value=org)
