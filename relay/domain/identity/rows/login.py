"""SQL statements for signing in through an identity provider."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import bindparam, delete, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.schema.account import account, device_key, login, login_flow


@dataclass(slots=True, frozen=True)
class FlowRow:
    """An unfinished sign-in. `link_account`: the account to which the provider is to be linked. `subject`:
    the person whom the provider has named and who must choose a handle. `expires_at` is in milliseconds."""

    provider: str
    state_hash: bytes
    nonce: str
    verifier: str = field(repr=False)
    return_to: str
    link_account: str | None
    issuer: str | None
    subject: str | None
    handle: str | None
    expires_at: int


_FLOW = (
    login_flow.c.provider,
    login_flow.c.state_hash,
    login_flow.c.nonce,
    login_flow.c.verifier,
    login_flow.c.return_to,
    login_flow.c.link_account,
    login_flow.c.issuer,
    login_flow.c.subject,
    login_flow.c.handle,
    login_flow.c.expires_at,
)

INSERT_FLOW = insert(login_flow)
FLOW = select(*_FLOW).where(login_flow.c.hash == bindparam("flow"))
# A flow is used up by reading it, whatever the check then says.
TAKE_FLOW = delete(login_flow).where(login_flow.c.hash == bindparam("flow")).returning(*_FLOW)
SWEEP_FLOWS = delete(login_flow).where(login_flow.c.expires_at < bindparam("now"))

OF_PERSON = select(login.c.account_id).where(
    login.c.issuer == bindparam("issuer"), login.c.subject == bindparam("subject")
)
OF_ACCOUNT = (
    select(login.c.provider, login.c.created_at, login.c.last_used_at)
    .where(login.c.account_id == bindparam("account"))
    .order_by(login.c.created_at, login.c.issuer)
)
INSERT = insert(login)
TOUCH = (
    update(login)
    .where(
        login.c.issuer == bindparam("of_issuer"),
        login.c.subject == bindparam("of_subject"),
        login.c.account_id == bindparam("of_account"),
    )
    .values(last_used_at=bindparam("now"), provider=bindparam("of_provider"))
)
DELETE = delete(login).where(
    login.c.account_id == bindparam("account"), login.c.provider == bindparam("provider")
)
HAS_PASSWORD = select(account.c.password_hash.is_not(None)).where(account.c.id == bindparam("account"))
DEVICE_KEYS = (
    select(func.count())
    .select_from(device_key)
    .where(
        device_key.c.account_id == bindparam("account"),
        device_key.c.revoked_at.is_(None),
        device_key.c.caps != "",
    )
)


def flow_row(columns: Row) -> FlowRow:
    return FlowRow(*columns)
