"""Every command of `invoke` with arguments that it takes, in an order in which each succeeds.

ann and bob have an account each; ann's folder is linked to ann/app, bob has none. `$name` in arguments is
what an earlier row kept: the member of its data that `keep` names (`id as run`: under another name), of the
first item if that is a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.llm import tiny

Step = Callable[[Path], object]


class Row(NamedTuple):
    """`before`: done in ann's folder first. `keep`: member of the data. `refused`: the code of the error,
    where a relay like this one can only refuse."""

    name: str
    args: Mapping[str, Any] = MappingProxyType({})
    who: str = "ann"
    keep: str = ""
    before: Step | None = None
    refused: str = ""


def write(name: str, text: str) -> Step:
    return lambda folder: (folder / name).write_text(text)


def model(folder: Path) -> None:
    tiny.write(folder / "tiny.gguf")


def tool(folder: Path) -> None:
    (folder / "tool").mkdir()
    (folder / "tool/.svc.yaml").write_text("kind: app\nlaunch: {command: [sleep, '600']}\n")


def picture(folder: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 20), "red").save(folder / "red.png")


ROWS = (
    Row("version"),
    Row("completions", {"shell": "bash"}),
    Row("auth_login", {"device_key": True, "handle": "ipc-ann"}),
    Row("auth_login", {"device_key": True, "handle": "ipc-bob"}, "bob"),
    Row("auth_status"),
    Row("device_list", keep="id as device"),
    Row("auth_device_rename", {"id": "$device", "name": "desk"}),
    Row("auth_device_add"),
    Row("auth_git_credential", {"action": "store"}),
    Row("auth_setup_git"),
    Row("auth_device_ssh", {"key": "not in the agent"}, refused="usage"),
    Row("auth_key_create", {"name": "printer"}),
    Row("auth_key_list", keep="id as key"),
    Row("auth_key_rotate", {"id": "$key", "yes": True}),
    Row("auth_key_revoke", {"id": "$key", "yes": True}),
    Row("auth_token_list", {}, "bob", keep="id as token"),
    # machine
    Row("system_info"),
    Row("cpu_info"),
    Row("memory_info"),
    Row("disk_info", {"path": "/"}),
    Row("gpu_detect"),
    Row("npu_list_models"),
    # a repository and its folder
    Row("repo_create", {"name": "app", "public": True}),
    Row("repo_list"),
    Row("repo_init", {"repository": "ipc-ann/app"}),
    Row("sync_push", {"message": "One"}, keep="seal", before=write("a.txt", "one\ntwo\nthree\n")),
    Row("repo_git_ignored"),
    Row("repo_view", {"repository": "ipc-ann/app"}),
    Row("repo_search", {"query": "app"}),
    Row("repo_edit", {"description": "About"}),
    Row("repo_star"),
    Row("repo_unstar"),
    Row("cloud_launch", {"gpu": "H100"}, refused="cloud_capability"),
    Row("cloud_list"),
    Row("cloud_view", {"machine": "m1"}, refused="not_found"),
    Row("cloud_stop", {"machine": "m1", "yes": True}, refused="not_found"),
    Row("billing", refused="edition_lacks_feature"),
    Row("repo_watch"),
    Row("repo_unwatch"),
    Row("repo_audit"),
    Row("repo_api", {"path": "repos/{id}/refs"}),
    Row("repo_device_status"),
    Row("repo_executable"),
    Row("repo_artifacts"),
    Row("repo_deps"),
    Row("repo_dependents"),
    Row("repo_listing", {"name": "App", "category": "tools"}),
    Row("advisories"),
    Row("upgrade", {"check": True}, refused="not_found"),
    Row("repo_fork", {"repository": "ipc-ann/app", "name": "fork"}, "bob"),
    Row("repo_forks"),
    Row("status"),
    Row("repo_status", {"offline": True}),
    Row("log", {"limit": 3}),
    Row("show", {"seal": "$seal"}),
    Row("blame", {"path": "a.txt"}),
    Row("diff", before=write("a.txt", "one\nTWO\nthree\n")),
    Row("restore", {"paths": ["a.txt"]}),
    Row("sync_pull"),
    Row("sync_conflicts"),
    # what waits
    Row("issue_create", {"title": "Later", "body": "x", "queue": True}, keep="id"),
    Row("sync_queue"),
    Row("queue_list"),
    Row("sync_retry"),
    Row("queue_drop", {"all": True, "yes": True}),
    Row("sync_status"),
    Row("sync_pause", {"paused": True}),
    # images
    Row("gallery_scan", before=picture),
    Row("gallery_list", {"kind": "png"}, keep="place"),
    Row("gallery_get_metadata", {"folder": "$place", "path": "red.png"}),
    Row("gallery_thumbnail", {"folder": "$place", "path": "red.png", "size": 16}),
    # labels and issues
    Row("label_create", {"name": "bug"}),
    Row("label_edit", {"name": "bug", "description": "Wrong"}),
    Row("label_list"),
    Row("issue_list"),
    Row("issue_status"),
    Row("issue_view", {"number": 1, "comments": True}),
    Row("issue_edit", {"number": "1", "title": "Now"}),
    Row("issue_comment", {"number": "1", "body": "Seen"}),
    Row("issue_react", {"number": "1", "reaction": "-1"}),
    Row("issue_label_add", {"number": "1", "labels": ["bug"]}),
    Row("issue_label_remove", {"number": "1", "labels": ["bug"]}),
    Row("issue_close", {"number": "1"}),
    Row("issue_reopen", {"number": "1"}),
    Row("inbox", {"all": True}),
    # who may
    Row("repo_collaborator_add", {"handle": "ipc-bob", "role": "write"}),
    Row("repo_invite_list", who="bob"),
    Row("repo_invite_decline", {"which": "ipc-ann/app"}, "bob"),
    Row("repo_collaborator_add", {"handle": "ipc-bob", "role": "write"}),
    Row("repo_invite_cancel", {"which": "ipc-bob"}),
    Row("repo_access_request", {"repository": "ipc-ann/app", "role": "triage"}, "bob"),
    Row("repo_access_list", keep="id"),
    Row("repo_access_decline", {"which": "$id"}),
    Row("repo_access_request", {"repository": "ipc-ann/app", "role": "triage"}, "bob"),
    Row("repo_access_list", keep="id"),
    Row("repo_access_grant", {"which": "ipc-bob"}),
    Row("repo_collaborator_list"),
    Row("repo_collaborator_role", {"handle": "ipc-bob", "role": "write"}),
    # reports and webhooks
    Row("repo_reports_create", {"title": "Leak", "body": "x", "repo": "ipc-ann/app"}, "bob"),
    Row("repo_reports_list", keep="id"),
    Row("repo_reports_view", {"report": "$id"}),
    Row("repo_reports_decide", {"report": "$id", "dismissed": True}),
    Row("repo_webhook_create", {"url": "http://127.0.0.1:9/", "events": "push"}, keep="id as hook"),
    Row("repo_webhook_list"),
    Row("repo_webhook_view", {"webhook": "$hook"}),
    Row("repo_webhook_edit", {"webhook": "$hook", "events": "push,issue"}),
    Row("repo_webhook_ping", {"webhook": "$hook"}),
    Row("repo_webhook_deliveries", {"webhook": "$hook"}, keep="id as delivery"),
    Row("repo_webhook_delivery", {"webhook": "$hook", "delivery": "$delivery"}),
    Row("repo_webhook_redeliver", {"webhook": "$hook", "delivery": "$delivery"}),
    Row("repo_webhook_delete", {"webhook": "$hook", "yes": True}),
    # branches, tags, proposals
    Row("repo_tag_create", {"name": "v0"}),
    Row("repo_tag_list"),
    Row("repo_tag_delete", {"name": "v0", "yes": True}),
    Row("repo_branch", {"name": "side"}),
    Row("switch", {"branch": "side", "merge": True}),
    Row("sync_push", {"message": "Two"}, before=write("a.txt", "one\ntwo\nthree\nfour\n")),
    Row("pr_create", {"title": "Four", "body": "x", "draft": True, "label": ["bug"]}, keep="number"),
    Row("pr_list"),
    Row("pr_status"),
    Row("pr_view", {"number": "$number"}),
    Row("pr_diff", {"number": "$number"}),
    Row("pr_versions", {"number": "$number"}),
    Row("pr_ready", {"number": "$number"}),
    Row("pr_edit", {"number": "$number", "title": "Count to four"}),
    Row("pr_comment", {"number": "$number", "body": "Good"}),
    Row("pr_comment", {"number": "$number", "path": "a.txt", "line": "4", "suggest": "FOUR", "body": "Loud"}),
    Row("pr_threads", {"number": "$number"}, keep="id as thread"),
    Row("pr_apply", {"number": "$number", "ids": ["$thread"]}),
    Row("pr_resolve", {"number": "$number", "ids": ["$thread"]}),
    Row("sync_pull"),
    Row("pr_react", {"number": "$number", "reaction": "heart"}),
    Row("pr_label_add", {"number": "$number", "labels": ["bug"]}),
    Row("pr_label_remove", {"number": "$number", "labels": ["bug"]}),
    Row("pr_review", {"number": "$number", "approve": True, "repo": "ipc-ann/app"}, "bob"),
    Row("pr_close", {"number": "$number"}),
    Row("pr_reopen", {"number": "$number"}),
    Row("switch", {"branch": "main"}),
    Row("sync_push", {"message": "Beside"}, keep="seal as beside", before=write("b.txt", "b\n")),
    Row("pr_update_branch", {"number": "$number"}),
    Row("pr_range_diff", {"number": "$number"}),
    Row("repo_checks_enable", {"name": "ci"}),
    Row("repo_checks_list"),
    Row("repo_checks_disable", {"name": "ci"}),
    Row("repo_run_create", {"name": "ci", "status": "queued"}, keep="id as run"),
    Row("repo_run_list"),
    Row("repo_run_view", {"run": "$run"}),
    Row("repo_run_update", {"run": "$run", "status": "completed", "conclusion": "success"}),
    Row("repo_run_watch", {"run": "$run"}),
    Row("repo_run_rerun", {"run": "$run"}, keep="id as again"),
    Row("repo_run_cancel", {"run": "$again"}),
    Row("pr_checks", {"number": "$number"}),
    Row("pr_checkout", {"number": "$number"}),
    Row("switch", {"branch": "main"}),
    Row("pr_merge", {"number": "$number"}),
    Row("sync_pull"),
    Row("revert", {"seal": "$beside"}),
    Row("sync_push", {"message": "Back"}),
    Row("repo_branch_delete", {"name": "side", "yes": True}),
    Row("repo_branch", {"name": "other"}),
    Row("sync_push", {"message": "Ours"}, before=write("b.txt", "ours\n")),
    Row("switch", {"branch": "other"}),
    Row("sync_push", {"message": "Theirs"}, before=write("b.txt", "theirs\n")),
    Row("merge", {"ref": "main"}, refused="failed"),  # with a conflict, which it leaves in the folder
    Row("resolve", {"path": "b.txt", "mine": True}),
    # releases
    Row("repo_release_create", {"version": "v1", "notes": "First"}),
    Row("repo_release_list"),
    Row("repo_release_view", {"version": "v1"}),
    Row("repo_release_edit", {"version": "v1", "notes": "The first"}),
    Row("repo_release_upload", {"version": "v1", "paths": ["a.txt"]}),
    Row("repo_release_sign", {"version": "v1", "paths": ["a.txt"]}),
    Row("repo_release_download", {"version": "v1", "dir": "assets"}),
    Row("repo_release_delete_asset", {"version": "v1", "name": "a.txt", "yes": True}),
    Row("repo_release_delete", {"version": "v1", "yes": True}),
    # settings
    Row("repo_protect_set", {"branch": "release", "require_review": True}),
    Row("repo_protect_list"),
    Row("repo_protect_clear", {"branch": "release"}),
    Row("repo_paths_set", {"path": "secret", "private": True, "yes": True}),
    Row("repo_paths_list"),
    Row("repo_paths_timeline"),
    Row("repo_paths_remove", {"path": "secret", "yes": True}),
    Row("repo_create", {"name": "copy"}),
    Row("label_clone", {"source": "ipc-ann/app", "repo": "ipc-ann/copy"}),
    Row("label_delete", {"name": "bug", "yes": True}),
    Row("repo_collaborator_remove", {"handle": "ipc-bob", "yes": True}),
    Row("repo_collaborator_add", {"handle": "ipc-bob", "role": "read"}),
    Row("repo_invite_accept", {"which": "ipc-ann/app"}, "bob"),
    Row("repo_clone", {"repository": "ipc-ann/app", "folder": "cloned"}),
    Row("repo_rename", {"words": ["ipc-ann/copy", "twin"], "yes": True}),
    Row("repo_visibility", {"words": ["ipc-ann/twin", "public"], "yes": True}),
    Row("repo_archive", {"repository": "ipc-ann/twin", "yes": True}),
    Row("repo_unarchive", {"repository": "ipc-ann/twin", "yes": True}),
    Row("repo_transfer", {"handle": "ipc-bob", "repo": "ipc-ann/twin", "yes": True}),
    Row("repo_transfer_list"),
    Row("repo_transfer_cancel", {"which": "ipc-ann/twin"}),
    Row("repo_transfer", {"handle": "ipc-bob", "repo": "ipc-ann/twin", "yes": True}),
    Row("repo_transfer_decline", {"which": "ipc-ann/twin"}, "bob"),
    Row("repo_transfer", {"handle": "ipc-bob", "repo": "ipc-ann/twin", "yes": True}),
    Row("repo_transfer_accept", {"which": "ipc-ann/twin", "yes": True}, "bob"),
    # an organisation
    Row("org_create", {"name": "ipc-acme"}),
    Row("org_list"),
    Row("org_rename", {"org": "ipc-acme", "new": "ipc-labs", "yes": True}),
    Row("org_view", {"org": "ipc-labs"}),
    Row("org_edit", {"org": "ipc-labs", "base_role": "read", "yes": True}),
    Row("org_edit", {"org": "ipc-labs", "base_role": "none", "yes": True}),
    Row("org_member_add", {"org": "ipc-labs", "handle": "ipc-bob"}),
    Row("org_member_list", {"org": "ipc-labs"}),
    Row("org_invite_list", {}, "bob"),
    Row("org_invite_decline", {"which": "ipc-labs"}, "bob"),
    Row("org_member_add", {"org": "ipc-labs", "handle": "ipc-bob"}),
    Row("org_invite_accept", {"which": "ipc-labs"}, "bob"),
    Row("org_member_role", {"org": "ipc-labs", "handle": "ipc-bob", "role": "admin"}),
    Row("org_leave", {"org": "ipc-labs", "yes": True}, "bob"),
    Row("org_member_add", {"org": "ipc-labs", "handle": "ipc-bob"}),
    Row("org_member_remove", {"org": "ipc-labs", "handle": "ipc-bob", "yes": True}),
    Row("org_delete", {"org": "ipc-labs", "yes": True}),
    Row("repo_create", {"name": "gone"}),
    Row("repo_delete", {"repository": "ipc-ann/gone", "yes": True}),
    Row("repo_list", {"deleted": True}, keep="id"),
    Row("repo_restore", {"id": "$id"}),
    # processes that stay
    Row("watch", {"detach": True}),
    Row("watch_list"),
    Row("watch_socket"),
    Row("watch_stop", {"all": True}),
    Row("watcher_start"),
    Row("watcher_list"),
    Row("watcher_stop"),
    Row("tui", {"plain": True}),
    # models of this machine; the port of these tests is held
    Row("llm_pull", {"file": "tiny.gguf", "as": "first"}, before=model),
    Row("llm_list"),
    Row("llm_show", {"model": "first"}),
    Row("llm_status"),
    Row("llm_ps"),
    Row("llm_logs"),
    Row("llm_doctor"),
    Row("llm_stop"),
    Row("llm_start", refused="port_held"),
    Row("llm_run", {"model": "first", "prompt": ["Hi"]}, refused="port_held"),
    Row("llm_cp", {"model": "first", "name": "second"}),
    Row("llm_rm", {"model": "first", "yes": True}),
    Row("app_manifest", {"id": "tool"}, before=tool),
    Row("app_check", {"id": "tool"}),
    Row("app_launch", {"id": "tool", "detach": True, "yes": True}),
    Row("app_list"),
    Row("app_status", {"id": "tool"}),
    Row("app_restart", {"id": "tool"}),
    Row("app_logs", {"id": "tool"}),
    Row("app_open", {"id": "tool"}, refused="usage"),
    Row("app_update", {"id": "tool"}, refused="usage"),
    Row("app_stop", {"id": "tool"}),
    Row("app_uninstall", {"id": "tool", "yes": True}),
    Row("app_install", {"repository": "nobody/tool"}, refused="not_found"),
    # the end of a session
    Row("auth_token_revoke", {"id": "$token", "yes": True}, "bob"),
    Row("device_revoke", {"id": "$device", "yes": True}),
    Row("auth_logout"),
)
