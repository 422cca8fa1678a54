"""Routes of API keys. `user_id` must be the caller's own account id; any other is answered with 404."""

from __future__ import annotations

from localstore.core.model import api_key as endpoints
from relay.domain.api_key import api_key
from relay.http.routing import serves

serves(endpoints.VALIDATE, operation="api_key.validate", per_minute=600)(api_key.validate)
serves(endpoints.LIST, operation="api_key.list", errors=(404,))(api_key.page)
serves(endpoints.CREATE, operation="api_key.create", errors=(404, 409))(api_key.create)
serves(endpoints.GET, operation="api_key.get", errors=(404,))(api_key.get)
serves(endpoints.REVOKE, operation="api_key.revoke", errors=(404,))(api_key.revoke)
serves(endpoints.ROTATE, operation="api_key.rotate", errors=(404, 409))(api_key.rotate)
