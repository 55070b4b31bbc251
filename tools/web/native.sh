#!/bin/sh
# native.sh: digests of the latents that the native program makes of the live page's settings, as
# JSON: {"POLICY": "SHA-256", ...}.
#
#   sh tools/web/native.sh TETHER > native.json
#
# SPDX-License-Identifier: Apache-2.0
program=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/native.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
prompt=$(sed -n "s/^const DEFAULT = {prompt: '\(.*\)', seed.*/\1/p" tools/web/page.js)
comma='{'
for cache in $(sed -n "s/^  '\([a-z-]*\)[ '].*[],]*;*$/\1/p" tools/web/page.js); do
    "$program" generate -q -m ref_data/demo -p "$prompt" --seed 0 --latents 42 --cache "$cache" \
        --no-decode -o "$work/$cache.y4m" --latents-out "$work/$cache" >&2 || exit 1
    sum=$(sha256sum < "$work/$cache") || exit 1
    printf '%s"%s": "%s"' "$comma" "$cache" "${sum%% *}"
    comma=',
'
done
echo '}'
