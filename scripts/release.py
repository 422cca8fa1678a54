"""Builds `svc` as one program file for this kind of machine, and adds it to the list of builds that relays
offer.

    python -m scripts.release FOLDER --key FILE [--next PUBLIC]

The list is `release.json` in FOLDER. The program file contains the client's packages and the libraries that
they need, from this environment, which is installed from the lock file. It runs with the same minor version
of Python, unpacks itself once into the user's cache, and is replaced by `svc upgrade`. Builds of the same
version for other machines stay in the list.

The build is signed with the release key (`scripts/release_key.py`). The program trusts that key and the next
one: only builds that one of these keys has signed can replace it.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from localstore.core.encoding import b64u
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.distribution import Build, ClientRelease, signed_bytes
from localstore.core.times import rfc3339
from scripts import stamp
from scripts.release_key import NoKey, public, read
from svc import __version__

CLIENT = ("svc", "tui", "localstore", "llm")
START = Path(__file__).parent / "release_start.py"
WHEN = (1980, 1, 1, 0, 0, 0)  # of every member, so that equal contents are equal files
LIST = "release.json"
SYSTEMS = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
STARTS_WITHIN = 120  # seconds


class NotBuilt(Exception):
    """Raised if nothing was built; the message says why."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="signs the build")
    parser.add_argument("--next", metavar="PUBLIC", help="the key that signs after this one")
    options = parser.parse_args()
    try:
        made = release(options.folder, read(options.key), options.next and public(options.next))
    except (NotBuilt, NoKey) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{options.folder / made.name}\n{options.folder / LIST}\n")
    return 0


def release(folder: Path, key: DeviceKey, next_key: str | None = None, version: str = __version__) -> Build:
    """Build the program, and write it into `folder`, with the list that now contains this build. Returns the
    build. The build is signed with `key`, and trusts that key and `next_key`. Raises NotBuilt."""
    commit = stamp.commit()
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        raise NotBuilt("a build names the commit of its sources; build in a checkout of git")
    system, machine = SYSTEMS.get(platform.system()), MACHINES.get(platform.machine().lower())
    if system is None or machine is None:
        raise NotBuilt(f"no builds are handed out for {platform.system()} on {platform.machine()}")
    name = f"svc-{version}-{system}-{machine}"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".release-") as temporary:
        program = Path(temporary) / name
        write(program, version, [b64u(key.public), *([next_key] if next_key else [])])
        with program.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        made = msgspec.convert(
            {
                "name": name,
                "os": system,
                "arch": machine,
                "size": program.stat().st_size,
                "sha256": sha256,
                "source_commit": commit,
            },
            Build,
        )
        made = msgspec.structs.replace(made, signature=b64u(key.sign(signed_bytes(version, made))))
        _require_starts(program, version, Path(temporary))
        program.replace(folder / name)
        listed = Path(temporary) / LIST
        listed.write_bytes(msgspec.json.format(msgspec.json.encode(_add_to_list(folder, version, made))))
        listed.replace(folder / LIST)
    return made


