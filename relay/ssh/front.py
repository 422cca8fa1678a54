"""The SSH server of the app over SSH. It decides which connections may sign in, with which key, and how many
there may be."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import asyncssh

from localstore.core.errors import RateLimited
from relay.base.environment import StartRefused
from relay.base.ssh_settings import SshSettings
from relay.capacity.limiter import Attempts
from relay.http.address import network_of
from relay.node import Node
from relay.ssh import host_key, people
from relay.ssh.agent import Agent
from relay.ssh.door import SshDoor
from relay.ssh.people import KeyHolder
from relay.ssh.process import Processes
from relay.ssh.session import Session

LOGIN_SECONDS = 20
ALIVE_SECONDS, ALIVE_COUNT = 30, 3  # between two signs of life; how many may be missing
KEYS_OFFERED = 10
OF_ACCOUNT, OF_ADDRESS = 10, 20  # sessions; connections
UNKNOWN = (
    "svc: this key is not one of an account here. On a device that is signed in, with the key in your "
    "ssh-agent, run: svc auth device ssh\r\n"
)
_CONNECTIONS = Attempts("ssh.address", 300, 600, "connections by SSH of a network")
_ALGORITHM, _BLOB = "ssh-ed25519", 51  # bytes of a public key on the wire, of which the last 32 are the point
_KEX = ("curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")


class Front:
    """The SSH server of a node. Call `start`, and later `stop`."""

    def __init__(self, node: Node, door: SshDoor, settings: SshSettings) -> None:
        self.node, self.door, self.settings = node, door, settings
        self.processes = Processes(settings)
        self.sessions = 0
        self._of_account: Counter[str] = Counter()
        self._of_address: Counter[str] = Counter()
        self._guests: set[_Guest] = set()
        self._unproven: dict[_Guest, None] = {}  # oldest first
        self._listener: Any = None

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def start(self) -> str:
        """Start listening. Returns a line for the operator that names the port. Raises StartRefused if the
        port or the host key cannot be used, or processes cannot be confined."""
        data, settings = self.node.config.data, self.settings
        key = host_key.load(data)
        await self.processes.require_confinement(data)
        try:
            self._listener = await asyncssh.listen(
                settings.host,
                settings.port,
                server_factory=lambda: _Guest(self),
                server_host_keys=[key],
                server_version="svc",
                config=None,
                encoding=None,
                line_editor=False,
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                gss_kex=False,
                gss_auth=False,
                public_key_auth=True,
                signature_algs=[_ALGORITHM],
                kex_algs=list(_KEX),
                compression_algs=None,
                agent_forwarding=False,
                x11_forwarding=False,
                allow_scp=False,
                login_timeout=LOGIN_SECONDS,
                keepalive_interval=ALIVE_SECONDS,
                keepalive_count_max=ALIVE_COUNT,
            )
        except OSError as error:
            raise StartRefused(
                f"cannot listen for SSH on {settings.host} port {settings.port}: {error.strerror}"
            ) from None
        port = self._listener.get_port()
        return (
            f"relay: the app answers ssh on {settings.host} port {port}, host key {host_key.fingerprint(key)}"
        )

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()
        for guest in list(self._guests):
            guest.dismiss()
        await self._wait_empty()
        for guest in list(self._guests):
            guest.close()
        await self._wait_empty()

    async def _wait_empty(self) -> None:
        """Wait until all connections have ended, at most a few seconds."""
        for _ in range(100):
            if not self._guests and not self.sessions:
                break
            await asyncio.sleep(0.05)

    def take(self, guest: _Guest) -> bool:
        """Admit a new connection that has not signed in yet, and count it. Returns False if there are too
        many or the node stops."""
        node = self.node
        if len(self._guests) - len(self._unproven) >= 4 * self.settings.sessions or node.stopping:
            return False
        if node.config.rate_limits and self._of_address[guest.network] >= OF_ADDRESS:
            return False
        try:
            _CONNECTIONS.count(node.limiter, guest.network)
        except RateLimited:
            return False
        self._of_address[guest.network] += 1
        self._guests.add(guest)
        self._unproven[guest] = None
        if len(self._unproven) > 2 * self.settings.sessions:
            self._drop_one()
        return True

    def _drop_one(self) -> None:
        """Find the address range (`network`) with the most connections that have not signed in, and end the
        oldest of these connections. So a flood of connections ends its own ones, and clients that sign in
        promptly are spared."""
        held = Counter(connection.network for connection in self._unproven)
        crowded, _ = held.most_common(1)[0]
        oldest = next(connection for connection in self._unproven if connection.network == crowded)
        del self._unproven[oldest]
        oldest.abort()

    def prove(self, guest: _Guest) -> None:
        """Record that this connection has signed in."""
        self._unproven.pop(guest, None)

    def leave(self, guest: _Guest) -> None:
        if guest in self._guests:
            self._guests.discard(guest)
            self._unproven.pop(guest, None)
            self._of_address[guest.network] -= 1

    def seat(self, person: KeyHolder) -> str:
        """Count a session of this person. Returns the reason why it may not begin, or "" if it may."""
        if self.sessions >= self.settings.sessions:
            return "too many people are here over SSH; try again later"
        if self.node.config.rate_limits and self._of_account[person.account_id] >= OF_ACCOUNT:
            return f"you have {OF_ACCOUNT} sessions over SSH already; close one"
        self.sessions += 1
        self._of_account[person.account_id] += 1
        return ""

    def rise(self, person: KeyHolder) -> None:
        self.sessions -= 1
        self._of_account[person.account_id] -= 1


class _Guest(asyncssh.SSHServer):
    """One SSH connection. `person`: the holder of the key whose signature was verified."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._connection: Any = None
        self.network = self._address = ""
        self._user = ""
        self._offered = 0
        self._banner_sent = False
        self._session: Session | None = None
        self._candidate: KeyHolder | None = None
        self.person: KeyHolder | None = None
        self._agent: Agent | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        peer = conn.get_extra_info("peername")
        self._address = str(peer[0]) if peer else "unknown"
        self.network = network_of(self._address)
        # asyncssh would listen at a path, where every process of this user may ask the agent for anything
        conn.create_agent_listener = self._forward  # type: ignore[method-assign]
        if not self._front.take(self):
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._front.leave(self)

    def close(self) -> None:
        self._connection.close()

    def dismiss(self) -> None:
        """End the connection because the relay stops. If the connection has a session, the user gets a
        message, and the client then disconnects by itself. If the relay disconnected first, the client would
        not show the message."""
        if self._session is None or not self._session.dismiss():
            self.close()

    def abort(self) -> None:
        self._connection.abort()

    def auth_completed(self) -> None:
        """Record who signed in. A connection that does not request a session soon is ended."""
        self.person = self._candidate
        self._front.prove(self)
        if self.person is not None:
            self._agent = Agent(self._connection, self.person.public)
        asyncio.get_running_loop().call_later(LOGIN_SECONDS, self._require_work)

    async def _forward(self) -> bool:
        """Whether the client may forward its ssh-agent, which only the relay will use. Returns False if the
        client has not signed in yet."""
        if self._agent is None:
            return False
        self._agent.forwarded = True
        return True

    def _require_work(self) -> None:
        if self._session is None or not self._session.begun:
            self._connection.abort()

    def begin_auth(self, username: str) -> bool:
        self._user = username[:64]
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether an account has this key. A client may ask this for many keys, even for keys of other
        people, before it signs with one. The key that it asked about last is the one that signs in: asyncssh
        checks the signature right after this answer and then calls `auth_completed`."""
        self._offered += 1
        if self._offered > 2 * KEYS_OFFERED:
            self._connection.abort()
            return False
        blob = key.public_data
        if key.get_algorithm() != _ALGORITHM or len(blob) != _BLOB:
            return False
        person = await people.find(self._front.node, blob[-32:])
        if person is None:
            if not self._banner_sent:
                self._banner_sent = True
                self._connection.send_auth_banner(UNKNOWN)
            return False
        self._candidate = person
        return True

    def session_requested(self) -> asyncssh.SSHServerSession[bytes] | bool:
        if self.person is None or self._agent is None or self._session is not None:
            return False
        self._session = Session(self._front, self.person, self._agent, self._user, self._address, self.close)
        return self._session
