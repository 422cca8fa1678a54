"""The app over SSH (docs/design/017-ssh.md)."""
