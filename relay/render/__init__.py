"""Renders Markdown and source text as HTML, in processes that may be killed.

`markdown` and `highlight` are pure and run only in a worker process (`worker`). A text of 30 KB can keep a
lexer busy for minutes, and in a thread it would delay all other requests. `workers` manages the processes,
`renderer` caches the results.
"""
