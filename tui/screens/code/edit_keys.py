"""The actions that are available while a text is edited. Letters are text there, so the actions have other
keys."""

from __future__ import annotations

from tui.actions import Action

EDIT_ACTIONS = (
    Action("leave", ("escape",), "leave", footer=True),
    Action("edit_branch", ("f10",), "take it to a new branch", footer=True),
    Action("edit_seal", ("ctrl+s",), "seal", footer=True),
    Action("edit_find", ("f2",), "find (ctrl+f)", footer=True),
    Action("edit_next", ("f3",), "next match"),
    Action("edit_previous", ("f4",), "match before"),
    Action("edit_undo", ("f5",), "undo yours (ctrl+z)", footer=True),
    Action("edit_redo", ("f6",), "redo (ctrl+y)"),
    Action("edit_all", ("f7",), "select all"),
    Action("edit_copy", ("f8",), "copy what is selected (ctrl+c)", footer=True),
    Action("edit_line", ("f9",), "go to line (ctrl+g)"),
    Action("edit_help", ("f1",), "keys here", footer=True),
)
