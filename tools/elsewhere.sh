#!/bin/sh
# elsewhere.sh: make a folder in which the source can be built.
#
#   SOURCE=FOLDER sh tools/elsewhere.sh FOLDER
#
# SPDX-License-Identifier: Apache-2.0
#
# The folder gets a link to every room of the source. Nothing that stands there
# already is replaced.
folder=$1

stop() {
    echo "make: $*" >&2
    exit 1
}

mkdir -p "$folder" 2>/dev/null || stop "cannot make the folder $folder"
cd "$folder" || stop "cannot enter the folder $folder"
[ "$(pwd -P)" != "$SOURCE" ] || exit 0
for room in Makefile src include ref_data tests tools README.md LICENSE; do
    [ "$(readlink "$room")" = "$SOURCE/$room" ] && continue
    if [ -e "$room" ] && [ ! -L "$room" ]; then
        stop "$(pwd)/$room is not of this source:" \
            "choose another folder with B=FOLDER"
    fi
    ln -sfn "$SOURCE/$room" "$room" 2>/dev/null ||
        stop "cannot write in $(pwd): choose another folder with B=FOLDER"
done
