#!/bin/sh
# install.sh: put what was built under DESTDIR/PREFIX, or remove it again.
#
#   BUILD=... PREFIX=... sh tools/install.sh install|uninstall|program
#
# SPDX-License-Identifier: Apache-2.0
#
# Called by `make install` and `make uninstall`, which set the variables. What
# was put is listed in share/tether/installed, for every install into this root;
# uninstall removes what stands there and nothing else. The program looks for
# share/tether beside its own bin, and the pkg-config file for include and lib
# beside itself, so the tree may be moved as a whole. `program` puts the program
# and its data alone.
set -eu

umask 022
what=$1
root=$DESTDIR$PREFIX
work=$BUILD/public

list=share/tether/installed
known=$work/installed.$$

note() {   # place
    grep -qxF "$1" "$known" || echo "$1" >> "$known"
}

put() {   # mode source place: a place relative to PREFIX
    mkdir -p "$root/$(dirname "$3")"
    # a program that runs, or a library in use, keeps its old file
    rm -f "$root/$3"
    cp -L "$2" "$root/$3"
    chmod "$1" "$root/$3"
    note "$3"
}

put_link() {   # target place
    ln -sfn "$1" "$root/$2"
    note "$2"
}

# pkg-config quotes what is special in the folder it finds the file in.
pkgconfig_file() {
    cat <<END
prefix=\${pcfiledir}/../..
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: tether
Description: autoregressive video diffusion with KV-cache policies, bit for bit
Version: $VERSION
Cflags: -I\${includedir}
Libs: -L\${libdir} -ltether
Libs.private: $OPENMP -pthread -ldl -lm
END
}

licence_of_stb() {
    sed -n '/^This software is available under 2 licenses/,/^\*\//p' \
        src/third_party/stb_image.h | sed '$d'
}

programs() {
    put 755 "$BUILD/tether${EXE:-}" "bin/tether${EXE:-}"
    [ "$F64" = no ] || put 755 "$BUILD-double/tether" bin/tether-f64
}

data() {
    (cd ref_data/demo && find . -type f) | sed 's,^\./,,' | sort > "$work/demo"
    while read -r file; do
        put 644 "ref_data/demo/$file" "share/tether/demo/$file"
    done < "$work/demo"
    put 644 ref_data/bits_operators_v1.txt share/tether/bits_operators_v1.txt
    put 644 src/validate/names.md share/tether/names.md
    put 644 src/validate/report/validate.schema.json share/tether/validate.schema.json
}

headers() {
    for header in include/tether/*.h; do
        put 644 "$header" "$header"
    done
}

library() {
    headers
    put 644 "$work/libtether.a" lib/libtether.a
    # shellcheck disable=SC2086
    set -- $LIBRARY     # its name alone, with the first number, with all
    put 755 "$BUILD/$3" "lib/$3"
    put_link "$3" "lib/$2"
    put_link "$2" "lib/$1"
    pkgconfig_file > "$work/tether.pc"
    put 644 "$work/tether.pc" lib/pkgconfig/tether.pc
}

python() {
    for file in tools/python/*.py tools/run_case_torch.py; do
        put 644 "$file" "share/tether/python/${file##*/}"
    done
}

manual() {
    rm -rf "$work/manual"
    # shellcheck disable=SC2086
    sh tools/manual.sh "$work/manual" $RUN "$BUILD/tether"
    for page in "$work/manual"/tether.1 "$work/manual"/tether-*.1; do
        put 644 "$page" "share/man/man1/${page##*/}"
    done
    put 644 "$work/manual/tether.bash" share/bash-completion/completions/tether
    put_link tether share/bash-completion/completions/tether-f64
    put 644 "$work/manual/_tether" share/zsh/site-functions/_tether
}

licences() {
    licence_of_stb > "$work/LICENSE.stb"
    put 644 LICENSE share/doc/tether/LICENSE
    put 644 "$work/LICENSE.stb" share/doc/tether/LICENSE.stb
    put 644 README.md share/doc/tether/README.md
    [ "$what" = install ] || put 644 tools/lib/NOTICE share/doc/tether/NOTICE
}

# The listed files, then folders of ours, and those only when nothing is left.
uninstall() {
    if [ ! -f "$root/$list" ]; then
        echo "tether is not installed in $root: there is no $root/$list" >&2
        exit 1
    fi
    cp "$root/$list" "$known"
    while read -r place; do
        case /$place in */../* | *//*) continue ;; esac
        rm -f "$root/$place"
    done < "$known"
    rm -f "$root/$list"
    for folder in share/tether/demo/google/umt5-xxl share/tether/demo/google \
            share/tether/demo share/tether/python share/tether \
            share/doc/tether include/tether; do
        [ ! -d "$root/$folder" ] || rmdir "$root/$folder" 2>/dev/null || :
    done
    echo "removed from $root"
}

mkdir -p "$work"
trap 'rm -f "$known"' EXIT
if [ "$what" = uninstall ]; then
    uninstall
    exit 0
fi
: > "$known"
[ ! -f "$root/$list" ] || cat "$root/$list" > "$known"
if [ "$what" = program ]; then
    programs
    data
    licences
    # a plug-in of Windows is linked with the functions of the program
    [ -z "$EXE" ] || { headers; put 644 "$BUILD/libtether.dll.a" lib/libtether.dll.a; }
    exit 0
fi
programs
data
library
python
manual
licences
cp "$known" "$root/$list"
chmod 644 "$root/$list"
echo "installed in $root"
