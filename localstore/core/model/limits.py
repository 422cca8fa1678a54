"""Every limit of the service, with one name for each. Units are in the names or in the comments.

A limit is checked while the bytes arrive, not after they were read."""

from __future__ import annotations

KIB, MIB, GIB = 1024, 1024**2, 1024**3

# --- files (specification: Limits; Repository file storage constants)
TEXT_FILE = 25 * MIB  # one text file in history; larger files are bytes
SHEET_TEXT = MIB  # of a text that the app edits
BLOB_FILE = 16 * MIB  # one binary file pushed into `app` and `lib` repositories
BLOB_TREE = 256 * MIB  # sum of blob sizes over the paths of one tree
APP_FILE_CLAMP = 100 * MIB  # a manifest may raise the per-file cap of `app` up to here
ASSET_FILE = 128 * MIB  # one asset of a release
CHUNK_MIN, CHUNK_TARGET, CHUNK_MAX = 8 * KIB, 64 * KIB, 128 * KIB
CHUNKED_FILE = 16 * GIB  # one file stored as chunks: its manifest, about 1/700 of it, is one object
CHUNK_MANIFEST = 32 * MIB  # one manifest; no more than a frame holds

# --- paths and names
PATH_BYTES = 1024
PATH_SEGMENT_BYTES = 255
PATH_DEPTH = 64
TREE_ENTRIES = 1_000_000
HANDLE_CHARS = 64
REF_NAME_BYTES = 200
MESSAGE_BYTES = 64 * KIB  # seal message
DESCRIPTION_CHARS = 1000
LABEL_CHARS = 64  # of a device key or token
FORK_REFS = 10_000  # branches and tags that a fork begins with
LABELS, LABEL_NAME_CHARS = 1000, 50  # of a repository
PROTECTIONS, PATTERN_WILDCARDS, APPROVALS = (
    50,
    10,
    20,
)  # rules of a repository, stars of one, approvals it asks for
RELEASES, VERSION_CHARS, NOTES_BYTES = 10_000, 100, 64 * KIB  # of a repository; of one release
ASSETS, ASSET_NAME_BYTES, ASSET_TYPE_CHARS = 100, 200, 255  # of a release; of one asset

# --- the catalog
LISTING_NAME_CHARS, CATEGORY_CHARS, SCREENSHOTS = 100, 50, 10  # of a listing
MANIFEST_FILE, MANIFESTS, DEPENDENCIES = 256 * KIB, 50, 2000  # that are read: bytes of one; of one seal
MANIFEST_FOLDERS, MANIFEST_LEVELS = 500, 4  # folders that are looked through for manifests, and how deep
ADVISORIES, ADVISORY_TEXT_BYTES, ADVISORY_PACKAGES, ADVISORY_VERSIONS = 1000, 64 * KIB, 50, 1000
# of a repository; details of one; packages of one; versions and events of one package
CLIENT_BUILD = 256 * MIB  # one build of the client that a node hands out

# --- issues
ISSUES = 1_000_000  # numbers of one repository, for issues and proposals
ISSUE_TITLE_CHARS, ISSUE_BODY_BYTES = 256, 64 * KIB  # a body: of an issue or comment
ISSUE_LABELS, ASSIGNEES, COMMENTS = 100, 10, 10_000  # of one issue
REVIEWERS, REVIEWS, CLOSES = 50, 10_000, 50  # of one proposal; issues that merging it closes
CONFLICTS_KEPT, CONFLICTS_SHOWN = 1000, 100  # files of one proposal that conflict
THREADS, OPEN_THREADS, THREAD_COMMENTS = 10_000, 1000, 200  # of one proposal; of one thread
SUGGESTIONS = 100  # that one seal takes in
MENTIONS = 50  # accounts that one text tells by naming them
SEARCH_WORDS = 8  # of a search that are looked for
POSTS_STRANGER, POSTS_MEMBER = 20, 120  # of all kinds, of an account within a minute; members: triage

