"""Commands on security reports."""

from svc.cmd.frame.registration import Registration

GROUPS = {"repo reports": "Security reports: what owners are told in confidence"}

COMMANDS: dict[str, Registration] = {
    "repo reports list": Registration("reports.reports:list_reports", "List security reports"),
    "repo reports view": Registration("reports.reports:view", "Show a security report"),
    "repo reports create": Registration(
        "reports.reports:create", "Tell the owner of a repository in confidence what is wrong with it"
    ),
    "repo reports decide": Registration("reports.reports:decide", "Decide a security report"),
}
