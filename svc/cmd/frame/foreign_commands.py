"""Commands and options of git, gh and hf, and their equivalents here.

Existing commands are looked up first and need no line here.
"""

from __future__ import annotations

WORDS: dict[str, str] = {
    "add": "there is nothing to add: svc push sends every change that no ignore rule names",
    "alias": "aliases are your shell's: alias sp='svc push'",
    "am": 'there are no patches by mail; svc push -m "What changed" sends and seals your changes',
    "amend": "a seal never changes; svc push seals what you mended as the next one",
    "archive": "svc repo api repos/{id}/archive/SEAL.tar.gz prints the files of a seal",
    "bisect": "svc log PATH lists the seals that changed a file, svc restore PATH --from SEAL tries one",
    "branch": "svc repo branch lists branches, svc repo branch NAME makes one, svc switch NAME goes to it",
    "branches": "svc repo branch lists branches",
    "browse": "svc repo view --web opens the repository's page",
    "cat": "svc repo api repos/{id}/raw/SEAL/PATH prints a file of a seal",
    "checkout": "svc switch BRANCH switches this folder to a branch, svc restore PATH brings files back",
    "cherry-pick": "svc restore PATH --from SEAL brings files of a seal here, svc push seals them",
    "clean": "svc status lists new files; delete what you do not want",
    "clone": "svc repo clone OWNER/NAME copies a repository into a new folder",
    "commit": 'a commit is called a seal: svc push -m "What changed" sends and seals your changes',
    "completion": "svc completions SHELL prints a script for bash, zsh or fish",
    "config": "there are no settings to keep; flags and SVC_ variables are in svc --help and the guide",
    "describe": "svc repo tag list shows which seals have names",
    "download": "svc repo clone OWNER/NAME",
    "fetch": "svc pull --dry-run looks, svc pull brings the changes",
    "format-patch": "svc show SEAL prints the patch of a seal",
    "fsck": "every seal is checked as it arrives; relay audit checks a whole relay",
    "gc": "there is nothing to collect here; the relay does it by itself",
    "gist": "svc repo create NAME makes a repository for a single file too",
    "grep": "the files are here: grep -r WORDS . searches them",
    "init": "svc repo create NAME makes a repository, svc repo init OWNER/NAME links this folder to it",
    "lazygit": "svc status, svc log and svc show look at a folder",
    "lfs": "large files need no extension: svc push sends them in pieces, svc repo clone brings them",
    "ls-files": "svc status lists what differs from the branch; every file that no rule ignores is sent",
    "mv": "rename it as you like; svc push finds out",
    "rebase": "there is nothing to rebase: svc pull --merge puts your edits on top of the branch's",
    "reflog": "svc log lists the seals; none is ever lost",
    "remote": "svc repo view shows where this folder is linked, svc repo init OWNER/NAME changes it",
    "reset": "svc restore PATH brings files back, svc pull --force takes the branch's",
    "rev-parse": "svc log -n 1 --jq '.[0].id' prints the newest seal",
    "rm": "delete it as you like; svc push removes it from the branch",
    "secret": "there are no secrets to keep; a script gets SVC_TOKEN from its CI",
    "shortlog": "svc log --json author lists who sealed",
    "show-ref": "svc repo branch lists branches, svc repo tag list lists tags",
    "ssh-key": "each device signs with a key of its own: svc auth device list",
    "search": "svc repo search WORDS",
    "stash": "svc switch BRANCH --merge carries your edits along",
    "submodule": "a repository holds no others; svc repo clone puts one into any folder",
    "sync": "svc pull --merge, then svc push",
    "tag": "svc repo tag create NAME, svc repo tag list",
    "undo": "svc restore PATH brings files back; what they held is kept in a trash folder",
    "upload": 'svc push -m "What changed"',
    "whoami": "svc auth status says who is signed in, and where",
    "worktree": "svc repo clone OWNER/NAME FOLDER -b BRANCH makes a folder of its own for a branch",
    "notifications": "svc inbox lists what concerns you, svc inbox done puts it away",
    "issue delete": "an issue is closed and stays readable: svc issue close NUMBER --reason not_planned",
    "issue lock": "conversations are not locked; a moderator deletes comments",
    "auth login": "svc login signs in",
    "repo run delete": "what was recorded stays; svc repo run rerun ID queues another attempt",
    "repo run download": "a run has no files; svc repo run view ID shows where to read more",
    "auth refresh": "svc login signs in again",
    "auth setup-git": "git does not speak to a relay; svc push and svc pull do",
    "auth switch": "svc login --handle NAME --device-key signs in as somebody else",
    "auth logout": "svc logout ends the session",
    "auth token create": "tokens are made in the browser, at /settings?tab=tokens of the server",
    "pr co": "svc pr checkout NUMBER switches this folder to the branch of a proposal",
    "pr ls": "svc pr list lists proposals",
    "pr new": "svc pr create proposes this branch for another",
    "pr show": "svc pr view NUMBER shows a proposal",
    "repo add": "there is nothing to add: svc push sends every change that no ignore rule names",
    "repo set-default": "svc repo init OWNER/NAME links this folder to a repository",
    "repo sync": "svc pull --merge, then svc push",
    "repo unlink": "delete the folder .svc: the files stay, the link is gone",
}