def write(program: Path, version: str, trusted: Sequence[str]) -> None:
    """Write the program as one executable file. `trusted`: public keys; only a build signed by one of them
    may replace the program."""
    with tempfile.TemporaryDirectory() as temporary:
        sources = Path(temporary)
        stamp.copy(sources, stamp.EDITIONS[0])
        init = sources / "svc" / "__init__.py"
        init.write_text(re.sub(r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"', init.read_text()))
        keys = sources / "svc" / "release_keys.py"
        pinned, count = re.subn(
            r"(?m)^(KEYS: .* = )\(\)", lambda at: f"{at[1]}{tuple(trusted)!r}", keys.read_text()
        )
        if count != 1:
            raise NotBuilt("svc/release_keys.py has no place for the keys")
        keys.write_text(pinned)
        members = dict(_packages(sources))
        members |= dict(_find_needed_files(sources))
        digest = hashlib.sha256()
        for member in sorted(members):
            digest.update(f"{member}\0".encode() + hashlib.sha256(members[member].read_bytes()).digest())
        start = START.read_text().replace("@DIGEST@", digest.hexdigest())
        start = start.replace("@PYTHON@", f"{sys.version_info[0]}.{sys.version_info[1]}")
        with program.open("wb") as file:
            file.write(f"#!/usr/bin/env python{sys.version_info[0]}.{sys.version_info[1]}\n".encode())
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr(zipfile.ZipInfo("__main__.py", WHEN), start)
                for member in sorted(members):
                    entry = zipfile.ZipInfo(f"packages/{member}", WHEN)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    packed.writestr(entry, members[member].read_bytes())
    program.chmod(0o755)


def _add_to_list(folder: Path, version: str, made: Build) -> ClientRelease:
    """The list in `folder` with this build added. Builds of the same version for other machines stay."""
    others: list[Build] = []
    try:
        before = msgspec.json.decode((folder / LIST).read_bytes(), type=ClientRelease)
    except FileNotFoundError:
        pass
    except msgspec.MsgspecError as error:
        raise NotBuilt(f"{folder / LIST} is not a list of builds ({error}); move it away") from None
    else:
        if before.version == version:
            others = [one for one in before.artifacts if (one.os, one.arch) != (made.os, made.arch)]
    now = rfc3339(datetime.now(UTC), "seconds")
    return ClientRelease(version=version, published_at=now, artifacts=[*others, made])


def _packages(sources: Path) -> Iterator[tuple[str, Path]]:
    """Yields (name in the program file, path) of each of the client's own files."""
    for package in CLIENT:
        for path in sorted((sources / package).rglob("*")):
            if path.is_file():
                yield path.relative_to(sources).as_posix(), path


def _find_needed_files(sources: Path) -> Iterator[tuple[str, Path]]:
    """Yields (name in the program file, path) of the files of every distribution that the client needs: those
    that its packages import, and their dependencies."""
    owners = metadata.packages_distributions()
    imported = {name for package in CLIENT for name in _find_imports(sources / package)}
    wanted = sorted({owner for name in imported for owner in owners.get(name, ()) if owner.lower() != "svc"})
    wanted += sorted(_extras("svc", set(map(_plain, wanted))))
    found: dict[str, metadata.Distribution] = {}
    while wanted:
        requirement = Requirement(wanted.pop())
        key = _plain(requirement.name)
        extras = requirement.extras | {""}
        try:
            one = found.setdefault(key, metadata.distribution(requirement.name))
        except metadata.PackageNotFoundError:
            raise NotBuilt(f"{requirement.name} is not installed; run ./scripts/build --release") from None
        for text in one.requires or ():
            needs = Requirement(text)
            applies = needs.marker is None or any(needs.marker.evaluate({"extra": it}) for it in extras)
            if applies and (_plain(needs.name) not in found or needs.extras):
                needs.marker = None
                wanted.append(str(needs))
    for _, one in sorted(found.items()):
        for file in one.files or ():
            if file.parts[0] not in ("..", "/") and "__pycache__" not in file.parts and file.suffix != ".pth":
                path = Path(str(one.locate_file(file)))
                if path.is_file():
                    yield file.as_posix(), path


def _extras(project: str, wanted: set[str]) -> Iterator[str]:
    """Yields the requirements of the project that ask for an extra of a distribution, such as `httpx[socks]`.
    Only distributions in `wanted` are considered."""
    for text in metadata.distribution(project).requires or ():
        one = Requirement(text)
        if one.extras and _plain(one.name) in wanted and one.marker is None:
            yield f"{one.name}[{','.join(sorted(one.extras))}]"


def _find_imports(package: Path) -> Iterator[str]:
    """Yields the top-level names that the sources of a package import."""
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _require_starts(program: Path, version: str, home: Path) -> None:
    """Raise NotBuilt unless the program starts without the packages and variables of this environment."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    told = subprocess.run(
        [sys.executable, "-I", "-S", str(program), "--help"],
        env={**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "SVC_HOME": str(home / "svc")},
        capture_output=True,
        text=True,
        timeout=STARTS_WITHIN,
    )
    if told.returncode != 0:
        raise NotBuilt(f"the program of version {version} does not start: {told.stderr.strip()[-500:]}")


if __name__ == "__main__":
    sys.exit(main())
