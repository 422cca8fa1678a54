"""The sentences of an error that name one command, where there are several, by a piece of each: it is said in
the scenario of its row (`ROW`), or has the situation of that row, for the reason given."""

from __future__ import annotations

ROW = "said in the scenario"
_KEPT = "a file of svc's own cannot be read, and is put away before the sign-in"
_KEY = "the server does not take this machine's key as it is, and a sign-in brings one that it takes"
_ENDED = "the session is not valid any more, whatever the reason, and a sign-in makes another"
_ANSWER = "an answer of the server's to a sign-in cannot be used, and the sign-in is begun again"
_STRANGE = "a server that is broken says why in its log, as in the row"

SENTENCES: dict[tuple[str, str], dict[str, str]] = {
    ("llm_server", "llm logs"): {
        "did not start": ROW,
        "ended while it was started": "the same, when another command had begun to start it",
        "did not answer within … seconds; see": "a server that hangs says why in its log, as in the row",
        "answered something that is no JSON": _STRANGE,
        "answered something unexpected": _STRANGE,
    },
    ("llm_server", "llm stop"): {
        "runs already": ROW,
        "runs and did not answer": "a server that hangs is ended as one that runs",
        "runs and does not answer": "the same, asked which models are loaded",
    },
    ("pairing_ended", "auth device pair"): {
        "is older than ten minutes": ROW,
        "this pairing code was used": "a code that ended, as in the row",
        "another device used": "a code that ended, as in the row",
        "this pairing was refused": "another code is drawn, as in the row, and its digits compared",
        "did not answer in time": "the client gives up as the relay does in the row",
    },
    ("api_key_ended", "auth key create"): {
        "is revoked; make another": ROW,
        "has expired; make another": "a key that ended, as in the row",
    },
    ("client", "queue list"): {
        "actions wait already": "ten thousand of them; the list names what to drop, as in the row",
        "refused; see": ROW,
        "still waiting; see": ROW,
    },
    ("usage", "auth setup-git"): {
        "git is not installed here": ROW,
        "git runs this, and says on stdin": "who runs it by hand wants what the row does",
    },
    ("usage", "inbox"): {
        "is none of done, read and unread": ROW,
        "say which: svc inbox": ROW,
        "names no row of the inbox": ROW,
    },
    ("not_found", "pr view"): {"no verdict of": ROW, "is a proposal": ROW},
    ("not_found", "pr threads"): {
        "has no thread": ROW,
        "waits for a review": "an id that names nothing that waits, as in the row; the list shows what does",
    },
    ("usage", "queue list"): {"name the actions to drop": ROW, "actions begin with": ROW},
    ("usage", "login"): {"no server is known yet": ROW, "names the server": ROW},
    ("client", "login"): {
        "and this machine's clock says": "the clock is set, and the same sign-in is run again",
        "the session in … cannot be opened": ROW,
        "the device key in … is damaged": _KEPT,
        "… is damaged; remove it": _KEPT,
    },
    ("client", "resolve"): {"changed meanwhile": ROW, "choose one version": ROW},
    ("not_mergeable", "pr close"): {
        "has everything of": ROW,
        "has the change of every seal": "the same, seal by seal, when a rebase finds nothing to do",
    },
    ("not_mergeable", "pr merge"): {
        "makes no seals with two parents": ROW,
        "is protected, and the merge waits": ROW,
    },
    ("expired_token", "login"): {
        "nobody approved the sign-in in time": "the relay says it, and the client gives up as in the row",
        "the sign-in took too long": ROW,
    },
    ("forbidden", "login"): {
        "is not registered to you, or was revoked": _KEY,
        "may not … without a token": _KEY,
        "a device joins for good": _KEY,
        "a repository needs an owner with a handle": _KEY,
        "an organisation needs an admin with a handle": _KEY,
        "came with a script token": _KEY,
        "this session does not include": "a sign-in brings a session with all that its person may do",
        "does not sign people in by device key": "the browser is left, as in the row of not_found and login",
    },
    ("identity_level", "login"): {
        "a guest session cannot do this": ROW,
        "a guest session cannot write": "another route refuses the same guest",
    },
    ("invalid_grant", "login"): {
        "is unknown, was claimed or has expired": ROW,
        "this device code is invalid": "a code that is not a code at all, refused before it is looked up",
    },
    ("not_found", "login"): {
        "does not offer the sign-in by device key": "the browser is left, which the row shows",
        "was deleted, or is hidden from you": "said in the row of repo restore; others sign in as in the row",
        "without a session": "after svc logout; one signs in as in the row",
    },
    ("not_found", "log"): {
        "has no branch, tag or seal": ROW,
        "is not in the seal": "said in another row's scenario",
        "the history begins at": "said in the row of usage and diff",
    },
    ("not_found", "repo branch"): {
        "has no branch …; see": "a default branch that is gone, as any other name in the row",
        "has no branch, tag or seal": ROW,
    },
    ("not_found", "status"): {
        "is neither in this folder": ROW,
        "no file of": "said by svc grep of a path that is left out, which status shows as in the row",
        "is not in the seal": ROW,
        "is not in this seal": ROW,
    },
    ("not_watchable", "status"): dict.fromkeys(
        ("another file system is mounted", "on Linux only", "is on a file system"),
        "there is no watcher then, and svc status works without one as in the row",
    ),
    ("request_not_bound", "login"): {
        "must be signed by the device key": "a session with a key, whose request lost its signature",
        "this token is bound to no key": ROW,
    },
    ("server_misbehaved", "login"): {
        "redirects to": ROW,
        "cannot be opened": _ANSWER,
        "belongs to another sign-in": _ANSWER,
        "the sign-in answer is for": _ANSWER,
    },
    ("sign_in_required", "login"): {
        "nobody is signed in to": ROW,
        "has edits of": "a pull after svc logout in a public repository; one signs in as in the row",
        "this needs a session on": ROW,
        "a token has 1 to": _ENDED,
        "sealing needs a device key": _ENDED,
        "sending needs a device key": _ENDED,
        "this needs a device key": _ENDED,
        "sign in first": _ENDED,
        "the session has ended": _ENDED,
        "no session on": _ENDED,
        "these actions are another account's": _ENDED,
        "queued actions are sent with this machine's sign-in": _ENDED,
        "edits wait for this machine's sign-in": _ENDED,
        "the session has expired": _ENDED,
        "ended at": _ENDED,
        "does not belong to its session": _ENDED,
        "the token is …": _ENDED,
        "the token was refused": _ENDED,
        "is not registered here, or was revoked": _KEY,
        "this device key was revoked": "a new key is made, as in the row of forbidden and login",
    },
    ("stale_head", "pull"): {
        "live edits arrived after the prepare": "others were first, with an edit instead of a seal",
    },
    ("usage", "log"): {
        "--follow takes one file": ROW,
        "names two; svc diff": "said in the row of usage and diff",
        "takes two dots": "two dots list one side, as in the row of usage and diff",
    },
    ("usage", "repo branch"): {
        "--from needs the name": ROW,
        "svc repo branch lists branches": "said in the row of repo branch-delete",
        "is git's": "svc repo branch lists the branches, as in the row of repo branch-delete",
        "was on no other branch": "svc repo branch lists the branches, as in the row of repo branch-delete",
    },
    ("usage", "repo clone"): {
        "Name it with -R": "said in the row of repo init",
        "which repository? svc repo clone": ROW,
    },
    ("usage", "repo init"): {"Name it with -R": ROW, "which repository? svc repo init": ROW},
}
