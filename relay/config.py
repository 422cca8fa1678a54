"""The configuration of a node, read and checked as a whole at start.

Strict mode (`relay serve`) refuses to start when anything is missing or wrong, with one line that says what
to do. `--dev` sets defaults for a first try. The variables are those in the service specification, section
Operation, and TR_DATA_DIR, TR_DEVICE_KEY_SIGN_IN, TR_DEVICE_KEY_SIGN_UP, TR_LOCAL_SIGN_UP, TR_OIDC_PROVIDERS,
TR_OIDC_SIGN_UP, TR_SOURCE_URL, TR_RATE_LIMITS, TR_PROXY_HOPS, TR_AUDIT_DAYS, TR_OUTBOUND_ALLOW, and the
variables of quotas, of the disk reserve and of SSH.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from localstore.core.errors import Invalid
from localstore.core.identity.request_signature import authority_of
from localstore.core.model.limits import GIB, MIB
from localstore.core.numbers import whole_number
from relay.base import database_url as urls
from relay.base import edition, providers, ssh_settings
from relay.base.environment import Environment, StartRefused
from relay.base.flags import CONDITIONAL_PUT, ConditionalPut, Flags, parse_switch
from relay.base.providers import Provider
from relay.capacity import creation
from relay.capacity.quota import Quota
from relay.capacity.reserve import Space

BOOT_SECRET_CHARS = 16
DEV_SECRETS = ("TR_ENROLL_CHALLENGE", "TR_VALIDATE_JWT_AUD", "RELAY_ADMIN_SECRET", "MANAGED_KEY_SECRET")
# What an account may have, how many accounts an address may make in a day, and what the disk keeps free.
QUOTA_BYTES, QUOTA_OBJECTS, QUOTA_REPOSITORIES = 20 * GIB, 5_000_000, 1000
QUOTA_ACCOUNTS, DEV_ACCOUNTS = 20, 1000
RESERVE_BYTES, RESERVE_INODES = 512 * MIB, 1000
AUDIT_DAYS = 365
GIT_CACHE_BYTES = 10 * GIB
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LEVELS = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "error": "error",
    "off": "critical",
}


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets that the operator gives to the node, each None if not given. `managed_key`: decoded, 32
    bytes."""

    enroll_challenge: str
    validate_jwt_aud: str
    admin: str | None
    managed_key: bytes | None


@dataclass(frozen=True, slots=True)
class S3:
    endpoint: str
    bucket: str
    region: str
    access_key: str | None
    secret_key: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where packs are stored: in files of the data folder, or in the bucket of `s3`. `owner`: the name of
    this node, which the bucket records so that no other node uses it."""

    data: Path
    s3: S3 | None
    conditional_put: ConditionalPut
    owner: str


@dataclass(frozen=True, slots=True)
class E2eeScopes:
    single_user: bool
    org: bool
    private: bool


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a node. `public_url`: the origin without a slash at its end; `proxy_hops`: the
    number of reverse proxies whose X-Forwarded-For is trusted; `tls`: (certificate chain, key)."""

    dev: bool
    host: str
    port: int
    data: Path
    public_url: str
    node_name: str
    edition: str
    source_link: str  # empty: this node serves its own source
    flags: Flags
    e2ee: E2eeScopes
    database_url: str = field(repr=False)
    migration_database_url: str = field(repr=False)
    secrets: Secrets = field(repr=False)
    providers: tuple[Provider, ...]
    oidc_sign_up: bool
    storage: Storage
    tls: tuple[Path, Path] | None
    operator_email: str | None
    device_key_sign_in: bool
    device_key_sign_up: bool
    local_sign_up: bool
    rate_limits: bool
    proxy_hops: int
    log_level: str
    quota: Quota
    reserve: Space
    audit_days: int
    git_cache: int
    client_builds: Path | None
    outbound_allow: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    ssh: ssh_settings.SshSettings | None

    def at(self, port: int) -> Config:
        """A copy of this configuration for the port that was bound. With `--dev` and port 0, the origin is
        known only after binding."""
        if self.port == port:
            return self
        derived = self.public_url == dev_origin(self.host, self.port)
        origin = dev_origin(self.host, port) if derived else self.public_url
        return replace(self, port=port, public_url=origin)

    @property
    def source_url(self) -> str:
        """The address of the node's source code (AGPL-3.0-or-later, section 13)."""
        return self.source_link or f"{self.public_url}/source.tar.gz"

    @property
    def secure(self) -> bool:
        """Whether people reach the node by TLS. The session cookie is then named `__Host-session`."""
        return self.public_url.startswith("https://")

    def authorities(self) -> frozenset[str]:
        """The host names of this node, with ports, that a request signature may cover."""
        own = {authority_of(self.public_url)}
        if self.dev:
            own |= {f"{name}:{self.port}" for name in _LOOPBACK}
        return frozenset(own)

    @property
    def shared(self) -> bool:
        """Whether other processes may serve the same database and data folder."""
        return urls.is_postgres(self.database_url)


