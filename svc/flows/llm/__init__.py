"""The local LLM server, as commands and the agent see it: a process of its own that answers HTTP."""
