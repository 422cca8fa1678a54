"""The app in a browser of this machine: `svc tui --web`.

    serve(Serving(words, theme), listen(0), ready, note)

A server on the loopback interface serves one page, on which textual-serve (a package) draws a terminal. The
server runs one app for each open page (`server`). It only answers browsers that have sent its one-time token
(`guard`)."""

DRIVER = "tui.web.driver:PageDriver"
DRIVER_VARIABLE = "TEXTUAL_DRIVER"  # names the class through which Textual draws
