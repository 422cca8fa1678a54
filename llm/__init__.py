"""The local LLM server: a keeper of the port, a front that speaks the API, a runner a model."""
