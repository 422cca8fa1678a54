"""Commands on models and the local LLM server."""

from svc.cmd.frame.registration import Registration

GROUPS = {"llm": "Models of this machine, and the local LLM server that apps share"}

COMMANDS: dict[str, Registration] = {
    "llm pull": Registration(
        "llm.models:pull", "Take a model into the cache: from a file, a repository or a registry"
    ),
    "llm cp": Registration("llm.models:copy", "Give a model a further name"),
    "llm list": Registration("llm.models:list_models", "List the models of this machine"),
    "llm show": Registration("llm.models:show", "Show a model: what it is, and what it can do"),
    "llm rm": Registration("llm.models:remove", "Remove a model from this machine"),
    "llm serve": Registration("llm.server:serve", "Run the local LLM server in the foreground"),
    "llm start": Registration("llm.server:start", "Start the local LLM server, and leave it running"),
    "llm stop": Registration("llm.server:stop", "Stop the local LLM server, or unload one model"),
    "llm status": Registration("llm.server:status", "Show the local LLM server of this machine"),
    "llm ps": Registration("llm.server:list_loaded", "List the models that are loaded"),
    "llm logs": Registration("llm.server:logs", "Print the log of the local LLM server"),
    "llm doctor": Registration("llm.doctor:doctor", "Check what this machine can generate with"),
    "llm run": Registration("llm.run:run", "Chat with a model, or answer one prompt"),
}
