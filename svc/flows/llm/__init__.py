"""The local LLM server, for commands and the agent. It is a separate process that answers HTTP requests."""
