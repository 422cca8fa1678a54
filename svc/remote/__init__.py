"""The process that a relay starts for somebody who came over SSH: it confines itself, then runs svc."""
