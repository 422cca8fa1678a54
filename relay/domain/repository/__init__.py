"""Repositories: they are made, found, forked and deleted. Also has refs, path rules, the audit, and the pages
of repositories.
"""
