"""The commands of `relay`. Each command imports the heavy modules that it needs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from localstore.core.errors import SvcError
from localstore.core.numbers import whole_number
from relay.base import edition

What = Literal["bytes", "objects", "repositories"]

STATES = ("suspend", "resume", "kill")
KINDS = ("user", "org", "guest")
MOST_LISTED = 1000  # accounts on one page
QUOTAS: tuple[What, ...] = ("bytes", "objects", "repositories")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. A refusal prints one line on standard error and returns 1;
    Ctrl-C prints one line and returns 130."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except SvcError as error:
        print(f"relay: {error.detail}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("relay: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        from relay.db.engine.damage import find_damage

        if (damage_text := find_damage(error)) is None:
            raise
        print(
            f"relay: the database is damaged ({damage_text}); restore a backup: relay restore",
            file=sys.stderr,
        )
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("relay", description="Serve, migrate and look after a node.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--data", type=Path, metavar="DIR", help="data folder (TR_DATA_DIR, ./relay-data)")

    serve = commands.add_parser("serve", parents=[common], help="serve the node")
    serve.add_argument("--dev", action="store_true", help="make secrets, migrate and start the signer")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_parse_port, default=8080, help="0 takes a free one")
    serve.set_defaults(run=_serve)

    migrate = commands.add_parser(
        "migrate", parents=[common], help="bring the database to this build's schema"
    )
    migrate.set_defaults(run=_migrate)

    signer = commands.add_parser("signer", parents=[common], help="serve tokens from the root keys")
    signer.set_defaults(run=_signer)

    ssh_key = commands.add_parser(
        "ssh-key", parents=[common], help="print the fingerprint of the SSH host key (TR_SSH_PORT)"
    )
    ssh_key.set_defaults(run=_ssh_key)

    repo = commands.add_parser("repo", parents=[common], help="take a repository offline or back")
    repo.add_argument("action", choices=STATES)
    repo.add_argument("repository", metavar="OWNER/NAME", type=_parse_text)
    repo.set_defaults(run=_repo)

    account = commands.add_parser("account", help="create, list, suspend and resume accounts")
    actions = account.add_subparsers(required=True, metavar="ACTION")
    add = actions.add_parser(
        "add", parents=[common], help="create an account and a pairing code for its first device"
    )
    add.add_argument("handle", metavar="HANDLE", type=_parse_text)
    add.add_argument("--hours", type=int, default=24, help="that its pairing code is valid (24)")
    add.set_defaults(run=_account)
    for word, meaning in (
        ("suspend", "let a person in by nothing; what is theirs stays"),
        ("resume", "let a suspended person in again"),
    ):
        state = actions.add_parser(word, parents=[common], help=meaning)
        state.add_argument("handle", metavar="HANDLE", type=_parse_text)
        state.set_defaults(run=_account_state, suspend=word == "suspend")
    listing = actions.add_parser("list", parents=[common], help="list accounts with what they use, by name")
    listing.add_argument("--kind", choices=KINDS, help="only these")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="on one page (100)")
    listing.add_argument(
        "--after", metavar="NAME", type=_parse_text, help="begin after this handle, or guest's id"
    )
    listing.add_argument("--json", action="store_true", help="print one JSON object: items, next")
    listing.set_defaults(run=_account_list)

    quota = commands.add_parser("quota", parents=[common], help="usage and limits of accounts")
    quota.add_argument(
        "handle", metavar="HANDLE", nargs="?", type=_parse_text, help="this account; all of them if omitted"
    )
    for what in QUOTAS:
        quota.add_argument(
            f"--{what}",
            type=_parse_limit,
            metavar="N",
            default=argparse.SUPPRESS,
            help=f"its limit of {what} (10G, 5M), or 'default'",
        )
    quota.set_defaults(run=_quota)

    collect = commands.add_parser(
        "gc", parents=[common], help="delete objects that were unreferenced for a day"
    )
    collect.add_argument("--dry-run", action="store_true", help="show what would be deleted; delete nothing")
    collect.set_defaults(run=_gc)

    audit = commands.add_parser("audit", parents=[common], help="read and verify everything that is stored")
    audit.add_argument(
        "--repair",
        action="store_true",
        help="correct the recorded usage of accounts first",
    )
    audit.set_defaults(run=_audit)

    backup = commands.add_parser("backup", parents=[common], help="copy database, packs and keys")
    backup.add_argument("folder", type=Path, metavar="DIR", help="an empty folder, or one with a backup")
    backup.set_defaults(run=_backup)

    restore = commands.add_parser(
        "restore", help="restore a node from a backup: data folder, database, bucket"
    )
    restore.add_argument("folder", type=Path, metavar="DIR", help="the folder of the backup")
    restore.add_argument("--data", type=Path, metavar="NEW", required=True, help="a new or empty folder")
    restore.set_defaults(run=_restore)

    commands.add_parser("version", help="print version and edition").set_defaults(run=_version)
    commands.add_parser("routes", help="print the route table").set_defaults(run=_routes)
    return parser


_NEXT = """
Next, in another terminal:
  svc login --server {address} --device-key --handle YOURNAME
  svc repo create PROJECT"""


def _serve(options: argparse.Namespace) -> int:
    from relay import config as configuration
    from relay import migrations
    from relay.base import logs
    from relay.base.environment import StartRefused
    from relay.run import data_folder, server

    given = dict(os.environ)
    config = configuration.read(
        given, dev=options.dev, host=options.host, port=options.port, data=options.data
    )
    watched = config.dev and sys.stderr.isatty() and not given.get("RUST_LOG")
    logs.configure("warning" if watched else config.log_level)  # what to do next stays in sight
    data_folder.make(config.data)
    with data_folder.serving(config.data, config.shared):
        if config.dev:
            completed = data_folder.dev_secrets(config.data, given)
            config = configuration.read(
                completed, dev=True, host=options.host, port=options.port, data=options.data
            )
            migrations.upgrade(config.migration_database_url, config.database_url)
        migrations.check(config.database_url)
        try:
            bound = server.bind(config.host, config.port)
        except OSError as error:
            raise StartRefused(
                f"cannot listen on {config.host} port {config.port}: {error.strerror}"
            ) from None
        config = config.at(bound.getsockname()[1])
        address = f"{_scheme(config)}://{_host(config.host)}:{config.port}"
        line = f"relay: listening on {address}" + (
            _NEXT.format(address=config.public_url) if config.dev else ""
        )
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(server.serve(config, bound, lambda: print(line, flush=True)))
    return 0


def _migrate(options: argparse.Namespace) -> int:
    from relay import config, migrations

    revision = migrations.upgrade(*config.migration_urls(os.environ, options.data))
    print(f"relay: the database is at revision {revision}")
    return 0


def _signer(options: argparse.Namespace) -> int:
    from relay.run import data_folder
    from relay.signing.process import run

    folder = (options.data or Path(os.environ.get("TR_DATA_DIR") or "relay-data")).absolute()
    data_folder.make(folder)
    run(folder)
    return 0


def _ssh_key(options: argparse.Namespace) -> int:
    from relay.run import data_folder
    from relay.ssh import host_key

    host_key.require_asyncssh()
    folder = (options.data or Path(os.environ.get("TR_DATA_DIR") or "relay-data")).absolute()
    data_folder.make(folder)
    print(host_key.fingerprint(host_key.load(folder)))
    return 0


def _repo(options: argparse.Namespace) -> int:
    from relay import config
    from relay.run import operator_commands

    url, _ = config.migration_urls(os.environ, options.data)
    asyncio.run(operator_commands.set_state(url, options.repository, options.action))
    print(f"relay: {options.repository}: {options.action} done")
    return 0


def _account(options: argparse.Namespace) -> int:
    from relay import config
    from relay.run import operator_commands

    if not 1 <= options.hours <= 24 * 30:
        print("relay: --hours is 1 to 720", file=sys.stderr)
        return 2
    url, _ = config.migration_urls(os.environ, options.data)
    code = asyncio.run(operator_commands.add_account(url, options.handle, options.hours))
    print(
        f"relay: made the account {options.handle.lower()}; within {options.hours} h its first device runs:"
    )
    origin = os.environ.get("TR_PUBLIC_URL") or "ADDRESS"  # of this relay, as people reach it
    print(f"svc login --server {origin} --device-key --handle {options.handle.lower()} --pair {code}")
    return 0


def _account_state(options: argparse.Namespace) -> int:
    from relay import config
    from relay.run import operator_commands

    url, _ = config.migration_urls(os.environ, options.data)
    handle = options.handle.lower()
    asyncio.run(operator_commands.suspend_account(url, handle, options.suspend))
    print(f"relay: {handle} is {'suspended' if options.suspend else 'active'}")
    return 0


def _account_list(options: argparse.Namespace) -> int:
    import msgspec

    from relay import config
    from relay.run import operator_commands

    if not 1 <= options.limit <= MOST_LISTED:
        print(f"relay: --limit is 1 to {MOST_LISTED}", file=sys.stderr)
        return 2
    url, _ = config.migration_urls(os.environ, options.data)
    after = options.after.lower() if options.after else None
    accounts, following = asyncio.run(
        operator_commands.list_accounts(url, options.kind, after, options.limit)
    )
    if options.json:
        print(msgspec.json.encode({"items": accounts, "next": following}).decode())
        return 0
    names = operator_commands.ListedAccount.__struct_fields__
    print("\t".join(name.upper() for name in names))
    for account in accounts:
        cells = (getattr(account, name) for name in names)
        print("\t".join("-" if cell is None else str(cell) for cell in cells))
    if following is not None:
        kind = f" --kind {options.kind}" if options.kind else ""
        print(f"relay: there are more: relay account list{kind} --after {following}", file=sys.stderr)
    return 0


def _quota(options: argparse.Namespace) -> int:
    from relay import config
    from relay.run import operator_commands

    limits = {what: getattr(options, what) for what in QUOTAS if hasattr(options, what)}
    if limits and options.handle is None:
        print("relay: name the account whose limits these are: relay quota HANDLE --bytes N", file=sys.stderr)
        return 2
    url, _ = config.migration_urls(os.environ, options.data)
    handle = options.handle.lower() if options.handle else None
    if handle and limits:
        asyncio.run(operator_commands.set_limits(url, handle, limits))
    of_node = config.read_quotas(os.environ)
    usages = asyncio.run(operator_commands.list_usages(url, handle))
    heads = [f"{what.upper()}{end}" for what in QUOTAS for end in ("", "_LIMIT", "_DELETED")]
    print("\t".join(["ACCOUNT", *heads]))
    for name, used in usages:
        cells = [
            str(count)
            for what in QUOTAS
            for count in (getattr(used, what), of_node.limit(used, what), getattr(used, f"deleted_{what}"))
        ]
        print("\t".join([name, *cells]))
    return 0


def _parse_text(text: str) -> str:
    """Return the argument itself. Raises ArgumentTypeError for a text with characters that no name has, such
    as bytes that are not UTF-8, because no database stores these."""
    if not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is not a name")
    return text


def _parse_port(text: str) -> int:
    number = whole_number(text)
    if number is None or number > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return number


def _parse_limit(text: str) -> int | None:
    """The number that the text stands for, with K, M, G or T for powers of 1024; None for the text
    `default`."""
    if text == "default":
        return None
    power = "KMGT".find(text[-1:].upper()) + 1 if text[-1:] else 0
    digits = text[:-1] if power else text
    number = whole_number(digits, 15)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 500, 10G or default")
    return min(number << 10 * power, 2**61)


def _gc(options: argparse.Namespace) -> int:
    from relay.run import admin, maintenance_commands

    return maintenance_commands.run(os.environ, options.data, admin.Gc(dry_run=options.dry_run))


def _audit(options: argparse.Namespace) -> int:
    from relay.run import admin, maintenance_commands

    return maintenance_commands.run(os.environ, options.data, admin.Audit(repair=options.repair))


def _backup(options: argparse.Namespace) -> int:
    from relay.run import admin, maintenance_commands

    return maintenance_commands.run(
        os.environ, options.data, admin.Backup(folder=str(options.folder.absolute()))
    )


def _restore(options: argparse.Namespace) -> int:
    from relay import config
    from relay.backup.restore import restore

    storage = config.read_storage(os.environ, options.data)
    restore(options.folder.absolute(), storage, *config.migration_urls(os.environ, storage.data), print)
    print(f"check it with: relay audit --data {options.data}")
    return 0


def _version(options: argparse.Namespace) -> int:
    print(f"relay {edition.VERSION} ({edition.EDITION}, {edition.COMMIT})")
    return 0


def _routes(options: argparse.Namespace) -> int:
    from relay import domain
    from relay.http.routing import TABLE

    domain.load()
    for route in sorted(TABLE, key=lambda r: (r.path, r.method)):
        flag = route.flag or "-"
        print(f"{route.method:6} {route.path:64} {route.operation.name:28} {flag}")
    return 0


def _scheme(config: object) -> str:
    return "https" if getattr(config, "tls", None) else "http"


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.Loop
