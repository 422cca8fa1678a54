"""Listings, dependencies, advisories, artifacts of seals, and builds of the client with their installers."""

from __future__ import annotations

from localstore.core.model import advisory, artifact, dependency, distribution, listing
from localstore.core.model.dependency import Dependencies, DependencyQuery
from relay.caller import Caller, View
from relay.domain.catalog import advisory as advisories
from relay.domain.catalog import artifact as artifacts
from relay.domain.catalog import dependency as dependencies
from relay.domain.catalog import dependents
from relay.domain.catalog import distribution as distributions
from relay.domain.catalog import listing as listings
from relay.http.routing import REPOSITORIES, Reply, route, serves

serves(advisory.LIST, operation="advisory.list", name="advisory.list_advisories", flag=REPOSITORIES)(
    advisories.page
)
serves(advisory.GET, operation="advisory.get", name="advisory.get_advisory", flag=REPOSITORIES)(
    advisories.get
)
serves(artifact.LIST, operation="seal.artifacts", name="artifact.list_artifacts", cost=10)(artifacts.page)


@serves(dependency.LIST, operation="repo.dependencies", name="dependency.list_dependencies", cost=10)
async def list_dependencies(view: View, query: DependencyQuery) -> Dependencies:
    """Dependencies of a repository, from the package manifests at a seal"""
    return await dependencies.find_dependencies(view, query.ref)


serves(dependency.DEPENDENTS, operation="repo.dependents", name="dependency.list_dependents")(dependents.page)
serves(
    distribution.RELEASE, operation="distribution.get", name="distribution.client_release", errors=(404, 503)
)(distributions.release)
serves(
    distribution.DOWNLOAD,
    operation="distribution.get",
    name="distribution.client_build",
    media="application/octet-stream",
    others=(206, 304),
    errors=(416, 503),
    cost=10,
)(distributions.download)


@route(
    "GET",
    "/cli/install.sh",
    operation="distribution.get",
    name="distribution.install_sh",
    media="text/x-shellscript",
    errors=(404, 503),
)
async def install_sh(caller: Caller) -> Reply:
    """The script that installs the client on Linux and macOS; it verifies the download by its SHA-256"""
    return await distributions.script(caller, "install.sh")


@route(
    "GET",
    "/cli/install.ps1",
    operation="distribution.get",
    name="distribution.install_ps1",
    media="text/plain",
    errors=(404, 503),
)
async def install_ps1(caller: Caller) -> Reply:
    """The script that installs the client on Windows; it verifies the download by its SHA-256"""
    return await distributions.script(caller, "install.ps1")


serves(listing.GET, operation="listing.get", name="listing.get_listing")(listings.get)
serves(listing.SET, operation="listing.set", name="listing.set_listing", errors=(409,))(listings.put)
serves(listing.REMOVE, operation="listing.remove", name="listing.remove_listing", errors=(409,))(
    listings.remove
)
serves(listing.SOCIAL, operation="social.listing", name="listing.social_counts", flag="TR_SOCIAL_ENABLED")(
    listings.counts
)
