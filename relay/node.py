"""The running node with all parts that services need. Services get it as an argument and never import it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from relay.base import database_url as urls
from relay.base.metrics import Metrics
from relay.base.single_flight import SingleFlight
from relay.capacity.limiter import Limiter
from relay.capacity.probes import Probes
from relay.capacity.reserve import Reserve
from relay.config import Config
from relay.db.engine.database import Database
from relay.events.followers import Followers
from relay.events.hub import Hub
from relay.events.jobs import Jobs
from relay.events.landings import Landings
from relay.http.buffers import Buffers
from relay.http.websocket import Sockets
from relay.memory.compared import Comparisons
from relay.memory.fair import Share
from relay.memory.lanes import Lanes
from relay.memory.named import NamedTrees
from relay.memory.outcomes import FoundMoves, Joins, Outcomes
from relay.memory.owners import FilteredOwners
from relay.memory.readers import Readers
from relay.memory.streams import Streams
from relay.memory.trees import Directories, FileCounts
from relay.memory.workers import TextWorker
from relay.objects.packs import FOLDER as PACKS
from relay.objects.room import Room
from relay.objects.store import ObjectStore
from relay.outbound.client import Outbound
from relay.outbound.identity_provider import Providers
from relay.render.renderer import Renderer
from relay.render.templates import Templates
from relay.signing.client import Signer
from relay.signing.sign_in import SignInState

# Of readers by git: how many at once, of one address, that wait, and for how many seconds. Packs are sent for
# as long as their readers take; lists of refs are short.
GIT_PACKS, GIT_REFS = (16, 8, 500, 100.0), (8, 4, 500, 50.0)
GIT_BUILDS = (
    50.0,
    1,
    1000,
    "the server is still making this repository ready for git; try again in a minute",
)
LISTED = 20_000  # digests of long lists that are looked up at once: the event loop goes through them


@dataclass(slots=True)
class Node:
    """The parts of a node.

    Caches: `files` has the numbers of files below directories, `directories` decoded directories, `outcomes`
    results of merges, `joins` merged texts, `found_moves` moved files, `named` the digests that a filtered
    view of a tree shows, `comparisons` the changed files of two trees, `filtered_owners` the seals that lines
    come from in filtered views.

    `lists`: limits how many digests of long lists are looked up at a time. `workers`: the process that
    compares texts. `streams`: the turns of answers with many files. `git_packs`, `git_refs`: limits on how
    many requests of git run at a time. `git_builds`: running tasks that prepare a repository for git.
    `stopping`: set first at shutdown; `/readyz` then answers 503 while running requests finish."""

    config: Config
    db: Database
    objects: ObjectStore
    signer: Signer
    hub: Hub
    jobs: Jobs
    followers: Followers
    lanes: Lanes
    limiter: Limiter
    metrics: Metrics
    outbound: Outbound
    providers: Providers = field(default_factory=Providers.none)
    stopping: bool = False
    landings: Landings = field(default_factory=Landings)
    sign_in: SignInState = field(default_factory=SignInState)
    checks: SingleFlight = field(default_factory=SingleFlight)
    buffers: Buffers = field(default_factory=Buffers)
    sockets: Sockets = field(default_factory=Sockets)
    git_packs: Readers = field(default_factory=partial(Readers, *GIT_PACKS))
    git_refs: Readers = field(default_factory=partial(Readers, *GIT_REFS))
    git_builds: SingleFlight = field(default_factory=partial(SingleFlight, *GIT_BUILDS))
    share: Share = field(init=False)
    workers: TextWorker = field(init=False)
    streams: Streams = field(init=False)
    files: FileCounts = field(default_factory=FileCounts)
    directories: Directories = field(default_factory=Directories)
    outcomes: Outcomes = field(default_factory=Outcomes)
    joins: Joins = field(default_factory=Joins)
    found_moves: FoundMoves = field(default_factory=FoundMoves)
    named: NamedTrees = field(default_factory=NamedTrees)
    renderer: Renderer = field(default_factory=Renderer)
    templates: Templates = field(default_factory=Templates)
    comparisons: Comparisons = field(default_factory=Comparisons)
    filtered_owners: FilteredOwners = field(default_factory=FilteredOwners)
    lists: Room = field(default_factory=lambda: Room(LISTED))
    probes: Probes = field(default_factory=Probes)
    reserve: Reserve = field(init=False)

    def __post_init__(self) -> None:
        self.share = Share(self.limiter)
        self.workers = TextWorker(self.share)
        self.streams = Streams(self.share)
        others = [self.config.data / PACKS]  # each may be a disk of its own
        if not urls.is_postgres(self.config.database_url):
            others.append(urls.sqlite_path(self.config.database_url).absolute().parent)
        self.reserve = Reserve(self.config.data, self.config.reserve, others)
