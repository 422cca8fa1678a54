"""The local LLM server, for commands and the agent: a separate process that answers HTTP."""
