"""Rules of listings, of the dependencies and dependents of repositories, of advisories, of artifacts of
seals, and of builds of the client.
"""
