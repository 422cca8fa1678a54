"""Models, apps and the local LLM server of this machine."""
