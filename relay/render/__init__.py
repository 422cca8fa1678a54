"""Markdown and source text as HTML, made in processes that may be killed.

`markdown` and `highlight` are pure and run in a worker alone (`worker`): a text of 30 KB can keep a lexer
busy for minutes, and a thread would hold up the others. `workers` keeps the processes, `renderer` what they
made.
"""