OTHER_NAMES = {  # of groups of commands, in gh and glab
    "issues": "issue",
    "mr": "pr",
    "prs": "pr",
    "release": "repo release",
    "releases": "repo release",
    "run": "repo run",
    "runs": "repo run",
    "webhook": "repo webhook",
    "workflow": "repo run",
}

LINKED = "a linked folder knows its repository and branch, and needs no names of them"
OPTIONS = {  # and words behind a command: of git and gh, by the command that is called the same here
    "diff --cached": "nothing is staged: svc diff shows what a push would send",
    "diff --staged": "nothing is staged: svc diff shows what a push would send",
    "log --all": "svc log BRANCH shows one branch, svc repo branch lists them",
    "log --graph": "svc log --oneline is the short form",
    "log -": "svc log -n NUMBER shows so many",
    "login --web": "svc login opens the browser by itself",
    "pull --rebase": "svc pull --merge puts your edits on top of the branch's",
    "pull WORDS": LINKED,
    "push --all": "svc push sends this folder's branch; svc switch goes to another",
    "push --force": "a seal is never overwritten: svc pull --merge, then svc push",
    "push --force-with-lease": "a seal is never overwritten: svc pull --merge, then svc push",
    "push --set-upstream": LINKED,
    "push --tags": "svc repo tag create NAME makes a tag on the server at once",
    "push -f": "a seal is never overwritten: svc pull --merge, then svc push",
    "push -u": LINKED,
    "push WORDS": LINKED,
    "repo clone --depth": "a clone holds the newest seal alone; svc log asks the server for older ones",
    "repo run rerun --failed": "svc repo run rerun ID queues one attempt of one check",
    "repo run view --log": "no logs are kept here; svc repo run view ID shows where to read more",
    "repo run view --log-failed": "no logs are kept here; svc repo run view ID shows where to read more",
    "repo run watch --exit-status": "svc repo run watch ID exits 1 for a failed run by itself",
    "repo create --private": "a repository is private until svc repo visibility public",
    "restore --staged": "nothing is staged: svc restore PATH brings the sealed version back",
    "status --porcelain": "svc status --json, or svc status in a pipe, is made for programs",
    "switch --create": "svc repo branch NAME makes a branch, svc switch NAME goes to it",
    "switch -c": "svc repo branch NAME makes a branch, svc switch NAME goes to it",
    "switch -b": "svc repo branch NAME makes a branch, svc switch NAME goes to it",
}


def option_hint(command: str, option: str | None) -> str:
    """The hint for an option that `svc COMMAND` lacks (None: for extra words); empty for unknown ones."""
    if option is None:
        return OPTIONS.get(f"{command} WORDS", "")
    if option[1:].isdigit():
        option = "-"  # as in `log -5`
    return OPTIONS.get(f"{command} {option}", "")
