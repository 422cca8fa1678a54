"""Tables of accounts, sessions, keys and sign-in."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, LargeBinary, String, Table, Text

from relay.db.schema.base import BY_KEY, COUNTED, at, metadata

account = Table(
    "account",
    metadata,
    Column("id", String, primary_key=True),  # UUID
    Column("kind", String, nullable=False),  # user, guest
    Column("handle", String, unique=True),
    Column("email", String, unique=True),
    Column("name", String),
    Column("password_hash", String),
    Column("phase", String, nullable=False),
    Column("operator", Boolean, nullable=False, default=False),
    at("created_at"),
    at("disabled_at", True),
)

session = Table(
    "session",
    metadata,
    Column("id", String, primary_key=True),  # 32 hex digits: the 16 bytes in the capability token
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("parent_id", ForeignKey("session.id"), index=True),
    Column("kind", String, nullable=False),  # browser, cli, device, guest, script, ssh
    Column("label", String, nullable=False),
    Column("device_key_id", String),  # the key that requests of this session are bound to
    Column("caps", String, nullable=False),
    at("created_at"),
    at("expires_at"),
    at("last_used_at", True),
    at("revoked_at", True),
    Column("way", String),  # password, device_key, or the name of an identity provider
)

refresh_token = Table(
    "refresh_token",
    metadata,
    Column("hash", LargeBinary, primary_key=True),  # SHA-256; the token itself is never stored
    Column("session_id", ForeignKey("session.id"), nullable=False, index=True),
    at("expires_at"),
    at("used_at", True),
)

device_key = Table(
    "device_key",
    metadata,
    Column("id", String, primary_key=True),  # RFC 7638 thumbprint
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("ed25519", LargeBinary, nullable=False),
    Column("x25519", LargeBinary, nullable=False),
    Column("name", String, nullable=False),
    Column("registration", LargeBinary, nullable=False),  # self-signed statement
    Column("caps", String, nullable=False),  # what the key may do without a session; empty: nothing
    at("created_at"),
    at("last_used_at", True),
    at("revoked_at", True),
)

challenge = Table(
    "challenge",
    metadata,
    Column("id", String, primary_key=True),
    Column("purpose", String, nullable=False),  # register, login
    Column("account", String, nullable=False),  # account id, or the handle for a login
    Column("session_id", String),
    Column("ed25519", LargeBinary, nullable=False),
    Column("x25519", LargeBinary, nullable=False),
    Column("name", String, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    at("expires_at"),
)

pairing_code = Table(
    "pairing_code",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    at("expires_at"),
    at("used_at", True),
)

# A pairing by QR code. The new device's columns are empty until it scanned the code.
pairing = Table(
    "pairing",
    metadata,
    Column("id", String, primary_key=True),  # of the code's secret, which is not stored
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("name", String, nullable=False),  # what the new device will be called
    Column("commitment", LargeBinary, nullable=False),
    Column("opening", LargeBinary),
    Column("ed25519", LargeBinary),
    Column("x25519", LargeBinary),
    Column("nonce", LargeBinary),
    Column("registration", LargeBinary),  # self-signed statement: the new device confirmed the digits
    at("ended_at", True),  # when the key was registered, or an end refused
    Column("refused", Boolean, nullable=False, default=False),
    at("created_at"),
    at("expires_at"),
)

# Networks from which an account was signed in: guesses from there are counted by themselves.
known_address = Table(
    "known_address",
    metadata,
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    Column("network", String, primary_key=True),  # see `relay.http.address.network`
    at("seen_at"),
    **BY_KEY,
)

# Who an account is at an identity provider.
login = Table(
    "login",
    metadata,
    Column("issuer", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("provider", String, nullable=False),  # its name in the node's settings
    at("created_at"),
    at("last_used_at", True),
)

# A sign-in on its way through an identity provider; one whose person chooses a handle has a subject.
login_flow = Table(
    "login_flow",
    metadata,
    Column("hash", LargeBinary, primary_key=True),  # SHA-256 of what the browser's cookie holds
    Column("provider", String, nullable=False),
    Column("state_hash", LargeBinary, nullable=False),
    Column("nonce", String, nullable=False),
    Column("verifier", String, nullable=False),
    Column("return_to", String, nullable=False),
    Column("link_account", String),
    Column("issuer", String),
    Column("subject", String),
    Column("handle", String),
    at("expires_at"),
)

device_code = Table(
    "device_code",
    metadata,
    Column("hash", LargeBinary, primary_key=True),  # SHA-256 of the device code
    Column("user_code", String, nullable=False, unique=True),
    Column("x25519", LargeBinary, nullable=False),
    Column("ed25519", LargeBinary, nullable=False),
    Column("label", String, nullable=False),
    Column("state", String, nullable=False),  # pending, approved, denied
    Column("sealed", LargeBinary),
    Column("interval", Integer, nullable=False),
    at("polled_at", True),
    at("expires_at"),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("name", String, nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),  # SHA-256; the secret itself is never stored
    Column("previous_hash", LargeBinary, unique=True),  # of the secret before the last rotation
    at("previous_until", True),
    Column("prefix", String, nullable=False),
    Column("scopes", String, nullable=False),
    at("created_at"),
    at("last_used_at", True),
    at("expires_at", True),
    at("revoked_at", True),
)

nonce = Table(
    "nonce",
    metadata,
    Column("key_id", String, primary_key=True),
    Column("nonce", String, primary_key=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
    **BY_KEY,
)

# Written by builds before the one event log; what they leave here is moved there.
audit = Table(
    "audit",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=True),
    at("at"),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("data", Text, nullable=False),
)