def dev_origin(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def read(variables: Mapping[str, str], *, dev: bool, host: str, port: int, data: Path | None) -> Config:
    """Read the configuration and check it as a whole. Raises StartRefused, with one line that says what to
    do."""
    environment = Environment(variables)
    try:
        return _read(environment, dev, host, port, data)
    except Invalid as error:
        raise StartRefused(error.detail) from None


def _read(env: Environment, dev: bool, host: str, port: int, data: Path | None) -> Config:
    named = env.get("TR_DATA_DIR")  # read even if `data` comes first
    folder = (data or Path(named or "relay-data")).absolute()
    public_url = _public_url(env, dev, host, port)
    database_url = _database_url(env, folder, "DATABASE_URL")
    _check_edition(env, dev)
    config = Config(
        dev=dev,
        host=host,
        port=port,
        data=folder,
        public_url=public_url,
        node_name=_node_name(env) or (urlsplit(public_url).hostname or host),
        edition=edition.EDITION,
        source_link=_source_link(env) or edition.SOURCE_URL,
        flags=Flags.read(env.get),
        e2ee=E2eeScopes(
            single_user=_read_switch(env, "TR_SINGLE_USER_E2EE_ENABLED", False),
            org=_read_switch(env, "TR_ORG_E2EE_ENABLED", False),
            private=_read_switch(env, "TR_PRIVATE_E2EE_ENABLED", False),
        ),
        database_url=database_url,
        migration_database_url=_database_url(env, folder, "MIGRATION_DATABASE_URL", "DATABASE_URL"),
        secrets=_read_secrets(env, dev),
        providers=providers.read(env, public_url, dev=dev),
        oidc_sign_up=_read_switch(env, "TR_OIDC_SIGN_UP", dev),
        storage=_read_storage(env, folder),
        tls=_read_tls(env, dev),
        operator_email=_operator_email(env),
        device_key_sign_in=_read_switch(env, "TR_DEVICE_KEY_SIGN_IN", True),
        device_key_sign_up=_read_switch(env, "TR_DEVICE_KEY_SIGN_UP", dev),
        local_sign_up=_read_switch(env, "TR_LOCAL_SIGN_UP", dev),
        rate_limits=_read_switch(env, "TR_RATE_LIMITS", True),
        proxy_hops=env.number("TR_PROXY_HOPS", 0, 0, 8),
        log_level=log_level(env),
        quota=_read_quota(env, dev),
        reserve=Space(
            env.number("TR_RESERVE_BYTES", RESERVE_BYTES, 0, 2**62),
            env.number("TR_RESERVE_INODES", RESERVE_INODES, 0, 2**62),
        ),
        git_cache=env.number("TR_GIT_CACHE_BYTES", GIT_CACHE_BYTES, 0, 2**62),
        audit_days=env.number("TR_AUDIT_DAYS", AUDIT_DAYS, 1, 36_500),
        client_builds=_client_builds(env),
        outbound_allow=_read_networks(env, "TR_OUTBOUND_ALLOW"),
        ssh=ssh_settings.read(env, host),
    )
    env.require_all_read("TR_")
    _check_password(env, config)
    _check_sign_in(env, config)
    return config


def _check_sign_in(env: Environment, config: Config) -> None:
    """Raise StartRefused for a way to make accounts that is switched on and cannot work."""
    up_by_key = config.device_key_sign_up and env.get("TR_DEVICE_KEY_SIGN_UP") is not None
    if up_by_key and not config.device_key_sign_in:
        raise StartRefused("TR_DEVICE_KEY_SIGN_UP is on, but TR_DEVICE_KEY_SIGN_IN is off")
    if config.oidc_sign_up and env.get("TR_OIDC_SIGN_UP") is not None and not config.providers:
        raise StartRefused(
            "TR_OIDC_SIGN_UP is on, but neither RAUTHY_URL nor TR_OIDC_PROVIDERS names an identity provider"
        )


def _check_password(env: Environment, config: Config) -> None:
    """Raise StartRefused for a password of a PostgreSQL that no URL names; the relay would use SQLite."""
    used = (config.database_url, config.migration_database_url)
    if env.secret("POSTGRES_PASSWORD") is not None and not any(map(urls.is_postgres, used)):
        raise StartRefused(
            "POSTGRES_PASSWORD is set, but DATABASE_URL names no PostgreSQL database; set it to "
            "postgresql://USER@HOST/NAME, or unset POSTGRES_PASSWORD"
        )


def _node_name(env: Environment) -> str | None:
    name = env.get("TR_NODE_NAME")
    if name is not None and not name.isprintable():
        raise StartRefused(f"TR_NODE_NAME={name!r} has characters that cannot be shown")
    return name


def _source_link(env: Environment) -> str | None:
    link = env.get("TR_SOURCE_URL")
    if link is not None and not _is_web_address(link):
        raise StartRefused(f"TR_SOURCE_URL={link!r} is not an address, https://…")
    return link


def _operator_email(env: Environment) -> str | None:
    name = "INITIAL_RELAY_ADMIN_EMAIL"
    email = env.get(name)
    if email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
        raise StartRefused(f"{name}={email!r} is not an e-mail address")
    return email


def _client_builds(env: Environment) -> Path | None:
    folder_name = env.get("TR_CLIENT_BUILDS")
    folder = Path(folder_name).absolute() if folder_name else None
    if folder is not None and not (folder / "release.json").is_file():
        raise StartRefused(f"TR_CLIENT_BUILDS={folder} has no release.json")
    return folder


def _read_networks(env: Environment, name: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """The addresses and networks that the variable `name` lists, separated by commas. Raises StartRefused if
    it contains anything else."""
    parts = [part.strip() for part in (env.get(name) or "").split(",")]
    try:
        return tuple(ipaddress.ip_network(part) for part in parts if part)
    except ValueError as error:
        raise StartRefused(f"{name} names addresses and networks, such as 10.1.2.0/24: {error}") from None


def read_quotas(variables: Mapping[str, str]) -> Quota:
    """The limits of accounts. The rest of the configuration is not read."""
    return _read_quota(Environment(variables), False)


def _read_quota(env: Environment, dev: bool) -> Quota:
    return Quota(
        bytes=env.number("TR_QUOTA_BYTES", QUOTA_BYTES, 0, 2**61),
        objects=env.number("TR_QUOTA_OBJECTS", QUOTA_OBJECTS, 0, 2**61),
        repositories=env.number("TR_QUOTA_REPOSITORIES", QUOTA_REPOSITORIES, 0, 2**61),
        accounts=env.number("TR_QUOTA_ACCOUNTS", DEV_ACCOUNTS if dev else QUOTA_ACCOUNTS, 0, 2**31),
        creations=_read_creations(env),
    )


def _read_creations(env: Environment) -> dict[str, int]:
    """How many things of each kind an account may create in an hour. The defaults are overridden by
    TR_QUOTA_CREATIONS, such as `labels=100,refs=1000`."""
    name, limits = "TR_QUOTA_CREATIONS", dict(creation.DEFAULTS)
    named: set[str] = set()
    for setting in filter(None, (env.get(name) or "").split(",")):
        kind, _, most = (part.strip() for part in setting.partition("="))
        number = whole_number(most, 15)
        if kind not in limits or number is None:
            raise StartRefused(f"{name}={setting!r}: write KIND=NUMBER, with a kind of: {', '.join(limits)}")
        if kind in named:
            raise StartRefused(f"{name} names {kind} twice; keep one of them")
        named.add(kind)
        limits[kind] = number
    return limits


def migration_urls(variables: Mapping[str, str], data: Path | None) -> tuple[str, str]:
    """Returns (URL of the database that `relay migrate` changes, URL with which relays open this database
    afterwards). The rest of the configuration is not read."""
    env = Environment(variables)
    folder = (data or Path(env.get("TR_DATA_DIR") or "relay-data")).absolute()
    served = _database_url(env, folder, "DATABASE_URL", "MIGRATION_DATABASE_URL")
    return _database_url(env, folder, "MIGRATION_DATABASE_URL", "DATABASE_URL"), served


def read_storage(variables: Mapping[str, str], data: Path | None) -> Storage:
    """Where packs are stored. The rest of the configuration is not read."""
    env = Environment(variables)
    try:
        return _read_storage(env, (data or Path(env.get("TR_DATA_DIR") or "relay-data")).absolute())
    except Invalid as error:
        raise StartRefused(error.detail) from None


def _read_storage(env: Environment, folder: Path) -> Storage:
    owner = (env.get("TR_PUBLIC_URL") or f"{folder}").rstrip("/").lower()
    return Storage(folder, _read_s3(env), Flags.read(env.get).conditional_put, owner)


def _database_url(env: Environment, folder: Path, *names: str) -> str:
    """The database URL in the first variable of `names` that is set. If none is set, it is the URL of a
    SQLite file in `folder`. POSTGRES_PASSWORD is added to a URL without a password."""
    candidates = (env.secret(name) for name in names)
    url = next(filter(None, candidates), None) or f"sqlite:///{folder / 'relay.db'}"
    return urls.with_password(urls.check(url), env.secret("POSTGRES_PASSWORD"))


def log_level(env: Environment) -> str:
    """The log level of the first directive in RUST_LOG that has no target (`info,hub=debug` means info).
    Raises StartRefused if there is none."""
    for directive in (env.get("RUST_LOG") or "info").split(","):
        word = directive.strip().lower()
        if word in _LEVELS:
            return _LEVELS[word]
    raise StartRefused(f"RUST_LOG names none of the levels {', '.join(_LEVELS)}")


def _read_switch(env: Environment, name: str, default: bool) -> bool:
    return parse_switch(name, env.get(name), default)


def _public_url(env: Environment, dev: bool, host: str, port: int) -> str:
    url = env.get("TR_PUBLIC_URL")
    if url is None:
        if dev:
            return dev_origin(host, port)
        raise StartRefused("TR_PUBLIC_URL is not set; set it to the origin people open, https://HOST")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise StartRefused(f"TR_PUBLIC_URL={url} is not an origin; expected https://HOST") from None
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise StartRefused(
            f"TR_PUBLIC_URL={url} has more than an origin; a node lives at the root of its host"
        )
    authority_of(url)
    if parts.scheme == "http" and not dev and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise StartRefused(
            f"TR_PUBLIC_URL={url} is not encrypted; put a proxy with TLS before the relay and name https://"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _check_edition(env: Environment, dev: bool) -> None:
    edition_name = env.get("TR_EDITION")
    if edition_name is None and not dev:
        raise StartRefused(f"TR_EDITION is not set; this build is {edition.EDITION}")
    if edition_name is not None and edition_name != edition.EDITION:
        raise StartRefused(f"TR_EDITION={edition_name} does not match the compiled edition {edition.EDITION}")


def _read_secrets(env: Environment, dev: bool) -> Secrets:
    managed = env.secret("MANAGED_KEY_SECRET")
    if managed is not None and not re.fullmatch("[0-9a-fA-F]{64}", managed):
        raise StartRefused("MANAGED_KEY_SECRET is not 32 bytes in hex (64 digits)")
    return Secrets(
        enroll_challenge=_boot_secret(env, "TR_ENROLL_CHALLENGE", dev),
        validate_jwt_aud=_boot_secret(env, "TR_VALIDATE_JWT_AUD", dev),
        admin=env.secret("RELAY_ADMIN_SECRET"),
        managed_key=bytes.fromhex(managed) if managed else None,
    )


def _boot_secret(env: Environment, name: str, dev: bool) -> str:
    value = env.secret(name)
    if value is None and not dev:
        raise StartRefused(
            f"{name} is not set; give it or {name}_FILE at least {BOOT_SECRET_CHARS} characters"
        )
    if value is not None and len(value) < BOOT_SECRET_CHARS:
        raise StartRefused(f"{name} is shorter than {BOOT_SECRET_CHARS} characters")
    return value or ""


def _read_s3(env: Environment) -> S3 | None:
    env.require_beside("S3_ENDPOINT", "S3_REGION", "S3_ACCESS_KEY", "S3_SECRET_KEY", CONDITIONAL_PUT)
    endpoint, bucket = env.get("S3_ENDPOINT"), env.get("S3_BUCKET")
    if endpoint is None and bucket is None:
        return None
    if endpoint is None or bucket is None:
        raise StartRefused("S3_ENDPOINT and S3_BUCKET go together; one of them is missing")
    if not _is_web_address(endpoint):
        raise StartRefused(f"S3_ENDPOINT={endpoint} is not the address of an object store, https://HOST")
    if not _BUCKET.fullmatch(bucket):
        raise StartRefused(f"S3_BUCKET={bucket} is not the name of a bucket: a-z, A-Z, 0-9, '.', '_' and '-'")
    region = env.get("S3_REGION") or "us-east-1"
    access, secret = env.secret("S3_ACCESS_KEY"), env.secret("S3_SECRET_KEY")
    if (access is None) != (secret is None):
        missing = "S3_ACCESS_KEY" if access is None else "S3_SECRET_KEY"
        raise StartRefused(f"S3_ACCESS_KEY and S3_SECRET_KEY go together; {missing} is missing")
    return S3(endpoint, bucket, region, access, secret)


def _is_web_address(url: str) -> bool:
    """Whether the text is an http or https address without a query, which has no sign that is not ASCII."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    whole = bool(re.fullmatch("[!-~]+", url)) and not parts.query and not parts.fragment
    return whole and parts.scheme in ("http", "https") and bool(parts.hostname)


def _read_tls(env: Environment, dev: bool) -> tuple[Path, Path] | None:
    """The files of the node's TLS certificate, as (certificate, key). Returns None if the variables name no
    files and the default files do not exist, as on a node behind a proxy."""
    named = env.get("SSL_CERT_PATH"), env.get("SSL_KEY_PATH")
    if dev and not any(named):
        return None
    paths = Path(named[0] or "./certs/fullchain.pem"), Path(named[1] or "./certs/privkey.pem")
    missing = [path for path in paths if not path.is_file()]
    if missing and any(named):
        raise StartRefused(f"SSL_CERT_PATH and SSL_KEY_PATH name files; {missing[0]} does not exist")
    return None if missing else paths
