"""Commands on apps of this machine."""

from svc.cmd.frame.registration import Registration

GROUPS = {"app": "Apps of this machine, with the models and the local LLM server that they need"}

COMMANDS: dict[str, Registration] = {
    "app launch": Registration(
        "app.launch:launch", "Start an app, after the server and the models that it needs"
    ),
    "app list": Registration("app.state:list_apps", "List the apps of this machine, and which of them run"),
    "app status": Registration("app.state:status", "Show an app: whether it runs, and with which model"),
    "app stop": Registration("app.launch:stop", "Stop an app"),
    "app restart": Registration("app.launch:restart", "Stop an app and start it again, in the background"),
    "app logs": Registration("app.state:logs", "Print what an app in the background printed"),
    "app manifest": Registration("app.manifest:manifest", "Show what .svc.yaml of an app says"),
    "app check": Registration("app.manifest:check", "Check whether an app could be launched here"),
    "app install": Registration("app.install:install", "Install an app from its repository"),
    "app update": Registration("app.install:update", "Bring an installed app up to date"),
    "app uninstall": Registration("app.install:uninstall", "Remove an app from this machine"),
    "app open": Registration("app.launch:open_app", "Open the page of an app that runs"),
}
