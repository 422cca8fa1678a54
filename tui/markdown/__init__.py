"""Renders Markdown as rows of parts (text, role).

    page = rendered("# Title", 80, drawn)

Text of strangers is made safe part by part. Of HTML only pictures, line breaks and details are supported;
other tags are dropped, and the text inside them is shown. Nothing of Textual is imported here, because `svc
issue view` prints the same rows."""

from tui.markdown.page import Page, rendered

__all__ = ["Page", "rendered"]
