#!/bin/sh
# deps.sh: install what tether can use, by package name.
#
# SPDX-License-Identifier: Apache-2.0
#
# Needed: gcc or clang, and make. Used when present: OpenMP (threads; clang's is
# a package of its own), OpenBLAS (the `blas` backend), ffmpeg (mp4, webm, mkv
# and gif output). DRY=1 sh tools/deps.sh prints the commands and does nothing.
set -eu

# What CC, or the first of gcc and clang, needs for OpenMP.
case ${CC:-$(command -v gcc || command -v clang || echo gcc)} in
*clang*) deb="clang libomp-dev" rpm="clang libomp-devel" arch="clang openmp" ;;
*)       deb='' rpm=libgomp arch='' ;;
esac

run() {
    echo "+ $*"
    [ -n "${DRY:-}" ] || sh -c "$*"
}

# Root, or sudo when there is one; COMMAND is a line for a shell.
as_root() {   # command
    if [ "$(id -u)" -eq 0 ]; then
        run "$1"
    elif command -v sudo >/dev/null 2>&1; then
        run "sudo sh -c '$1'"
    else
        echo "deps: become root and run: $1" >&2
        exit 1
    fi
}

if command -v apt-get >/dev/null 2>&1; then          # Debian, Ubuntu
    as_root "apt-get update && apt-get install -y --no-install-recommends \
gcc libc6-dev make libopenblas0 ffmpeg${deb:+ $deb}"
elif command -v dnf >/dev/null 2>&1; then            # Fedora
    # Fedora's own ffmpeg-free has no H.264 encoder for mp4; RPM Fusion's
    # ffmpeg does. .webm, .gif, .y4m and PNG work with either.
    as_root "dnf install -y gcc make openblas $rpm && \
{ dnf install -y ffmpeg-free || echo no ffmpeg package found >&2; }"
elif command -v pacman >/dev/null 2>&1; then         # Arch
    as_root "pacman -S --needed --noconfirm \
gcc make openblas ffmpeg${arch:+ $arch}"
elif command -v brew >/dev/null 2>&1; then           # macOS
    run brew install libomp openblas ffmpeg
else
    echo "deps: no known package manager (apt-get, dnf, pacman, brew)." >&2
    echo "Install gcc or clang and make; optional: OpenBLAS (shared library)," >&2
    echo "OpenMP for the compiler, ffmpeg." >&2
    exit 1
fi
