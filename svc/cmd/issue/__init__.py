"""Commands on issues."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "issue": "Issues: what is to be done, asked or mended in a repository",
    "issue label": "Labels on an issue",
}

COMMANDS: dict[str, Registration] = {
    "issue create": Registration("issue.issue:create", "Open an issue"),
    "issue list": Registration("issue.issue:list_issues", "List issues"),
    "issue status": Registration("issue.issue:status", "List the open issues that concern you"),
    "issue view": Registration("issue.issue:view", "Show an issue"),
    "issue edit": Registration(
        "issue.change:edit", "Change the title, text, labels or assignees of an issue"
    ),
    "issue close": Registration("issue.change:close", "Close an issue"),
    "issue reopen": Registration("issue.change:reopen", "Open a closed issue again"),
    "issue comment": Registration("issue.comment:comment", "Comment on an issue"),
    "issue react": Registration("issue.comment:react", "React to an issue or a comment"),
    "issue label add": Registration("issue.change:add_label", "Put labels on an issue"),
    "issue label remove": Registration("issue.change:remove_label", "Take labels off an issue"),
}
