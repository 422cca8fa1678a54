"""Commands on runs and checks."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "repo run": "Runs: results of checks on seals, recorded by whoever runs them",
    "repo checks": "Checks that runs report on, and which of them have to pass",
}

COMMANDS: dict[str, Registration] = {
    "repo run list": Registration("run.run:list_runs", "List runs"),
    "repo run view": Registration("run.run:view", "Show a run"),
    "repo run watch": Registration("run.watch:watch", "Wait until a run is completed"),
    "repo run create": Registration("run.report:create", "Record a run of a check on a seal"),
    "repo run update": Registration("run.report:update", "Update a run that is not completed"),
    "repo run cancel": Registration("run.report:cancel", "Complete a run as cancelled"),
    "repo run rerun": Registration("run.report:rerun", "Request another attempt of a completed run"),
    "repo checks list": Registration("run.checks:list_checks", "List checks, or their states on a seal"),
    "repo checks enable": Registration("run.checks:enable", "Enable a check: it has to pass"),
    "repo checks disable": Registration("run.checks:disable", "Disable a check"),
}
