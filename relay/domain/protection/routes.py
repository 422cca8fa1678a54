"""Routes of the protection rules of a repository."""

from __future__ import annotations

from localstore.core.model import protection
from relay.domain.protection import protection as rules
from relay.http.routing import serves

serves(protection.LIST, operation="protection.list", name="protection.list_protections")(rules.page)
serves(protection.SET, operation="protection.set", name="protection.set_protection", errors=(409,))(rules.put)
serves(protection.CLEAR, operation="protection.clear", name="protection.clear_protection")(rules.clear)
