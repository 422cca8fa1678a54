"""Ways out of errors about listings, signed releases, advisories and upgrades."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row


@row("not_listable", "repo visibility")
def _a_listing_is_for_everybody(place: Place) -> None:
    first_push(place)
    refused(place.ann, "repo", "listing", "--name", "Notes", says="repo visibility public")
    place.ann.ok("repo", "visibility", "public", "--yes")
    place.ann.ok("repo", "listing", "--name", "Notes")


@row("nothing_published", "repo release upload")
def _a_release_without_files_has_nothing_to_sign(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "release", "create", "v1")
    refused(place.ann, "repo", "release", "sign", "v1", says="repo release upload v1")
    place.ann.ok("repo", "release", "upload", "v1", "b.bin")
    place.ann.ok("repo", "release", "sign", "v1")


@row("conflict", "repo release view")
def _what_is_signed_is_what_is_here(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "release", "create", "v1", "a.txt")
    refused(place.ann, "repo", "release", "sign", "v1", "b.bin", says="repo release view")
    assert "a.txt" in place.ann.ok("repo", "release", "view", "v1", "--jq", ".assets[].name").out
    place.ann.ok("repo", "release", "sign", "v1", "a.txt")


@row("not_found", "advisories")
def _advisories_are_listed(place: Place) -> None:
    refused(place.ann, "advisories", "0", says="advisories")
    place.ann.ok("advisories")
