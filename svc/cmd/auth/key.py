"""`svc auth key …`: API keys, which a program of the user accepts from its own users."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, get_args

import typer

from localstore.core.errors import NotFound
from localstore.core.model import api_key, auth
from localstore.core.model.api_key import ApiKey, ApiKeyCreate, ApiKeyRotate, ApiKeySecret
from localstore.core.model.limits import API_KEY_OVERLAP
from localstore.core.model.rights import Capability
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.http.checked import require_valid

COLUMNS = (
    Column("id"),
    Column("name"),
    Column("prefix", spare=3),
    Column("scopes"),
    Column("created_at", kind="time", spare=4),
    Column("last_used_at", kind="time", spare=2),
    Column("expires_at", kind="time", spare=1),
    Column("revoked_at", kind="time"),
)
SECRET = (*COLUMNS, Column("secret"))
Key = Annotated[str, typer.Argument(metavar="ID", help="From svc auth key list")]
LONGEST = 3650  # days


@answers(SECRET, ApiKeySecret)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="What will use it")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope", metavar="|".join(get_args(Capability)), help="What it is good for: read if absent"
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=LONGEST, help="Until it expires: never if absent")
    ] = None,
) -> None:
    """Create an API key

    A key is a secret that your own program accepts from its users. It does not sign in to the server. Your
    program asks the server whether a key is valid, and for which scopes. The secret is printed only this
    once.

    Examples:
    svc auth key create printer --scope read --scope write --days 90
    KEY=$(svc auth key create printer)
    """
    end = None if days is None else datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    scopes: list[Any] = scope or ["read"]  # `require_valid` refuses unknown words
    body = require_valid(ApiKeyCreate(name=name, scopes=scopes, expires_at=end))
    key = ctx.api.send(api_key.CREATE, body, user_id=_user(ctx))
    _print_secret(ctx, f"Created the API key {key.name}", key)


@answers(COLUMNS, ApiKey)
def list_keys(ctx: Ctx, limit: Limit = 30) -> None:
    """List your API keys

    Revoked keys are listed for 90 days.

    Examples:
    svc auth key list
    """
    keys = ctx.api.items(api_key.LIST, limit=limit, user_id=_user(ctx))
    ctx.out.rows(keys, COLUMNS, ApiKey, empty="no API keys; make one: svc auth key create NAME")


@answers(SECRET, ApiKeySecret)
def rotate(
    ctx: Ctx,
    id: Key,
    overlap: Annotated[
        int,
        typer.Option(
            "--overlap",
            metavar="SECONDS",
            min=0,
            max=API_KEY_OVERLAP,
            help="How long the old secret stays valid",
        ),
    ] = 0,
) -> None:
    """Give an API key a new secret

    The old secret becomes invalid at once, or after the seconds of --overlap. A secret that an earlier
    rotation replaced becomes invalid now. The new secret is printed only this once.

    Examples:
    svc auth key rotate 0198c0de --overlap 3600
    """
    user = _user(ctx)
    with _explain_missing_key(id):
        key = ctx.api.send(api_key.GET, user_id=user, key_id=id)
        if not overlap:
            ctx.confirm(f"Rotating the API key {key.name} stops every program that uses its present secret")
        body = ApiKeyRotate(overlap_seconds=overlap)
        rotated = ctx.api.send(api_key.ROTATE, body, user_id=user, key_id=id)
    _print_secret(ctx, f"Rotated the API key {rotated.name}", rotated)


@answers((Column("id"),))
def revoke(ctx: Ctx, id: Key) -> None:
    """Revoke an API key for ever

    Examples:
    svc auth key revoke 0198c0de --yes
    """
    user = _user(ctx)
    with _explain_missing_key(id):
        key = ctx.api.send(api_key.GET, user_id=user, key_id=id)
        ctx.confirm(f"Revoking the API key {key.name} stops every program that uses it")
        ctx.api.send(api_key.REVOKE, user_id=user, key_id=id)
    ctx.out.done(f"Revoked the API key {key.name}", {"id": id}, (Column("id"),), value=id)


def _print_secret(ctx: Ctx, sentence: str, key: ApiKeySecret) -> None:
    """Print the sentence, then the secret of a key. In a pipe only the secret is printed, and nothing on
    stderr, because the logs of builds keep stderr."""
    in_pipe = not (ctx.out.terminal or ctx.out.format.as_data)
    secret_words = (
        "; its secret is not shown again"
        if in_pipe
        else f". Its secret, which is not shown again:\n  {key.secret}"
    )
    ctx.out.done(
        f"{sentence}{secret_words}",
        key,
        SECRET,
        ApiKeySecret,
        value=key.secret,
    )


def _user(ctx: Ctx) -> str:
    """Return the id of the account that is signed in."""
    return ctx.api.send(auth.HANDLE).user_id


@contextmanager
def _explain_missing_key(key_id: str) -> Iterator[None]:
    """A context that replaces every NotFound by one that names the missing key."""
    try:
        yield
    except NotFound:
        raise NotFound(f"you have no API key {key_id}; see: svc auth key list") from None
