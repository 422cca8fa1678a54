"""Ways out of errors about organisations."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import refused, row
from tests.campaign.world import Machine


@row("forbidden", "org member list")
@row("invite_pending", "org member role")
@row("last_admin", "org member role")
@row("not_found", "org member list", "org list", "org invite list")
@row("organisation_owns", "repo transfer")
@row("through_organisation", "org edit", "org member role")
@row("usage", "org edit")
def _an_organisation_of_two(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    bob.ok("login", "--device-key", "--handle", "bob-orgs", where=place.base)
    at = {"where": place.base}
    place.ann.ok("org", "create", "orgs-acme")
    refused(bob, "org", "view", "orgs-acme", says="org list", **at)
    refused(bob, "repo", "create", "orgs-acme/app", says="org list", **at)
    bob.ok("org", "list", **at)
    refused(bob, "org", "invite", "accept", "orgs-acme", says="org invite list", **at)
    refused(place.ann, "org", "member", "remove", "orgs-acme", "bob-orgs", "--yes", says="org member list")
    place.ann.ok("org", "member", "list", "orgs-acme")
    place.ann.ok("org", "member", "add", "orgs-acme", "bob-orgs")
    again = ("org", "member", "add", "orgs-acme", "bob-orgs", "--role", "admin")
    refused(place.ann, *again, says="org member role orgs-acme bob-orgs ROLE")
    bob.ok("org", "invite", "list", **at)
    bob.ok("org", "invite", "accept", **at)
    refused(bob, "repo", "create", "orgs-acme/app", says="org member list orgs-acme", **at)
    bob.ok("org", "member", "list", "orgs-acme", **at)
    refused(place.ann, "org", "leave", "orgs-acme", "--yes", says="org member role orgs-acme HANDLE admin")
    place.ann.ok("org", "member", "role", "orgs-acme", "bob-orgs", "admin")
    bob.ok("repo", "create", "orgs-acme/app", **at)
    theirs = ("repo", "collaborator", "remove", "bob-orgs", "--yes", "-R", "orgs-acme/app")
    refused(place.ann, *theirs, says="org member role orgs-acme bob-orgs member")
    _a_role_of_all_members(place)
    refused(place.ann, "org", "delete", "orgs-acme", "--yes", says="repo transfer")
    place.ann.ok("repo", "transfer", "bob-orgs", "--yes", "-R", "orgs-acme/app")
    bob.ok("repo", "transfer-accept", "--yes", **at)
    place.ann.ok("org", "delete", "orgs-acme", "--yes")


def _a_role_of_all_members(place: Place) -> None:
    """Bob is a member of the organisation, and so is whoever is in it."""
    refused(place.ann, "org", "edit", "orgs-acme", says="org edit orgs-acme --base-role read")
    place.ann.ok("org", "edit", "orgs-acme", "--base-role", "read", "--yes")
    place.ann.ok("org", "member", "role", "orgs-acme", "bob-orgs", "member")
    theirs = ("repo", "collaborator", "remove", "bob-orgs", "--yes", "-R", "orgs-acme/app")
    refused(place.ann, *theirs, says="org edit orgs-acme --base-role none")
    place.ann.ok("org", "edit", "orgs-acme", "--base-role", "none", "--yes")
    place.ann.ok("org", "member", "role", "orgs-acme", "bob-orgs", "admin")


@row("usage", "repo transfer")
def _a_repository_is_not_offered_to_a_verb(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    bob.ok("login", "--device-key", "--handle", "bob-transfers", where=place.base)
    refused(place.ann, "repo", "transfer", "accept", "--yes", says="repo transfer HANDLE")
    place.ann.ok("repo", "transfer", "bob-transfers", "--yes")
    bob.ok("repo", "transfer-accept", place.repo, "--yes", where=place.base)
