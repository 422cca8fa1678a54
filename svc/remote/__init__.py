"""The process that a relay starts for a user who connects over SSH: it confines itself, then runs svc."""
