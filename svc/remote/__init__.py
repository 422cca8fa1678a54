"""The process that a relay starts for a user over SSH: it confines itself, then runs svc."""
