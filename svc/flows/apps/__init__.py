"""Apps of this machine, which are launched with the local LLM server and the models that they need."""
