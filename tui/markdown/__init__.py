"""Renders Markdown as rows of parts (text, role).

    page = rendered("# Title", 80, drawn)

Each part of the text is made safe for the terminal, because it comes from strangers. Of HTML, only pictures,
line breaks and details are supported. Other tags are dropped, and the text inside them is shown. Nothing of
Textual is imported here, because `svc issue view` prints the same rows."""

from tui.markdown.page import Page, rendered

__all__ = ["Page", "rendered"]
