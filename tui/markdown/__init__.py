"""Markdown as rows of parts with roles.

    page = rendered("# Title", 80, drawn)

What a stranger wrote is made safe part by part, and of HTML nothing but pictures, line breaks and details is
understood: of other tags their text is left. Nothing of Textual is imported here, because `svc issue view`
prints the same rows.
"""

from tui.markdown.page import Page, rendered

__all__ = ["Page", "rendered"]
