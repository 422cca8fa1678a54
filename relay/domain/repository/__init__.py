"""Repositories: made, found, forked, deleted; refs, path rules, audit; and their pages."""
