"""Apps on this machine. An app is a program in a repository, which svc launches together with the local LLM
server and the models that it needs."""
