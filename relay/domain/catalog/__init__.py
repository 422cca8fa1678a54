"""Rules of listings, dependencies and their repositories, advisories, artifacts of seals, and builds of the
client.
"""
