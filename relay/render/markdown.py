"""Turns Markdown that strangers wrote into harmless HTML: no scripts, no styles, only allowed addresses.

The text is parsed together with its raw HTML. The result is filtered by an allow-list, which also rewrites
addresses. Relative links lead to pages of the same seal, `/x` starts at the root of the repository, and
images come from this node. Images of other sites become links that name the site, so that the site learns a
reader's address only if the reader follows the link.
"""

from __future__ import annotations

import posixpath
import re
from functools import partial
from html import escape, unescape
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from relay.render import highlight
from relay.render.jobs import Links

NESTING = 20
ANCHOR = "user-"  # before each id of the text: ids of the page have none
TAGS = {
    "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2",
    "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp",
    "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
    "u", "ul", "var",
}  # fmt: skip
ATTRIBUTES: dict[str, set[str]] = {
    "*": set(),  # else nh3 lets titles and languages through for each tag
    "a": {"href", "title", "id"},
    "abbr": {"title"},
    "img": {"src", "alt", "title", "width", "height"},
    "td": {"align"},
    "th": {"align"},
    "ol": {"start"},
    "details": {"open"},
    "h1": {"id"},
    "h2": {"id"},
    "h3": {"id"},
    "h4": {"id"},
    "h5": {"id"},
    "h6": {"id"},
}
# What may be wider than its column scrolls by keys too, once the focus is there.
SCROLLED = {"pre": {"tabindex": "0"}, "table": {"tabindex": "0"}}
CLASSES = {"span": {"c", "k", "s", "m", "n", "t", "del", "ins", "task", "checked"}}
SCHEMES = {"http", "https", "mailto"}
REL = "nofollow noopener"
_ELSEWHERE = re.compile(r"(https?:)?//", re.IGNORECASE)
# A tag as nh3 writes it: in small letters, each value within double quotes.
_TAG = re.compile(r'<(/?)(a|img)((?: [a-z-]+="[^"]*")*)>')
_ATTRIBUTE = re.compile(r' ([a-z-]+)="([^"]*)"')
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_NUMBER = re.compile(r"(?<![\w/#&])#([0-9]{1,9})(?!\w)")
_TASK = re.compile(r"\[([ xX])\] ")
_SLUG = re.compile(r"[^\w\- ]")


def to_html(text: str, links: Links) -> str:
    """Convert the text to HTML that is safe in a page."""
    parser = _parser()
    environment: dict[str, Any] = {}
    tokens = parser.parse(text, environment)
    _Rewriting(links).rewrite(tokens)
    html = nh3.clean(
        parser.renderer.render(tokens, parser.options, environment),
        tags=TAGS,
        clean_content_tags={"script", "style", "title", "textarea", "svg", "math"},
        attributes=ATTRIBUTES,
        attribute_filter=partial(_attribute, links),
        allowed_classes=CLASSES,
        set_tag_attribute_values=SCROLLED,
        url_schemes=SCHEMES,
        link_rel=REL,
    )
    return _name_images(html) if "<img" in html else html


def _attribute(links: Links, tag: str, name: str, value: str) -> str | None:
    """The new value of an HTML attribute. None means that the attribute is left out."""
    if (tag, name) == ("a", "href"):
        return link(value, links)
    if (tag, name) == ("img", "src"):
        return image(value, links) or (value if _ELSEWHERE.match(value) else None)
    if name == "id":
        return value if value.startswith(ANCHOR) else f"{ANCHOR}{value}"
    return value


def _name_images(html: str) -> str:
    """In the cleaned HTML, put names in the place of images that are not loaded. The name of an image of
    another site becomes a link, unless it is inside a link already."""
    within = 0

    def replace_tag(match: re.Match[str]) -> str:
        nonlocal within
        closes, tag, attributes = match.groups()
        if tag == "a":
            within += -1 if closes else 1
            return match[0]
        values = {name: unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
        source = values.get("src", "")
        if source and not _ELSEWHERE.match(source):
            return match[0]
        name = values.get("alt", "").strip()
        if not source:
            return escape(f"image: {name}") if name else ""
        host = _host(source)
        words = escape(f"image: {name} ({host})" if name else f"image ({host})")
        return words if within else f'<a href="{escape(source)}" rel="{REL}">{words}</a>'

    return _TAG.sub(replace_tag, html)


def _host(address: str) -> str:
    """The name of the site that an address leads to."""
    try:
        return urlsplit(address).hostname or "elsewhere"
    except ValueError:
        return "elsewhere"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "linkify": True, "maxNesting": NESTING})
    parser.enable(["table", "strikethrough", "linkify"])
    parser.options["highlight"] = lambda code, language, _: highlight.block(code, language)
    return parser