# --- private paths
PATH_RULES, PATH_CHANGES = 500, 100_000  # of a repository: rules of its path policy, and changes of them

# --- models
GGUF_HEADER, GGUF_FIELDS, GGUF_TENSORS = 96 * MIB, 10_000, 100_000  # of one file
GGUF_NAME_BYTES, GGUF_TEXT_BYTES, GGUF_TEXTS = 4 * KIB, 4 * MIB, 2_000_000  # of one field; in all lists
GGUF_SHARDS = 1000  # files of one model
GGUF_CHUNK_LISTS = 64 * MIB  # the list of chunks of one model in the cache
LLM_REGISTRY_TEXT, LLM_LAYERS = (
    4 * MIB,
    1000,
)  # of a model of a registry: its manifest or one text; its layers
LAUNCH_WORDS = 200  # of the command of an app
LAUNCH_VARIABLES = 100  # that an app is given by its manifest
LAUNCH_TEXT = 4000  # characters of one word or value, or of the address at which an app is ready
LAUNCH_SECONDS = 3600  # until an app must be ready
LLM_BODY = 64 * MIB  # one request of the local LLM server, with its pictures; blobs are streamed
LLM_REQUESTS = 256  # of the local LLM server that wait or are answered at once

# --- documents
DOCUMENTS, DOCUMENTS_BYTES = 1000, 64 * MIB  # of an account; bytes: operations of all of them, as stored
DOCUMENT_BYTES, DOCUMENT_PARTS, DOCUMENT_DEPTH = MIB, 20_000, 32  # content of one: JSON, values, levels
DOCUMENT_KEY_BYTES, DOCUMENT_TITLE_CHARS = 1024, 200  # name of a member of the content; title
DOCUMENT_STATE_BYTES = 16 * MIB  # operations of one document, as stored
DOCUMENT_UPDATES = 500  # updates that become one snapshot; as many before it stay, for edits that began there

# --- runs and checks
CHECK_NAME_CHARS, RUN_SUMMARY_CHARS, DETAILS_URL_CHARS = 100, 4000, 2000
SEAL_CHECKS, SEAL_RUNS = 250, 2000  # names of checks on one seal; their attempts, all told
CHECKS_ENABLED, CHECKS_KNOWN = 100, 1000  # of a repository; known: those reported last, and the enabled ones
RUNS_A_MINUTE = 600  # that one account records within a minute, wherever

# --- webhooks and reports
API_KEYS = 100  # of an account that are neither revoked nor expired
API_KEY_OVERLAP = 7 * 24 * 3600  # seconds for which a secret that was rotated stays valid
API_KEY_KEPT = 90 * 24 * 3600  # seconds for which a key that ended stays in the list
WEBHOOKS, WEBHOOKS_A_DAY = 20, 200  # of a repository; that an account makes
WEBHOOK_URL_CHARS, WEBHOOK_SECRET_MIN, WEBHOOK_SECRET_MAX = 2000, 16, 200  # characters
WEBHOOK_WAITING = 10_000  # deliveries of one webhook that failed and wait; with more it is switched off
WEBHOOK_ASKED = 60  # pings and redeliveries of one webhook within a minute
WEBHOOK_SEALS = 20  # that one message of a push names
WEBHOOK_EXCERPT = 4 * KIB  # of an answer, kept with the delivery
REPORTS, REPORT_TITLE_CHARS = 10_000, 256  # of a repository

# --- requests of the relay to other servers
OUTBOUND_SECONDS = 15  # from the first look-up to the last byte
OUTBOUND_BYTES = 64 * KIB  # of an answer; the rest is not read
OUTBOUND_HEADERS = 16 * KIB  # of an answer's head

