"""The commands `svc cloud launch|list|view|stop`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from localstore.core.errors import Conflict, NotFound
from localstore.core.model import cloud as endpoints
from localstore.core.model.cloud import Estimate, Instance, LaunchContextCreate, LaunchCreate, Mode
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.http.checked import require_valid

COLUMNS = (
    Column("id"),
    Column("state"),
    Column("gpu"),
    Column("mode"),
    Column("region", spare=1),
    Column("hourly_cents", spare=2),
    Column("currency", spare=2),
    Column("created_at", kind="time"),
)


Machine = Annotated[str, typer.Argument(metavar="ID", help="The machine's id")]


@answers(COLUMNS, Instance)
def launch(
    ctx: Ctx,
    gpu: Annotated[str, typer.Argument(help="RTX 4090, A6000, H100, or another one")],
    mode: Annotated[Mode, typer.Option("--mode", help="What the machine is for")] = "inference",
    region: Annotated[str | None, typer.Option("--region", metavar="REGION", help="Where it runs")] = None,
) -> None:
    """Launch a machine for an app

    Shows the price of an hour and asks first. Fails with a message if the server has no billing or no
    provider of machines.

    Examples:
    svc cloud launch "RTX 4090" -R alice/app
    svc cloud launch H100 --mode fine-tuning --region eu
    """
    body = require_valid(LaunchContextCreate(gpu=gpu, mode=mode, region=region))
    repo = ctx.repo
    context = ctx.api.send(endpoints.PREPARE, body, app_id=repo.id)
    if context.missing:
        raise Conflict(f"{gpu} cannot be launched; missing: {', '.join(context.missing)}")
    ctx.confirm(f"Launching {gpu} for {repo.full_name} costs {_price(context.estimate)}")
    instance = ctx.api.send(endpoints.LAUNCH, LaunchCreate(context_id=context.context_id), app_id=repo.id)
    ctx.out.done(f"Launched {gpu}: {instance.id}", instance, COLUMNS, Instance, value=instance.id)


@answers(COLUMNS, Instance)
def list_instances(ctx: Ctx, limit: Limit = 30) -> None:
    """List your machines

    Examples:
    svc cloud list
    """
    ctx.out.rows(
        ctx.api.items(endpoints.LIST, limit=limit),
        COLUMNS,
        Instance,
        empty="no machines; launch one: svc cloud launch GPU -R OWNER/NAME",
    )


@answers(COLUMNS, Instance)
def view(ctx: Ctx, machine: Machine) -> None:
    """Show one of your machines

    Examples:
    svc cloud view 0198c0de
    """
    with _explain_missing_machine(machine):
        instance = ctx.api.send(endpoints.STATUS, id=machine)
    ctx.out.record(instance, COLUMNS, Instance)


@answers(COLUMNS, Instance)
def stop(ctx: Ctx, machine: Machine) -> None:
    """Stop a machine and its bill

    All data on the machine is lost.

    Examples:
    svc cloud stop 0198c0de --yes
    """
    ctx.confirm(f"Stopping the machine {machine} deletes what it holds")
    with _explain_missing_machine(machine):
        instance = ctx.api.send(endpoints.STOP, id=machine)
    ctx.out.done(f"Stopped the machine {machine}", instance, COLUMNS, Instance, value=machine)


@contextmanager
def _explain_missing_machine(machine: str) -> Iterator[None]:
    """A context that replaces every NotFound by one that names the missing machine."""
    try:
        yield
    except NotFound:
        raise NotFound(f"you have no machine {machine}; see: svc cloud list") from None


def _price(estimate: Estimate | None) -> str:
    if estimate is None:
        return "what the provider asks"
    return f"{estimate.hourly_cents / 100:.2f} {estimate.currency} an hour"
