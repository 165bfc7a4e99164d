#!/usr/bin/env bash
# Installs the release that checksums.txt beside this script names for the runner's platform: downloads its archive, checks its
# SHA-256, and puts the program on the path of the following steps.
set -euo pipefail

fail() { printf '::error title=quorate::%s\n' "$*"; exit 1; }

case "$RUNNER_OS-$RUNNER_ARCH" in
    Linux-X64) target=x86_64-unknown-linux-gnu ;;
    Linux-ARM64) target=aarch64-unknown-linux-gnu ;;
    macOS-X64) target=x86_64-apple-darwin ;;
    macOS-ARM64) target=aarch64-apple-darwin ;;
    *) fail "there is no release for $RUNNER_OS-$RUNNER_ARCH" ;;
esac

# Lines of a checksum and an address.
sum="" url=""
while read -r its_sum its_url; do
    case "$its_url" in *-"$target".tar.gz) sum=$its_sum url=$its_url ;; esac
done <"${BASH_SOURCE[0]%/*}/checksums.txt"
[ -n "$url" ] || fail "there is no release for $target"

folder=$(mktemp -d "$RUNNER_TEMP/quorate-XXXXXX")
archive=$folder/quorate.tar.gz
curl --silent --show-error --fail --location --retry 3 --max-time 300 --output "$archive" "$url" || fail "cannot download $url"
if command -v sha256sum >/dev/null; then found=$(sha256sum "$archive"); else found=$(shasum -a 256 "$archive"); fi
[ "${found%% *}" = "$sum" ] || fail "$url is not the archive that this action was released with"
tar -xzf "$archive" -C "$folder" --strip-components 1
rm "$archive"
"$folder/quorate" --version
printf '%s\n' "$folder" >>"$GITHUB_PATH"
