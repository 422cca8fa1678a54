"""Words that people bring from git, gh and hf, and what they are called here."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "add": "there is nothing to add: svc push sends every change that no ignore rule names",
    "branches": "svc repo branch lists branches",
    "checkout": "svc switch BRANCH turns this folder to a branch, svc restore PATH brings files back",
    "cat": "svc repo api repos/{id}/raw/SEAL/PATH prints a file of a seal",
    "commit": 'a commit is called a seal: svc push -m "What changed" sends and seals your changes',
    "config": "there are no settings to keep; flags and SVC_ variables are in svc --help and the guide",
    "download": "svc repo clone OWNER/NAME",
    "fetch": "svc pull --dry-run looks, svc pull brings the changes",
    "merge": "svc pull --merge joins your edits with the branch's",
    "mv": "rename it as you like; svc push finds out",
    "remote": "svc repo view shows where this folder is linked, svc repo init OWNER/NAME changes it",
    "reset": "svc restore PATH brings files back, svc pull --force takes the branch's",
    "rm": "delete it as you like; svc push removes it from the branch",
    "stash": "svc switch BRANCH --merge carries your edits along",
    "sync": "svc pull --merge, then svc push",
    "tag": "svc repo tag create NAME, svc repo tag list",
    "undo": "svc restore PATH brings files back; what they held is kept in a trash folder",
    "upload": 'svc push -m "What changed"',
    "whoami": "svc auth status",
}
