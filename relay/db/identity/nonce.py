"""SQL statements on nonces of request signatures."""

from sqlalchemy import bindparam, delete, insert, select

from relay.db.schema.account import nonce

INSERT = insert(nonce)
SPENT = select(nonce.c.nonce).where(
    nonce.c.key_id == bindparam("key_id"), nonce.c.nonce == bindparam("nonce")
)
SWEEP = delete(nonce).where(nonce.c.expires_at < bindparam("now"))
