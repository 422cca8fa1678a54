"""Apps on this machine: programs in a repository, launched together with the local LLM server and the models
that they need."""