# --- access
COLLABORATORS = 1000  # of a repository, with those invited
INVITES_A_DAY, ACCESS_REQUESTS_A_DAY = 200, 50  # that an account makes
OPEN_ACCESS_REQUESTS = 1000  # of a repository
ORGANISATIONS = 50  # that one account is an admin of
MEMBERS, ORGANISATION_ADMINS = 1000, 100  # of an organisation; members: with those invited
BASE_ROLES = 50_000  # members times repositories of an organisation that gives all members a role
OFFER = 7 * 24 * 3600  # seconds in which an invitation or transfer is answered

# --- files that configure a working copy
IGNORE_FILE_BYTES = 256 * KIB  # one .svcignore, .stignore or .gitignore
GIT_INDEX_BYTES, GIT_INDEX_PATHS = (
    128 * MIB,
    1_000_000,
)  # git's own list of a folder's files; also of its names
MANIFEST_BYTES, MANIFEST_DEPTH, MANIFEST_LIST = 64 * KIB, 32, 256
EXECUTABLE_LIST = 1000  # patterns in `executable` of .svc.yaml

# --- lifetimes, seconds
GUEST_SESSION = 24 * 3600  # cannot be refreshed
ACCESS_TOKEN = 3600
REFRESH_TOKEN = 7 * 24 * 3600
REFRESH_LEAD = 600  # before its end a token is refreshed (specification: Limits, token refresh lead time)
REFRESH_GRACE = 10  # a second use of a rotated token within this time: 409; later: all its tokens are revoked
CLI_SESSION = 24 * 3600  # never longer than the parent
OIDC_SIGN_IN = 600  # from the button of a provider to the end, with the choice of a handle
DEVICE_CODE = 600
DEVICE_CODE_INTERVAL = 5
CHALLENGE = 300
PAIRING_CODE = 600
OPEN_PAIRINGS = 5  # QR codes of an account that nobody has used yet
AUTO_MERGE_DAYS = 30  # for which a signed merge waits
PREPARE = 900
PURGE_WINDOW = 30 * 24 * 3600
GC_GRACE = 24 * 3600
ALIAS = 90 * 24 * 3600  # the old name of a renamed repository
IDEMPOTENCY_KEY = 30 * 24 * 3600
IDEMPOTENCY_KEYS = 100_000  # of one account at a time
SCRIPT_TOKEN_DAYS = 365
HANDLE_RESERVED = 90 * 24 * 3600  # an old handle still resolves to its repositories

# --- identity providers of a node
OIDC_PROVIDERS = 16
OIDC_FILE = 64 * KIB  # the file that TR_OIDC_PROVIDERS names
OIDC_ANSWER = 256 * KIB  # one answer of a provider
OIDC_TOKEN_CHARS = 32 * KIB
OIDC_SUBJECT_CHARS = 255

# --- passwords of local accounts
PASSWORD_CHARS_MIN, PASSWORD_BYTES_MAX = 10, 1024

# --- request signatures
SIGNATURE_MAX_AGE, SIGNATURE_MAX_SKEW = 60, 10

# --- capability tokens (raw bytes)
TOKEN_MINTED_MIN, TOKEN_MINTED_MAX = 258, 600
TOKEN_RAW_MAX, TOKEN_BLOCKS_MAX, TOKEN_STATEMENTS_MAX = 2048, 6, 8

# --- requests
JSON_BODY = 2 * MIB
JSON_ANSWER, LARGE_ANSWER = 32 * MIB, 512 * MIB  # that a client reads; large where every path is named
INBOX_MARKED = 500  # rows of an inbox that one request names
PAGE_DEFAULT, PAGE_MAX = 30, 100
QUERY_CHARS = 200  # of a search
SUBSCRIPTIONS = 256  # repositories of one socket or poll
CHANNELS = 256  # branches of one socket or poll
SOCKET_MESSAGE = 32 * KIB  # that a client sends over a socket; longer batches go by POST
POLL_WAIT = 25  # seconds that a poll waits at most
TURN_CHARS = 200  # of what an agent calls its turn
GIT_REQUEST = 8 * MIB  # what git asks for a pack with, unpacked
SEALS_PER_REQUEST = 1000  # made from explicit trees
HISTORY_PACK_DEFAULT, HISTORY_PACK_MAX = 100, 1000
HISTORY_PACK_LINES = 64 * MIB  # of changes: a slice ends with the seal whose line passes this

