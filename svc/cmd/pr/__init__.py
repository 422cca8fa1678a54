"""Commands on proposals."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "pr": "Proposals: a branch that is to be merged into another, with its versions and reviews",
    "pr label": "Labels on a proposal",
}

COMMANDS: dict[str, Registration] = {
    "pr create": Registration("pr.create:create", "Propose this branch for another"),
    "pr list": Registration("pr.pr:list_proposals", "List proposals"),
    "pr status": Registration("pr.pr:status", "List the open proposals that concern you"),
    "pr view": Registration("pr.pr:view", "Show a proposal"),
    "pr diff": Registration("pr.look:diff", "Show what a proposal changes"),
    "pr checkout": Registration("pr.look:checkout", "Switch this folder to the branch of a proposal"),
    "pr checks": Registration("pr.checks:list_checks", "Show, or watch, the checks of a proposal"),
    "pr versions": Registration("pr.look:versions", "List the versions of a proposal"),
    "pr range-diff": Registration("pr.look:range_diff", "Compare two versions of a proposal, seal by seal"),
    "pr review": Registration("pr.review:review", "Approve a proposal, request changes, or say something"),
    "pr merge": Registration("pr.merge:merge", "Merge a proposal into its base"),
    "pr update-branch": Registration(
        "pr.merge:update_branch", "Bring the base of a proposal into its branch"
    ),
    "pr comment": Registration("pr.talk:comment", "Comment on a proposal, or on lines of it"),
    "pr threads": Registration("pr.threads:list_threads", "List the comments on lines of a proposal"),
    "pr resolve": Registration("pr.threads:resolve", "Resolve comments on lines, or open them again"),
    "pr apply": Registration("pr.threads:apply", "Seal suggested lines onto the branch of a proposal"),
    "pr react": Registration("pr.talk:react", "React to a proposal or a comment"),
    "pr edit": Registration("pr.change:edit", "Change the title, text, base or people of a proposal"),
    "pr close": Registration("pr.change:close", "Close a proposal"),
    "pr reopen": Registration("pr.change:reopen", "Open a closed proposal again"),
    "pr ready": Registration("pr.change:ready", "Mark a draft as ready, or a proposal as a draft"),
    "pr label add": Registration("pr.change:add_label", "Put labels on a proposal"),
    "pr label remove": Registration("pr.change:remove_label", "Take labels off a proposal"),
}
