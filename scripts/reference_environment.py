"""Writes the page on environment variables, and compares it with the names that the code reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from relay.capacity import creation

ROOT = Path(__file__).resolve().parent.parent


class Variable(NamedTuple):
    """The description of a variable. `default`: a value, or what happens, if the variable is not set.
    `strict`: whether `relay serve` without `--dev` needs the variable to start."""

    default: str
    meaning: str
    strict: bool = False


_UNUSED = "Read and checked at start; nothing in this build uses it yet."
_NOT_YET = "Checked at start; this build has no such feature yet."

RELAY: dict[str, Variable] = {
    "TR_DATA_DIR": Variable("`./relay-data`", "Data folder; `--data DIR` comes first."),
    "TR_PUBLIC_URL": Variable(
        "with `--dev` the address it listens on",
        "Origin that people open, nothing behind the host. Sign-ins and request signatures are bound to it.",
        True,
    ),
    "TR_EDITION": Variable(
        "the built edition with `--dev`",
        "Must equal the edition of the build, `self-hosted-community`.",
        True,
    ),
    "TR_ENROLL_CHALLENGE": Variable(
        "made and kept with `--dev`", "Boot secret, at least 16 characters.", True
    ),
    "TR_VALIDATE_JWT_AUD": Variable(
        "made and kept with `--dev`", "Boot secret, at least 16 characters.", True
    ),
    "TR_NODE_NAME": Variable("host of the public URL", "Name that clients show for this node."),
    "TR_SOURCE_URL": Variable(
        "address of the release", "Where this node's source code is (AGPL, section 13)."
    ),
    "TR_DEVICE_KEY_SIGN_IN": Variable(
        "on", "Whether people may sign in with a device key, without a browser."
    ),
    "TR_DEVICE_KEY_SIGN_UP": Variable(
        "on with `--dev`, else off", "Whether a device key may claim a free handle, which makes an account."
    ),
    "TR_LOCAL_SIGN_UP": Variable("on with `--dev`, else off", "Whether the sign-in page creates accounts."),
    "TR_OIDC_PROVIDERS": Variable(
        "none",
        "File (JSON) with identity providers beside that of `RAUTHY_URL`: a list of `{name, issuer, "
        "client_id, client_secret_file, label, kind}`; `kind` is `oidc` or `github`.",
    ),
    "TR_OIDC_SIGN_UP": Variable(
        "on with `--dev`, else off",
        "Whether somebody whom a provider names, and who has no account here yet, may make one.",
    ),
    "TR_RATE_LIMITS": Variable("on", "Limits of what an address and an account do over time."),
    "TR_PROXY_HOPS": Variable(
        "0", "How many reverse proxies stand in front (0 to 8), whose `X-Forwarded-For` is believed."
    ),
    "TR_SSH_PORT": Variable("–", "Port on which `ssh` opens the app; unset: off. 0 takes a free one."),
    "TR_SSH_HOST": Variable("`--host`", "Address of that port."),
    "TR_SSH_SESSIONS": Variable("50", "Sessions over SSH at once, at most."),
    "TR_SSH_IDLE": Variable(
        "14400", "Seconds without a key after which a session over SSH ends; 5 to 86400."
    ),
    "TR_SSH_UIDS": Variable(
        "2000000000", "First of the uids that sessions over SSH get where the relay is root, one each."
    ),
    "TR_QUOTA_BYTES": Variable(
        "21474836480", "Bytes that an account may keep (20 GiB), before compression, counted by repository."
    ),
    "TR_QUOTA_OBJECTS": Variable("5000000", "Objects that an account may keep."),
    "TR_QUOTA_REPOSITORIES": Variable("1000", "Repositories that an account may own."),
    "TR_QUOTA_CREATIONS": Variable(
        ", ".join(f"{kind}={most}" for kind, most in creation.DEFAULTS.items()),
        "What an account may create within an hour, of each kind; kinds that are not named keep their "
        "defaults.",
    ),
    "TR_QUOTA_ACCOUNTS": Variable(
        "20, with `--dev` 1000",
        "Accounts that an address may make in a day; of guests twenty times as many.",
    ),
    "TR_RESERVE_BYTES": Variable(
        "536870912", "Free bytes of the data folder's disk below which uploads are refused (512 MiB)."
    ),
    "TR_RESERVE_INODES": Variable("1000", "Likewise, files that can still be made."),
    "TR_CLIENT_BUILDS": Variable(
        "none", "Folder with builds of `svc` and their `release.json`, which `/cli` hands out."
    ),
    "TR_GIT_CACHE_BYTES": Variable(
        "10 GiB", "Bytes that repositories made for git may have together; what was read longest ago goes."
    ),
    "TR_AUDIT_DAYS": Variable("365", "Days after which events of accounts are swept."),
    "TR_OUTBOUND_ALLOW": Variable(
        "–",
        "Private addresses and networks, with commas, that requests of the relay (webhooks) may reach: "
        "`10.1.2.0/24,fd00::7`. With `--dev` this machine may be reached besides.",
    ),
    "DATABASE_URL": Variable(
        "`sqlite:///DATA/relay.db`", "Database: `sqlite:///PATH` or `postgresql://USER@HOST/NAME`."
    ),
    "MIGRATION_DATABASE_URL": Variable("`DATABASE_URL`", "Database as `relay migrate` opens it."),
    "RELAY_ADMIN_SECRET": Variable("made and kept with `--dev`", "Opens `/metrics` to another machine."),
    "INITIAL_RELAY_ADMIN_EMAIL": Variable("–", _UNUSED),
    "MANAGED_KEY_SECRET": Variable("made and kept with `--dev`", "32 bytes in hex. " + _UNUSED),
    "POSTGRES_PASSWORD": Variable("–", "Password for a PostgreSQL URL that has none."),
    "SSL_CERT_PATH": Variable(
        "`./certs/fullchain.pem` if it exists", "Certificate chain, if the relay ends TLS."
    ),
    "SSL_KEY_PATH": Variable("`./certs/privkey.pem` if it exists", "Its private key."),
    "RUST_LOG": Variable("`info`", "Log level: `trace`, `debug`, `info`, `warn`, `error`, `off`."),
    "RAUTHY_URL": Variable("–", "Address (issuer) of an identity provider that speaks OpenID Connect."),
    "RAUTHY_CLIENT_ID": Variable("–", "Name of this node there; required with `RAUTHY_URL`."),
    "RAUTHY_REDIRECT_URI": Variable("public URL + `/auth/callback`", "Must be just that."),
    "RAUTHY_CLIENT_SECRET": Variable("–", "Secret of this node there; none for a public client."),
    "S3_ENDPOINT": Variable("–", "Where packs lie instead of the data folder, with `S3_BUCKET`."),
    "S3_BUCKET": Variable("–", "A bucket for this node alone."),
    "S3_REGION": Variable("`us-east-1`", "Region that requests are signed for."),
    "S3_ACCESS_KEY": Variable("–", "Without it requests are not signed."),
    "S3_SECRET_KEY": Variable("–", "Belongs to `S3_ACCESS_KEY`; one without the other is refused."),
    "TR_SINGLE_USER_E2EE_ENABLED": Variable(
        "off", "End-to-end encrypted projects; with it on, `/readyz` fails, since this build has none."
    ),
    "TR_ORG_E2EE_ENABLED": Variable("off", _NOT_YET),
    "TR_PRIVATE_E2EE_ENABLED": Variable("off", _NOT_YET),
    "TR_LAKEFS_S3_CONDITIONAL_PUT": Variable(
        "`emulated`", "`native`: the bucket refuses to write a name twice; probed at start."
    ),
    "TR_REPOS_ENABLED": Variable("on", "Repositories: `/api/v1/repos`."),
    "TR_REPO_LIVE_TEXT": Variable("on", "Live updates of branches."),
    "TR_REPO_SEALING": Variable("on", "Seals, compare, blame."),
    "TR_REPO_MERGE_ENABLED": Variable(
        "off", "Seals with two parents: `svc pr merge --merge`, `merge-preview` and `merge`; off: one parent."
    ),
    "TR_MIRROR_SYNC_ENABLED": Variable("on", "Links to repositories elsewhere. " + _NOT_YET),
    "TR_GIT_CLONE_ENABLED": Variable(
        "on", "Cloning git repositories of other hosts in a browser. " + _NOT_YET
    ),
    "TR_FORK_ENABLED": Variable("on", "Forks."),
    "TR_TIME_MACHINE_ENABLED": Variable("on", "The time-travel view of code on the pages of repositories."),
    "TR_SOCIAL_ENABLED": Variable("off", "The counts of stars and watchers: `/api/v1/social`."),
}

CLIENT: dict[str, Variable] = {
    "SVC_SERVER": Variable("the linked folder's, else the last sign-in's", "Server to talk to."),
    "SVC_REPO": Variable("the linked folder's", "Repository, `[HOST/]OWNER/NAME`."),
    "SVC_TOKEN": Variable(
        "–",
        "A script token, `svct2_…`, instead of the session; sent to the server it is for alone.",
    ),
    "SVC_HOME": Variable(
        "the platform's data folder for svc", "Keys, sessions and the records of working copies."
    ),
    "SVC_LLM_HOME": Variable(
        "the platform's data folder for svc-llm",
        "Models, and the files of the local LLM server; one for all SVC_HOMEs of a user.",
    ),
    "SVC_LLM_PORT": Variable(
        "11434", "Port of the local LLM server, where neither `--port` nor `ollama_port_override` says one."
    ),
    "SVC_LLM_REGISTRIES": Variable(
        "–",
        "Registries of models beside `registry.ollama.ai` and `hf.co`, or mirrors of these: `HOST=ORIGIN`, "
        "several with spaces between.",
    ),
    "SVC_TURN": Variable(
        "–", "What an agent calls its turn; the events of its changes carry it (header `Svc-Turn`)."
    ),
    "SVC_SSH": Variable("–", "Set by a relay for the processes of sessions over SSH."),
    "SVC_TUI_NOTICE": Variable(
        "–", "Set by the app when it opens again after a sign-in: what it says first."
    ),
    "SVC_DEBUG": Variable("–", "`1` shows the traceback of an error."),
    "SVC_COMPLETE": Variable(
        "–", "Set by completion scripts: answer what can stand at the cursor, run nothing."
    ),
    "SVC_PLAIN": Variable(
        "–",
        "Set: no colours, no pager, no moving progress; with `lines`, nothing is drawn either, "
        "and the app is numbered lines.",
    ),
    "SVC_PAGER": Variable("`PAGER`", "Pager for long answers; `cat` for none."),
    "PAGER": Variable("`less -FRX`", "Pager, if `SVC_PAGER` is not set."),
    "VISUAL": Variable(
        "`EDITOR`", "Editor for the message of `svc push` without `-m`; a command with arguments."
    ),
    "EDITOR": Variable("`vi`, `nano`", "The same, if `VISUAL` is not set."),
    "NO_COLOR": Variable("–", "Set: no colours."),
    "TERM": Variable("–", "`dumb` is like `SVC_PLAIN=lines`, and empty like `SVC_PLAIN=1`."),
}


class Mismatch(Exception):
    """Raised if the page on environment variables describes other variables than the code reads."""


def environment() -> str:
    """Make the page on environment variables. Raises Mismatch unless it describes exactly the variables that
    the code reads."""
    asked, secret = relay_variables()
    _compare("relay", set(RELAY), asked)
    _compare("client", set(CLIENT), client_variables())
    text = [
        "# Environment variables\n",
        "An empty value counts as absent. Switches take `1 true on yes` and `0 false off no`.",
        "The relay refuses to start with a `TR_…` that it does not know, and with a setting that does",
        "nothing without another one.\n",
        "## The relay\n",
        "**Required** marks what `relay serve` does not start without; `--dev` needs none of them.",
        "† may also come from the file that the variable with `_FILE` at its end names, such as",
        "`DATABASE_URL_FILE`, not from both.\n",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, variable in RELAY.items():
        required = "**Required.** " if variable.strict else ""
        mark = " †" if name in secret else ""
        text.append(f"| `{name}`{mark} | {variable.default} | {required}{variable.meaning} |")
    text += ["\n## The command\n", "| variable | default | meaning |", "|---|---|---|"]
    text += [f"| `{name}` | {one.default} | {one.meaning} |" for name, one in CLIENT.items()]
    return "\n".join(text) + "\n"


class _Asked(Mapping[str, str]):
    """An environment that records which names were read from it."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values_ = values
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def relay_variables() -> tuple[set[str], set[str]]:
    """Returns (all variables that the relay's configuration reads, the variables whose value may also come
    from a file)."""
    from relay import config

    given = _Asked({"S3_ENDPOINT": "https://s3.example", "S3_BUCKET": "bucket", "TR_SSH_PORT": "0"})
    config.read(given, dev=True, host="127.0.0.1", port=0, data=None)
    secret = {name.removesuffix("_FILE") for name in given.names if name.endswith("_FILE")}
    return {name for name in given.names if not name.endswith("_FILE")}, secret


def client_variables() -> set[str]:
    """The environment variables that the client's source mentions: those called SVC_…, and the common
    variables of terminals."""
    found: set[str] = set()
    for room in ("svc", "localstore", "tui", "llm"):
        for path in (ROOT / room).rglob("*.py"):
            found |= set(
                re.findall(r'"(SVC_[A-Z_]+|PAGER|VISUAL|EDITOR|NO_COLOR|TERM)"', path.read_text("utf-8"))
            )
    return found


def _compare(room: str, described: set[str], asked: set[str]) -> None:
    missing, spare = sorted(asked - described), sorted(described - asked)
    if missing or spare:
        raise Mismatch(
            f"{room}: scripts/reference_environment.py lacks {missing or 'nothing'} "
            f"and describes {spare or 'nothing'} that the code does not read"
        )