# --- live updates
UPDATES_PER_BATCH, UPDATE_BATCH_BYTES = 500, 1 * MIB
EDITED_TEXTS = 64 * MIB  # texts that the edits of one batch change, as clients count them; one may be longer
LOADED_TEXTS = 2 * EDITED_TEXTS  # texts that one request makes the relay load
UPDATE_BYTES = 64 * MIB  # sum of the operations of one update; larger edits become a new file version
UPDATE_STRUCTS = 200_000
UPDATE_STRING_BYTES = 64 * KIB
UPDATE_DELETE_RANGES = 200_000
UPDATE_WORK = 20_000_000  # steps to apply one update: about 2 s at worst
EDITS_AT_ONCE = (
    8  # edits of one lane in a batch share the work of this many updates; clients send at most these
)
LANE_WORK = 2_000_000  # steps to load a whole lane: about 0.2 s at worst, in which no other thread runs
LANE_STATE_BYTES, LANE_STATE_STRUCTS = 512 * MIB, 4_000_000  # a whole lane with its tombstones
LIVE_OPERATIONS = 16 * KIB  # of one edit that travels to listeners; longer ones are read from the lane
LIVE_FRAME = 128 * KIB  # one frame of a channel; what is more has to be read by a bootstrap
LIVE_FRAME_PATHS = 100  # paths that it names; more, such as a first push, have to be read by a bootstrap
LIVE_FRAMES_KEPT = 3600  # seconds in which a listener that was away still gets the frames it missed
HERE_A_SECOND, HERE_LIVES = 5, 30  # messages of one channel that say where somebody is; seconds they count
PEOPLE_EACH = 0.05  # seconds between two messages of who is here
PEOPLE = 1000  # of one branch
REPLICA_BITS = 53
EPOCHS_RETAINED = 2
GENESIS_PIECE = 16 * KIB

# --- packs and object queries
PACK_BYTES = 64 * MIB
PACK_TOC_BYTES = 8 * MIB
PACK_RAW_BYTES = 1 * GIB  # sum of the frames' raw lengths: what one pack may unpack to
FRAME_RAW = 512 * KIB  # text objects share frames of this raw size; reading one decompresses all before it
FRAME_SHARED_MAX = 1 * MIB  # largest frame of several objects that a relay accepts
FRAME_RAW_MAX = 32 * MIB  # hard cap of one frame's declared raw length: a TEXT_FILE fits
HAVE_DIGESTS = 65_536  # digests in one `have` query

# --- larger files are not shown: blob content, differences, blame
BLOB_INLINE = 5 * MIB
DIFF_BYTES = 5 * MIB
COMPARE_FILES = 300  # changed files of one page of a comparison
COMPARE_PATCH_BYTES = 2 * MIB  # characters of all patches of one page of several files
PATCH_BYTES = 8 * MIB  # characters of one patch
COMPARE_TEXT_BYTES = 16 * MIB  # texts that are read for one page
VERSION_TEXT_BYTES = 64 * MIB  # texts that are read to compare two versions of a proposal
RENAME_BYTES = 16 * MIB  # added and removed files that are compared to find renames
RENAME_PAIRS = 40_000  # pairs of these files
RENAME_LINES = 500_000  # of these files
RENAME_WORK = 3_000_000  # lines looked up while each of them is compared with each
BLAME_VERSIONS = 5000  # versions of a file that one blame request reads
BLAME_LINES = 32_000_000  # lines of all these versions; their owners may be in memory at once


def in_words(count: int) -> str:
    """A number of bytes for a sentence, such as `128 MiB`, `64 KiB` or `1500 bytes`. It is never rounded."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit and not count % unit:
            return f"{count // unit} {name}"
    return f"{count} bytes"
