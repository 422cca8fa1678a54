"""Nonces of request signatures."""

from sqlalchemy import bindparam, delete, insert

from relay.db.schema import nonce

INSERT = insert(nonce)
SWEEP = delete(nonce).where(nonce.c.expires_at < bindparam("now"))
