"""The screen about language models, apps and the local LLM server of this machine."""
