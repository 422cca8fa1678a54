"""Markdown and source text as HTML, made in processes that may be killed.

`markdown` and `highlight` are pure and run only in a worker process (`worker`): a text of 30 KB can keep a
lexer busy for minutes, and a thread would delay all others. `workers` manages the processes, `renderer`
caches the results.
"""
