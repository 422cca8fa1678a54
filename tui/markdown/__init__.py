"""Renders Markdown as rows of parts (text, role).

    page = render_markdown("# Title", 80)

Each part of the text is made safe for the terminal, because it comes from strangers. Of HTML, only pictures,
line breaks and `<details>` are supported. Other tags are dropped, and the text inside them is shown. Nothing
of Textual is imported here, because `svc issue view` prints the same rows."""

from tui.markdown.page import MarkdownRows, render_markdown

__all__ = ["MarkdownRows", "render_markdown"]
