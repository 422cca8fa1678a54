"""git reads public repositories over https (docs/design/019).

Each repository that git reads has a bare git repository on the relay. It is a cache: it is made from the
seals and can be deleted at any time. `git upload-pack` answers from it.
"""
