#!/bin/sh
# Installs svc @VERSION@ from @ORIGIN@ into ~/.local/bin, or into SVC_INSTALL_DIR.
# Nothing is installed unless the SHA-256 of what arrived is the one below.
set -eu

fail() {
    echo "svc: $1" >&2
    exit 1
}

case "$(uname -s)" in
Linux) os=linux ;;
Darwin) os=macos ;;
*) fail "there is no build for $(uname -s)" ;;
esac
case "$(uname -m)" in
x86_64 | amd64) arch=x86_64 ;;
aarch64 | arm64) arch=aarch64 ;;
*) fail "there is no build for $(uname -m)" ;;
esac

name='' wanted=''
while read -r for_os for_arch file sha256; do
    if [ "$for_os" = "$os" ] && { [ "$for_arch" = "$arch" ] || [ "$for_arch" = universal ]; }; then
        name=$file wanted=$sha256
    fi
done <<'BUILDS'
@BUILDS@
BUILDS
[ -n "$name" ] || fail "@ORIGIN@ has no build for $os on $arch"

folder=${SVC_INSTALL_DIR:-$HOME/.local/bin}
mkdir -p "$folder"
part=$(mktemp "$folder/.svc-XXXXXX")
trap 'rm -f "$part"' EXIT

if command -v curl >/dev/null; then
    curl -fsSL "@ORIGIN@/cli/download/$name" -o "$part" || fail "the build did not arrive"
elif command -v wget >/dev/null; then
    wget -qO "$part" "@ORIGIN@/cli/download/$name" || fail "the build did not arrive"
else
    fail "curl or wget is needed"
fi

if command -v sha256sum >/dev/null; then
    got=$(sha256sum "$part")
elif command -v shasum >/dev/null; then
    got=$(shasum -a 256 "$part")
else
    fail "sha256sum or shasum is needed"
fi
[ "${got%% *}" = "$wanted" ] || fail "what arrived is not the build that was announced; nothing was installed"

chmod 755 "$part"
line=$(head -n 1 "$part")
case "$line" in
'#!/usr/bin/env '*) needs=${line#'#!/usr/bin/env '} ;;
*) needs='' ;;
esac
if [ -n "$needs" ] && ! command -v "$needs" >/dev/null; then
    fail "svc @VERSION@ runs with $needs, which is not on your PATH; install it, then run this again; nothing was installed"
fi
"$part" --version >/dev/null </dev/null || fail "svc @VERSION@ does not start here; nothing was installed"
mv "$part" "$folder/svc"
trap - EXIT
echo "Installed svc @VERSION@ as $folder/svc"
case ":$PATH:" in
*":$folder:"*) ;;
*) echo "Put $folder on your PATH" ;;
esac
