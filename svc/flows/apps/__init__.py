"""Apps of this machine: they are launched with the local LLM server and the models that they need."""
