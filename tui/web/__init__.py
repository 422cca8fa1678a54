"""The app in a browser of this machine: `svc tui --web`.

    serve(Serving(words, theme), listen(0), ready, note)

A server on loopback hands out one page, the terminal of textual-serve, and runs an app for each page that is
open (`server`). It answers only those who brought its one-time token (`guard`).
"""

DRIVER = "tui.web.driver:PageDriver"
DRIVER_VARIABLE = "TEXTUAL_DRIVER"  # names the class through which Textual draws
