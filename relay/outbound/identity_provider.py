"""The relay as a client of identity providers: OpenID Connect with PKCE, and GitHub's OAuth.

    start = await providers.start(provider, redirect_uri, state, nonce, verifier)   # where the browser goes
    person = await providers.redeem(provider, redirect_uri, code, nonce, verifier, issuer)  # who came back

A person is identified by issuer and subject, never by an e-mail address, whose owner may change. Answers of a
provider are limited in size and verified. Its metadata must name the provider itself. Its token must be
signed by one of its keys with an algorithm of ALGORITHMS, be meant for this client and this sign-in, and not
have expired.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from localstore.core.encoding import b64u
from localstore.core.errors import Unauthorized, Unavailable
from localstore.core.model.limits import OIDC_ANSWER, OIDC_SUBJECT_CHARS, OIDC_TOKEN_CHARS
from relay.base.clock import now_ms
from relay.base.providers import GITHUB, Provider
from relay.base.single_flight import SingleFlight
from relay.outbound.client import Outbound, OutboundFailed
from relay.outbound.reach import Reach

T = TypeVar("T")
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEY_TYPES = ("RSA", "EC", "OKP")  # a symmetric key would be one that anybody may sign with
METADATA_FOR = 3600.0  # seconds that metadata and keys are kept
KEYS_AGAIN = 60.0  # seconds after which an unknown key makes us ask for the keys again
CLOCK_SKEW = 60  # seconds that the clock of a provider may differ
REQUEST_SECONDS = 10.0
READINGS = 64  # of metadata and keys at once, of all providers
BASIC = "client_secret_basic"  # what a provider takes that does not say
SCOPE = "openid profile"


class _Metadata(msgspec.Struct):
    """The members that the relay uses of a provider's metadata (OpenID Connect Discovery 1.0)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: list[str] = []
    authorization_response_iss_parameter_supported: bool = False


class _Tokens(msgspec.Struct):
    id_token: str = ""
    access_token: str = ""


class _GitHubUser(msgspec.Struct):
    id: int
    login: str


@dataclass(frozen=True, slots=True)
class ConfirmedPerson:
    """A person that a provider has confirmed. `handle`: the person's name at the provider, which proves
    nothing."""

    issuer: str
    subject: str
    handle: str = ""


@dataclass(slots=True)
class _ProviderKeys:
    """Metadata and keys of a provider, with the times (seconds, monotonic) at which the relay read them."""

    metadata: _Metadata
    read_at: float
    keys: Any = None
    keys_at: float = 0.0


