#!/bin/sh
# deps.sh: install what tether can use, by package name.
#
# SPDX-License-Identifier: Apache-2.0
#
# Needed: a C compiler and make. Used when present: OpenMP (threads), OpenBLAS
# (the `blas` backend), ffmpeg (mp4, webm, mkv and gif output).
# DRY=1 sh tools/deps.sh prints the commands and does nothing.
set -eu

run() {
    echo "+ $*"
    [ -n "${DRY:-}" ] || "$@"
}

# Root, or sudo when there is one.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        run "$@"
    elif command -v sudo >/dev/null 2>&1; then
        run sudo "$@"
    else
        echo "deps: become root and run: $*" >&2
        exit 1
    fi
}

if command -v apt-get >/dev/null 2>&1; then          # Debian, Ubuntu
    as_root apt-get update
    as_root apt-get install -y --no-install-recommends \
        gcc libc6-dev make libopenblas0 ffmpeg
elif command -v dnf >/dev/null 2>&1; then            # Fedora
    # Fedora's own ffmpeg-free has no H.264 encoder for mp4; RPM Fusion's
    # ffmpeg does. .webm, .gif, .y4m and PNG work with either.
    as_root dnf install -y gcc make openblas libgomp
    as_root dnf install -y ffmpeg-free ||
        echo "deps: no ffmpeg package found; .y4m and PNG output work" >&2
elif command -v pacman >/dev/null 2>&1; then         # Arch
    as_root pacman -S --needed --noconfirm gcc make openblas ffmpeg
elif command -v brew >/dev/null 2>&1; then           # macOS
    run brew install libomp openblas ffmpeg
else
    echo "deps: no known package manager (apt-get, dnf, pacman, brew)." >&2
    echo "Install a C compiler and make; optional: OpenBLAS (shared library)," >&2
    echo "OpenMP for the compiler, ffmpeg." >&2
    exit 1
fi
