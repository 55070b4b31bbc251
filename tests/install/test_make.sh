#!/bin/sh
# test_make.sh: make elsewhere and dry, the revision of a build, and which files
# uninstall removes.
#
#   sh tests/install/test_make.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
build=$1
clone=$(pwd -P)
source=$(cd -P include/.. && pwd -P)
this=install/make
. tests/script.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tether-make-XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MAKELEVEL MFLAGS GIT_DIR GIT_WORK_TREE
case $build in /*) ;; *) build=$clone/$build ;; esac

# ---- make -n elsewhere -----------------------------------------------------
# It shows every command and leaves the folder as it is.
mkdir "$tmp/emp ty" "$tmp/tmp"
TMPDIR=$tmp/tmp
export TMPDIR
dry() {   # what, folder to look into, command...
    what=$1
    folder=$2
    shift 2
    if ! "$@" > "$tmp/log" 2>&1; then
        fail "$what: $(tail -n 5 "$tmp/log")"
    elif ! grep -q 'src/core/version.c' "$tmp/log"; then
        fail "$what shows no commands: $(tail -n 5 "$tmp/log")"
    elif [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then
        fail "$what leaves $(ls -A "$folder")"
    elif [ -n "$(ls -A "$tmp/tmp")" ]; then
        fail "$what leaves files in TMPDIR"
    else
        pass
    fi
}
cd "$source" || exit 1
dry "make -n B=FOLDER" "$tmp/emp ty" make -n "B=$tmp/emp ty"
dry "make -n B=a new folder" "$tmp/new" make -n "B=$tmp/new"
check "no folder is made" test ! -e "$tmp/new"
cd "$tmp/emp ty" || exit 1
dry "make -n -f" "$tmp/emp ty" make -n -f "$source/Makefile"
check "make -f help" make -f "$source/Makefile" help
check "make -f makes links" test -L Makefile

# ---- the revision ----------------------------------------------------------
revision() {   # of a build in "$tmp/repo/tar ball"
    (cd "$tmp/repo/tar ball" && make -n all 2>/dev/null) |
        sed -n "s/.*-DTT_GIT_REV='\"\([^\"]*\)\"'.*/\1/p" | head -n 1
}
commit() {
    git add . && git -c user.name=a -c user.email=a@example.org commit -qm one
}
mkdir -p "$tmp/repo/tar ball"
for room in src include ref_data tests tools; do
    ln -s "$source/$room" "$tmp/repo/tar ball/$room"
done
cp "$source/Makefile" "$tmp/repo/tar ball/"
if command -v git > /dev/null 2>&1; then
    is "the revision of a tarball" "$(revision)" unknown
    check "a repository" sh -c "cd '$tmp/repo' && git init -q"
    (cd "$tmp/repo" && commit)
    is "the revision of a tarball in a repository" "$(revision)" unknown
    check "its own" sh -c "cd '$tmp/repo/tar ball' && git init -q"
    (cd "$tmp/repo/tar ball" && commit)
    want=$(cd "$tmp/repo/tar ball" && git describe --always)
    got=$(revision)
    is "the revision" "${got%-dirty}" "$want"
    object=$(cd "$tmp/repo/tar ball" && make -n all 2>/dev/null |
        sed -n 's/.* -o \([^ ]*core\/version.o\) .*/\1/p' | head -n 1)
    up() { (cd "$tmp/repo/tar ball" && make "$@" "$object"); }
    check "an object that names it" up -s
    check "nothing to do" up -q
    old() { up -q; [ $? = 1 ]; }
    hidden() { (GIT_DIR=/nonexistent && export GIT_DIR && up "$@"); }
    names() {
        grep -q "$(cd "$tmp/repo/tar ball" && git describe --always)" \
            "$tmp/repo/tar ball/$object"
    }
    check "nor where git does not answer" hidden -q
    check "made where git does not answer" hidden -s -W src/core/version.c
    check "it stays what it was" names
    (cd "$tmp/repo/tar ball" && git -c user.name=a -c user.email=a@example.org \
        commit -q --allow-empty -m two)
    check "after a commit it is old" old
    check "the object is made again" up -s
    check "and names the commit" names
else
    skip "the revision: no git"
fi

# ---- the stored bits -------------------------------------------------------
# Those of a float build: test-guard compares no others. Every other program is
# left out here.
cd "$clone" || exit 1
mkdir "$tmp/fake"
for name in tests/*/test_*.c; do
    name=${name#tests/}
    echo "${name%%/*}/${name##*/test_} no" | sed 's/\.c / /'
done > "$tmp/none"
echo 'echo "bits: 1 passed, 0 failed"' > "$tmp/fake/check_bits"
guarded() {   # compute type -> how often check_bits runs
    echo "echo compute type $1" > "$tmp/fake/tether"
    chmod +x "$tmp/fake/"*
    ONLY='' RUN='' GUARDED=$tmp/none sh tests/run.sh "$tmp/fake" \
        > "$tmp/log" 2>&1
    grep -c 'check_bits. --guard' "$tmp/fake/guard.out/programs"
}
is "test-guard of a float build" "$(guarded float)" 1
is "test-guard of a double build" "$(guarded double)" 0

# ---- uninstall -------------------------------------------------------------
version=$(sed -n 's/^.define TT_VERSION "\(.*\)"/\1/p' \
    include/tether/version.h)
installer() {   # install or uninstall
    so=libtether.so
    env BUILD="$build" VERSION="$version" \
        LIBRARY="$so $so.${version%%.*} $so.$version" \
        F64=no RUN= OPENMP= DESTDIR="$tmp/ro ot" PREFIX=/usr \
        sh tools/install.sh "$1"
}
man="$tmp/ro ot/usr/share/man/man1"
check "install" installer install
check "a page" test -s "$man/tether-generate.1"
echo theirs > "$man/tether-cable.1"
echo theirs > "$tmp/ro ot/usr/include/tether/theirs.h"
echo theirs > "$tmp/ro ot/usr/lib/libtether.so.99"
check "install again" installer install
echo ../../precious >> "$tmp/ro ot/usr/share/tether/installed"
echo theirs > "$tmp/precious"
check "uninstall" installer uninstall
left=$(cd "$tmp/ro ot" && find . ! -type d | sort | tr '\n' ' ')
want='./usr/include/tether/theirs.h ./usr/lib/libtether.so.99 '
want="$want./usr/share/man/man1/tether-cable.1 "
is "what uninstall leaves" "$left" "$want"
check "uninstall stays in its root" test -s "$tmp/precious"
if installer uninstall > "$tmp/log" 2>&1; then
    fail "uninstall of nothing"
elif grep -q 'is not installed in' "$tmp/log"; then
    pass
else
    fail "uninstall of nothing: $(cat "$tmp/log")"
fi

finish
