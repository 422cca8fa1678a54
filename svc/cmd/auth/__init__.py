"""Commands on sessions, tokens and devices."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "auth": "Your sessions, tokens and devices",
    "auth token": "Sessions and script tokens of your account",
    "auth device": "Device keys of your account",
    "auth key": "API keys of your account, for programs that check them",
}

COMMANDS: dict[str, Registration] = {
    "auth status": Registration("auth.status:status", "Show who you are on the server, and until when"),
    "auth setup-git": Registration("auth.git:setup_git", "Let git read private repositories by this sign-in"),
    "auth git-credential": Registration("auth.git:git_credential", "Answer git's question for a password"),
    "auth token list": Registration("auth.token:list_tokens", "List your sessions and script tokens"),
    "auth token revoke": Registration("auth.token:revoke", "End a session or script token"),
    "auth device add": Registration(
        "auth.device:add", "Make a one-time code with which another device joins"
    ),
    "auth device pair": Registration("auth.pairing:pair", "Add another device by a QR code and six digits"),
    "auth device ssh": Registration("auth.device:ssh", "Register a key of your ssh-agent as a device key"),
    "auth device list": Registration("auth.device:list_devices", "List the device keys of your account"),
    "auth device rename": Registration("auth.device:rename", "Rename a device"),
    "auth device revoke": Registration(
        "auth.device:revoke", "Revoke a device key; what it sealed stays valid"
    ),
    "auth key create": Registration("auth.key:create", "Create an API key"),
    "auth key list": Registration("auth.key:list_keys", "List your API keys"),
    "auth key rotate": Registration("auth.key:rotate", "Give an API key a new secret"),
    "auth key revoke": Registration("auth.key:revoke", "Revoke an API key for ever"),
}