class Providers:
    """The identity providers of a node. Used from one event loop."""

    def __init__(self, providers: tuple[Provider, ...], reach: Reach, agent: str) -> None:
        self.all = providers
        trusted = frozenset(provider.host for provider in providers)
        self._outbound = Outbound(reach, agent, trusted=trusted)
        self._known: dict[str, _ProviderKeys] = {}
        self._readings = SingleFlight(
            2 * REQUEST_SECONDS, READINGS, READINGS, "an identity provider is slow to answer; try again later"
        )

    def close(self) -> None:
        self._outbound.close()

    @classmethod
    def none(cls) -> Providers:
        """Make a Providers for a node that has no identity provider."""
        return cls((), Reach(), "")

    def find(self, name: str) -> Provider | None:
        return next((provider for provider in self.all if provider.name == name), None)

    async def start(
        self, provider: Provider, redirect_uri: str, state: str, nonce: str, verifier: str
    ) -> str:
        """The address at the provider to which the browser is sent. `redirect_uri`: the address to which the
        provider sends it back. `state`, `nonce` and `verifier`: random values of this sign-in, as OpenID
        Connect and PKCE define them. Raises Unavailable if the provider's metadata cannot be read."""
        challenge = b64u(hashlib.sha256(verifier.encode()).digest())
        query = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if provider.kind == "github":
            query["scope"] = ""
            return f"{provider.issuer}/login/oauth/authorize?{urlencode(query)}"
        query |= {"scope": SCOPE, "nonce": nonce}
        endpoint = (await self._metadata(provider)).authorization_endpoint
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def redeem(
        self,
        provider: Provider,
        redirect_uri: str,
        code: str,
        nonce: str,
        verifier: str,
        issuer: str | None,
    ) -> ConfirmedPerson:
        """Ask the provider which person signed in, by the code that the browser brought back. Returns this
        person. `redirect_uri`, `nonce`, `verifier`: as for `start`. `issuer`: the issuer that came with the
        code. Raises Unauthorized if the provider confirms no person, and Unavailable if it does not
        answer."""
        if issuer is not None and issuer.rstrip("/") != provider.answers_as:
            raise _vouches_for_nobody(provider)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        if provider.kind == "github":
            return await self._redeem_at_github(provider, form)
        metadata = await self._metadata(provider)
        if issuer is None and metadata.authorization_response_iss_parameter_supported:
            raise _vouches_for_nobody(provider)
        headers = {}
        if provider.client_secret is None:
            form["client_id"] = provider.client_id
        elif BASIC in (metadata.token_endpoint_auth_methods_supported or [BASIC]):
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": provider.client_id, "client_secret": provider.client_secret}
        tokens = await self._post(provider, metadata.token_endpoint, form, headers)
        return await self._verify(provider, metadata, tokens.id_token, nonce)

    async def _redeem_at_github(self, provider: Provider, form: dict[str, str]) -> ConfirmedPerson:
        form |= {"client_id": provider.client_id, "client_secret": provider.client_secret or ""}
        tokens = await self._post(provider, f"{provider.issuer}/login/oauth/access_token", form, {})
        token = tokens.access_token
        if not token or not token.isascii() or not token.isprintable():
            raise _vouches_for_nobody(provider)
        api = "https://api.github.com" if provider.issuer == GITHUB else f"{provider.issuer}/api/v3"
        headers = {"authorization": f"Bearer {token}", "accept": "application/vnd.github+json"}
        user = _decode(provider, await self._ask(provider, "GET", f"{api}/user", headers), _GitHubUser)
        return ConfirmedPerson(provider.issuer, str(user.id), user.login)

    async def _verify(
        self, provider: Provider, metadata: _Metadata, token: str, nonce: str
    ) -> ConfirmedPerson:
        """Verify an ID token and return the person in it. Raises Unauthorized for an invalid token."""
        from joserfc import errors, jwt  # takes 130 ms to import, on nodes with a provider only

        if not token or len(token) > OIDC_TOKEN_CHARS:
            raise _vouches_for_nobody(provider)
        try:
            try:
                decoded = jwt.decode(token, await self._keys(provider, metadata), algorithms=list(ALGORITHMS))
            except errors.InvalidKeyIdError:  # the provider may have changed its keys
                decoded = jwt.decode(
                    token, await self._keys(provider, metadata, again=True), algorithms=list(ALGORITHMS)
                )
            claims = decoded.claims
            jwt.JWTClaimsRegistry(
                now=now_ms() // 1000,
                leeway=CLOCK_SKEW,
                iss={"essential": True, "value": metadata.issuer},
                aud={"essential": True, "value": provider.client_id},
                sub={"essential": True},
                exp={"essential": True},
                iat={"essential": True},
            ).validate(claims)
        except (errors.JoseError, ValueError, TypeError, RecursionError):
            raise _vouches_for_nobody(provider) from None
        audience, subject = claims["aud"], claims["sub"]
        party = claims.get("azp")
        if (isinstance(audience, list) and len(audience) > 1 and party is None) or (
            party is not None and party != provider.client_id
        ):
            raise _vouches_for_nobody(provider)
        given = claims.get("nonce")
        if not isinstance(given, str) or not secrets.compare_digest(given.encode(), nonce.encode()):
            raise _vouches_for_nobody(provider)
        if not isinstance(subject, str) or not 0 < len(subject) <= OIDC_SUBJECT_CHARS or "\0" in subject:
            raise _vouches_for_nobody(provider)
        return ConfirmedPerson(metadata.issuer, subject, _text(claims, "preferred_username"))

    async def _metadata(self, provider: Provider) -> _Metadata:
        cached = self._known.get(provider.name)
        if cached is None or time.monotonic() - cached.read_at >= METADATA_FOR:
            await self._readings.join((provider.name, b"metadata"), self._read_metadata(provider))
        return self._known[provider.name].metadata

    async def _read_metadata(self, provider: Provider) -> None:
        url = f"{provider.issuer}/.well-known/openid-configuration"
        metadata = _decode(provider, await self._ask(provider, "GET", url, {}), _Metadata)
        if metadata.issuer.rstrip("/") != provider.issuer:
            raise _does_not_work(provider, "it says that it is another one")
        for endpoint in (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri):
            self._require_secure(provider, endpoint)
        old = self._known.get(provider.name)
        keys = (old.keys, old.keys_at) if old is not None else ()
        self._known[provider.name] = _ProviderKeys(metadata, time.monotonic(), *keys)

    def _require_secure(self, provider: Provider, endpoint: str) -> None:
        """Raise an error unless the endpoint is an https address. An http address is accepted if the issuer's
        own address is http."""
        try:
            parts = urlsplit(endpoint)
            scheme, host = parts.scheme, parts.hostname
        except ValueError:
            scheme, host = "", None
        allowed = ("https",) if provider.issuer.startswith("https:") else ("https", "http")
        if scheme not in allowed or not host or not endpoint.isascii() or not endpoint.isprintable():
            raise _does_not_work(provider, "an address of it is not one for https")

    async def _keys(self, provider: Provider, metadata: _Metadata, *, again: bool = False) -> Any:
        """The provider's public keys. `again`: request them again, at most every KEYS_AGAIN seconds."""
        cached = self._known[provider.name]
        age = time.monotonic() - cached.keys_at
        if cached.keys is None or age >= METADATA_FOR or (again and age >= KEYS_AGAIN):
            await self._readings.join((provider.name, b"keys"), self._read_keys(provider, metadata))
        return self._known[provider.name].keys

    async def _read_keys(self, provider: Provider, metadata: _Metadata) -> None:
        from joserfc.jwk import KeySet

        answer = await self._ask(provider, "GET", metadata.jwks_uri, {})
        key_set = _decode(provider, answer, dict[str, Any])
        listed = key_set.get("keys")
        usable = [
            key
            for key in (listed if isinstance(listed, list) else [])
            if isinstance(key, dict) and key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"
        ]
        cached = self._known[provider.name]
        try:
            cached.keys = KeySet.import_key_set({"keys": usable})
        except Exception:  # what a key that makes no sense raises depends on its kind
            raise _does_not_work(provider, "its keys cannot be read") from None
        cached.keys_at = time.monotonic()

    async def _post(
        self, provider: Provider, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> _Tokens:
        sent = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json", **headers}
        body = await self._ask(provider, "POST", url, sent, urlencode(form).encode())
        return _decode(provider, body, _Tokens)

    async def _ask(
        self, provider: Provider, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> bytes:
        """Send a request to the provider and return the body of its answer. Raises Unauthorized if the
        provider refuses the code of a sign-in, and Unavailable for any other failure."""
        try:
            answer = await self._outbound.send(
                method, url, headers, body, seconds=REQUEST_SECONDS, keep=OIDC_ANSWER
            )
        except (OutboundFailed, ValueError, UnicodeError):
            raise Unavailable(
                f"{provider.label} cannot be reached; try again later. Who is signed in stays so."
            ) from None
        if method == "POST" and answer.status in (400, 401):
            raise _vouches_for_nobody(provider)
        if answer.status != 200 or not answer.whole:
            raise _does_not_work(provider, f"it answers {answer.status}")
        return answer.body


def _decode(provider: Provider, body: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _does_not_work(provider, "what it answers is not what was asked for") from None


def _text(claims: Mapping[str, Any], name: str) -> str:
    text = claims.get(name)
    return text[:OIDC_SUBJECT_CHARS] if isinstance(text, str) else ""


def _vouches_for_nobody(provider: Provider) -> Unauthorized:
    return Unauthorized(f"{provider.label} did not confirm this sign-in; sign in again")


def _does_not_work(provider: Provider, why: str) -> Unavailable:
    return Unavailable(f"signing in by {provider.label} does not work now: {why}; tell the operator")
