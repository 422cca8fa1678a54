"""Markdown of strangers: what it becomes, and what it can never become."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.render.jobs import Links
from relay.render.markdown import ATTRIBUTES, TAGS, image, link, to_html

LINKS = Links("docs", "/apps/a/b/dev?tab=code&at=S&path=", "/raw/", "/apps/a/b/dev")
PAGE, RAW = LINKS.page, LINKS.raw
IN_HTML, REL = PAGE.replace("&", "&amp;"), 'rel="nofollow noopener"'


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("x.md", f"{PAGE}docs/x.md"),
        ("./x.md", f"{PAGE}docs/x.md"),
        ("../x.md", f"{PAGE}x.md"),
        ("../", PAGE),
        ("/x.md", f"{PAGE}x.md"),
        ("/", PAGE),
        ("x/", f"{PAGE}docs/x"),
        ("x y.md", f"{PAGE}docs/x%20y.md"),
        ("x%20y.md", f"{PAGE}docs/x%20y.md"),
        ("x.md?a=1", f"{PAGE}docs/x.md"),
        ("x.md#Two-Words", f"{PAGE}docs/x.md#user-two-words"),
        ("a&path=b.md", f"{PAGE}docs/a%26path%3Db.md"),
        ("#Part", "#user-part"),
        ("https://example.org/#3", "https://example.org/#3"),
        ("//example.org/x", "//example.org/x"),
        ("../../x.md", None),
        ("/../x.md", None),
        ("http://[", "http://["),
        ("//[", "//["),
    ],
)
def test_links_lead_to_pages_of_the_same_seal(target: str, address: str | None) -> None:
    assert link(target, LINKS) == address


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("a.png", f"{RAW}docs/a.png"),
        ("/a.png", f"{RAW}a.png"),
        ("a.png?raw=true", f"{RAW}docs/a.png"),
        ("https://example.org/a.png", None),
        ("//example.org/a.png", None),
        ("data:image/png;base64,AA", None),
        ("../../a.png", None),
        ("", None),
    ],
)
def test_images_come_from_this_node(source: str, address: str | None) -> None:
    assert image(source, LINKS) == address


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("# A *b* `c`!", '<h1 id="user-a-b-c">A <em>b</em> <code>c</code>!</h1>'),
        ("# A\n# A", '<h1 id="user-a-1">A</h1>'),
        ("- [x] done", '<span class="task checked">☑</span> done'),
        ("- [ ] open", '<span class="task">☐</span> open'),
        ("see #12.", f'see <a href="{LINKS.address}?tab=issues&amp;n=12" {REL}>#12</a>.'),
        ("`#12` a#12", "<p><code>#12</code> a#12</p>"),
        ("[#12](x.md)", ">#12</a>"),
        ("|a|\n|:-:|\n|1|", '<td align="center">1</td>'),
        ("~~a~~", "<s>a</s>"),
        ("```python\nreturn\n```", '<pre tabindex="0"><code><span class="k">return</span></code></pre>'),
        ("```nothing-known\n<b>\n```", "<code>&lt;b&gt;"),
        ("![two](https://example.org/p.png)", f"{REL}>image: two (example.org)</a>"),
        ('<img src="//example.org/p.png">', f'<a href="//example.org/p.png" {REL}>image (example.org)</a>'),
        ("![1<2>](HTTPS://Example.org/p)", ">image: 1&lt;2&gt; (example.org)</a>"),
        ("[![b](https://ci.example.org/b)](x.md)", f'{REL}>image: b (ci.example.org)</a></p>'),
        ('<a href="x.md"><img src="https://a.example/b" alt="c"></a>', f'{REL}>image: c (a.example)</a>'),
        ("![out](../../p.png)", "<p>image: out</p>"),
        ("![one](p.png)", f'<img src="{RAW}docs/p.png" alt="one">'),
        ("<details><summary>s</summary>\n\n*t*\n\n</details>", "</summary>\n<p><em>t</em></p>"),
        ('<img src="p.png" width="9">', f'<img src="{RAW}docs/p.png" width="9">'),
        ('<a href="x.md">x</a>', f'<a href="{IN_HTML}docs/x.md" {REL}>x</a>'),
        ("http://example.org/a", f'<a href="http://example.org/a" {REL}>'),
    ],
)  # fmt: skip
def test_a_text_becomes(text: str, piece: str) -> None:
    assert piece in to_html(text, LINKS)


HOSTILE = [
    "<script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='jav&#x09;ascript:alert(1)'>x</a>",
    "<a href=' javascript:alert(1)'>x</a>",
    "<a href='\x01javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](<java\nscript:alert(1)>)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "<form action=/settings/delete method=post><button>x</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<style>body{display:none}</style>",
    "<p style='position:fixed'>x</p>",
    "<div class='problem'>x</div>",
    "<base href='https://evil.example'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=https://evil.example>",
    "<object data=x></object><embed src=x>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<textarea><img src=x onerror=alert(1)></textarea>",
    "<title><img src=x onerror=alert(1)></title>",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "```html\n<script>alert(1)</script>\n```",
    "# <img src=x onerror=alert(1)>",
    "|<script>alert(1)</script>|\n|-|\n|x|",
    "<img src='https://tracker.example/p.png'>",
    "<picture><source srcset='https://tracker.example/p.png'><img src=x></picture>",
    "<video poster=https://tracker.example/p.png src=x></video>",
    "![x](https://tracker.example/p.png)",
    "<p title='<img src=x onerror=alert(1)>' lang=en>x</p>",
]


class _Strict(HTMLParser):
    """Collects what a browser would find in the HTML that may not be there."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.faults.append(tag)
        for name, value in attrs:
            own = {("a", "rel"), ("span", "class"), ("pre", "tabindex"), ("table", "tabindex")}
            allowed = name in ATTRIBUTES.get(tag, ()) or (tag, name) in own
            if not allowed:
                self.faults.append(f"{tag} {name}")
            if name == "src" and not str(value).startswith(RAW):
                self.faults.append(f"{tag} {value}")
            if name == "href" and not re.match(r"(https?:|mailto:|/apps/a/b/dev|#user-|//)", str(value)):
                self.faults.append(f"{tag} {value}")
            if name == "id" and not str(value).startswith("user-"):
                self.faults.append(f"{tag} {value}")


def faults(text: str) -> list[str]:
    parser = _Strict()
    parser.feed(to_html(text, LINKS))
    parser.close()
    return parser.faults


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_can_do_nothing(text: str) -> None:
    assert faults(text) == []
    assert faults(f"> - {text}\n\n{text}") == []


MARKS = [
    "<",
    ">",
    '"',
    "'",
    "`",
    "```\n",
    "\n",
    " ",
    "[",
    "](",
    ")",
    "!",
    "#",
    "&#",
    "x",
    "<a ",
    "href=",
    "\x00",
]
PIECES = st.sampled_from([*HOSTILE, *MARKS])


def test_an_abbreviation_keeps_its_words() -> None:
    assert to_html('<abbr title="in full">i.f.</abbr>', LINKS) == '<p><abbr title="in full">i.f.</abbr></p>\n'


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_mixture_of_hostile_pieces_does_anything(text: str) -> None:
    assert faults(text) == []


def test_no_image_is_shown_where_the_owner_wants_none() -> None:
    text = to_html('![one](p.png) <img src="p.png" alt="two">', Links("", PAGE, "", ""))
    assert "src" not in text
    assert "image: one" in text
    assert "image: two" in text
