"""The local LLM server: a keeper of the port, a front that speaks the API, and a runner for each model."""