class _Rewriting:
    """Rewrites headings, task lists and issue numbers in the tokens of one text."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._slugs: dict[str, int] = {}

    def rewrite(self, tokens: list[Token]) -> None:
        for place, token in enumerate(tokens):
            if token.type == "heading_open":
                token.attrSet("id", self._slug(_words(tokens[place + 1])))
            if token.type in ("th_open", "td_open") and "style" in token.attrs:
                token.attrs["align"] = str(token.attrs.pop("style")).removeprefix("text-align:")
            if token.type == "inline":
                opened = place >= 2 and tokens[place - 2].type == "list_item_open"
                token.children = self._inline(token.children or [], opened)

    def _inline(self, children: list[Token], of_item: bool) -> list[Token]:
        rewritten: list[Token] = []
        within = 0
        for place, token in enumerate(children):
            if token.type in ("link_open", "link_close"):
                within += token.nesting
            elif token.type == "text":
                rewritten += self._text(token, of_item and place == 0, within > 0)
                continue
            rewritten.append(token)
        return rewritten

    def _text(self, token: Token, opens_item: bool, within: bool) -> list[Token]:
        before: list[Token] = []
        task = _TASK.match(token.content) if opens_item else None
        if task:
            is_done = task[1] != " "
            shape = "task checked" if is_done else "task"
            before.append(_html(f'<span class="{shape}">{"☑" if is_done else "☐"}</span> '))
            token.content = token.content[task.end() :]
        if within or not self._links.address or not _NUMBER.search(token.content):
            return [*before, token]
        at, pieces = 0, list(before)
        for match in _NUMBER.finditer(token.content):
            pieces.append(_html(escape(token.content[at : match.start()])))
            href = escape(f"{self._links.address}?tab=issues&n={match[1]}")
            pieces.append(_html(f'<a href="{href}">{match[0]}</a>'))
            at = match.end()
        return [*pieces, _html(escape(token.content[at:]))]

    def _slug(self, title: str) -> str:
        """The anchor of a heading, made as on GitHub."""
        words = _SLUG.sub("", title.strip().lower()).replace(" ", "-")[:100] or "section"
        times = self._slugs[words] = self._slugs.get(words, -1) + 1
        return f"{ANCHOR}{words}" if times == 0 else f"{ANCHOR}{words}-{times}"


def link(target: str, links: Links) -> str | None:
    """The address for a link of the text. It leads to another site, an anchor, or a page of the repository at
    the same seal. Returns None for a link that leads out of the repository."""
    if _SCHEME.match(target) or target.startswith(("//", f"{links.address}?")):
        return target
    if target.startswith("#"):
        return f"#{_anchor(target[1:])}"
    path, anchor = _path(target, links)
    if path is None:
        return None
    return f"{links.page}{quote(path)}" + (f"#{_anchor(anchor)}" if anchor else "")


def image(source: str, links: Links) -> str | None:
    """The address of an image in the repository; None for images of other sites, or if images are not
    shown."""
    if not links.raw or _SCHEME.match(source) or source.startswith("//"):
        return None
    path, _ = _path(source, links) if source else (None, "")
    return f"{links.raw}{quote(path)}" if path else None


def _anchor(name: str) -> str:
    return ANCHOR + quote(unquote(name).lower().removeprefix(ANCHOR))


def _path(target: str, links: Links) -> tuple[str | None, str]:
    """Find the path in the repository to which the target of a link leads. Returns (path, anchor); the path
    is None if the link leads out of the repository."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return None, ""
    named = unquote(parts.path)
    joined = named.lstrip("/") if named.startswith("/") else posixpath.join(links.folder, named)
    path = posixpath.normpath(joined) if joined else ""
    if path.startswith("../") or path == "..":
        return None, ""
    return "" if path == "." else path, parts.fragment


def _words(inline: Token) -> str:
    """The text of a heading without its Markdown marks."""
    return "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


def _html(text: str) -> Token:
    return Token("html_inline", "", 0, content=text)
