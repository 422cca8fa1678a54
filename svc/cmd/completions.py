"""The command `svc completions SHELL`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from svc.cmd.frame.context import Ctx
from svc.console import answers_text


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"


# Each asks `svc.cmd.frame.complete`, hands candidates to its shell, and without any completes file names.
SCRIPTS = {
    Shell.bash: r"""_svc() {
    local line word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$(printf %q "${line%%$'\t'*}")")
    done < <(SVC_COMPLETE=1 svc "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
    return 0
}
complete -F _svc svc
""",
    Shell.zsh: r"""#compdef svc
_svc() {
    local line
    local -a found
    while IFS= read -r line; do
        local name=${line%%$'\t'*} meaning=${line#*$'\t'}
        found+=("${name//:/\\:}${meaning:+:$meaning}")
    done < <(SVC_COMPLETE=1 svc "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then
        _describe svc found
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _svc ]]; then
    _svc "$@"
else
    compdef _svc svc
fi
""",
    Shell.fish: r"""function __svc_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l found (SVC_COMPLETE=1 svc $words[2..-1] 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command svc --no-files --arguments '(__svc_candidates)'
""",
    Shell.powershell: r"""Register-ArgumentCompleter -Native -CommandName svc -ScriptBlock {
    param($word, $ast, $cursor)
    $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if (-not $word) { $words += '""' }
    $env:SVC_COMPLETE = '1'
    try {
        svc @words 2>$null | ForEach-Object {
            $name, $meaning = $_ -split "`t", 2
            if (-not $meaning) { $meaning = $name }
            [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $meaning)
        }
    } finally {
        Remove-Item Env:SVC_COMPLETE
    }
}
""",
}


@answers_text
def completions(ctx: Ctx, shell: Annotated[Shell, typer.Argument(help="Your shell")]) -> None:
    """Print a completion script for your shell

    Load it from your shell's start file. Completion sends no request to a server. It knows the commands and
    options, the files of the last seal, and the branches and tags that this machine has listed.

    Examples:
    eval "$(svc completions bash)"
    svc completions zsh > ~/.zfunc/_svc
    svc completions fish > ~/.config/fish/completions/svc.fish
    svc completions powershell >> $PROFILE
    """
    ctx.out.text(SCRIPTS[shell])
