"""Requests for the data of settings and of the account, made as `tui.reads.Read`."""

from __future__ import annotations

from localstore.core.model import access, auth, organisation, path, webhook
from localstore.core.model.access import Transfer
from localstore.core.model.auth import RegisteredKey, Session
from localstore.core.model.organisation import Member, MemberInvite, Organisation
from localstore.core.model.path import PathRule
from localstore.core.model.webhook import Webhook
from svc.flows.proposal.freed import Waiting, read_waiting
from tui.reads import Read

PEOPLE, RULES, HOOKS, SESSIONS, KEYS = 500, 500, 100, 500, 200


def webhooks(repo_id: str) -> Read[list[Webhook]]:
    return Read(
        f"repos/{repo_id}/webhooks",
        list[Webhook],
        lambda api: list(api.items(webhook.LIST, limit=HOOKS, id=repo_id)),
    )


def path_rules(repo_id: str) -> Read[list[PathRule]]:
    return Read(
        f"repos/{repo_id}/paths",
        list[PathRule],
        lambda api: list(api.items(path.LIST, limit=RULES, id=repo_id)),
    )


def waiting_merges(repo_id: str) -> Read[list[Waiting]]:
    """Returns a request for the open proposals whose merges are signed in advance."""
    return Read(f"repos/{repo_id}/waiting_merges", list[Waiting], lambda api: read_waiting(api, repo_id))


def transfers() -> Read[list[Transfer]]:
    """Returns a request for the open transfers of repositories, both from the account and to it."""
    return Read("transfers", list[Transfer], lambda api: list(api.items(access.TRANSFERS, limit=PEOPLE)))


def organisations() -> Read[list[Organisation]]:
    """Returns a request for the organisations in which the account is a member."""
    return Read(
        "organisations",
        list[Organisation],
        lambda api: list(api.items(organisation.LIST, limit=PEOPLE)),
    )


def members(handle: str) -> Read[list[Member]]:
    return Read(
        f"organisations/{handle}/members",
        list[Member],
        lambda api: list(api.items(organisation.MEMBERS, limit=PEOPLE, org=handle)),
    )


def member_invites(handle: str) -> Read[list[MemberInvite]]:
    return Read(
        f"organisations/{handle}/invites",
        list[MemberInvite],
        lambda api: list(api.items(organisation.INVITES, limit=PEOPLE, org=handle)),
    )


def sessions() -> Read[list[Session]]:
    return Read("account/sessions", list[Session], lambda api: list(api.items(auth.SESSIONS, limit=SESSIONS)))


def device_keys() -> Read[list[RegisteredKey]]:
    return Read("account/devices", list[RegisteredKey], lambda api: list(api.items(auth.KEYS, limit=KEYS)))
