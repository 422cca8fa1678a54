"""git reads public repositories over https (docs/design/019).

For each repository that git reads there is a bare repository of git, a cache that is made from the seals and
deleted at will; `git upload-pack` answers from it.
"""
