#!/bin/sh
# test_install.sh: what `make install` brings works where nothing else is.
#
#   sh tests/install/test_install.sh BUILD
#
# SPDX-License-Identifier: Apache-2.0
#
# `make staged` has installed into BUILD/staged. The tree is moved away, into a
# folder with blanks, and used from there; where namespaces can be made, the
# source and the build are covered by an empty folder meanwhile.
build=$1
clone=$(pwd -P)
source=$(cd -P include/.. && pwd -P)
this=install
. tests/script.sh
have() { command -v "$1" > /dev/null 2>&1; }

tmp=$(mktemp -d "${TMPDIR:-/tmp}/tether-install-XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
mv "$build/staged/root" "$tmp/moved away" || exit 1
CC=$(cat "$build/staged/compiler")
version=$(cat "$build/staged/version")
root="$tmp/moved away/usr/local"
mkdir "$tmp/some where"
cd "$tmp/some where" || exit 1
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export OMP_NUM_THREADS

# hidden COMMAND...: it sees neither the source nor the build
cover=
# shellcheck disable=SC2016
covered='a=$0 b=$1; shift; mount -t tmpfs none "$a" &&
    { [ ! -d "$b" ] || mount -t tmpfs none "$b"; } && exec "$@"'
case $tmp in
"$clone"/* | "$source"/*) ;;
*) unshare -rm sh -c "$covered" "$source" "$clone" true 2>/dev/null &&
    cover=yes ;;
esac
[ -n "$cover" ] || skip "the source stays visible: no namespaces here"
hidden() {
    if [ -n "$cover" ]; then
        unshare -rm sh -c "$covered" "$source" "$clone" "$@"
    else
        "$@"
    fi
}
tether="$root/bin/tether"

# ---- the program ---------------------------------------------------------
check "a link in another folder" ln -s "$tether" link
check "the demo" hidden ./link demo -q --latents 6
check "its picture" test -s tether-demo/sheet.png
check "tokenize with the model" hidden "$tether" tokenize \
    -m "$root/share/tether/demo" -p "a red circle"
double=
case $("$tether" --version) in *"compute type f64"*) double=yes ;; esac
if [ -z "$double" ]; then   # no stored bits and no plug-ins of double precision
    check "validate --manifest" hidden "$tether" validate --manifest
    check "names of tensors" grep -q 'chunk.N/step.N/x0' "$root"/share/tether/names.*
    check "the schema of reports" grep -q '"tether-validate/2"' \
        "$root/share/tether/validate.schema.json"
    check "a kit" hidden "$tether" validate export --kit kit
    check "its checker" test -s kit/check.py
    cat > plugin.c <<'END'
#include <tether/backend.h>
#include <tether/mathfn.h>
static void silu(tt_ctx *ctx, const tt_silu_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < a->n; i++)
        a->x[i] = a->x[i] / (1 + tt_expf(-a->x[i]));
}
static const tt_ops table = {.abi = TT_ABI, .name = "mine", .silu = silu};
const tt_ops *tether_backend(int version, const char **arith);
const tt_ops *tether_backend(int version, const char **arith)
{
    *arith = "f32";
    return version == TT_OPS_VERSION ? &table : 0;
}
END
fi
if [ -x "$root/bin/tether-f64" ]; then
    check "tether-f64" hidden "$root/bin/tether-f64" --version
else
    skip "tether-f64: make check-install builds it"
fi

# ---- python ---------------------------------------------------------------
python=${PYTHON:-python3}
why="no $python with numpy"
"$python" -c 'import numpy' 2> /dev/null && why=
case $CC in *-fsanitize=*) why='a sanitizer must be loaded before python' ;; esac
if [ -z "$why" ]; then
    cat > mine.py <<'END'
import sys
import numpy, tether
x = numpy.linspace(-4, 4, 9)
assert tether.judge("silu", x / (1 + numpy.exp(-x)), x), "right"
assert not tether.judge("silu", 1 / (1 + numpy.exp(-x)), x), "wrong"
for path in tether.library_path(), tether.program_path():
    assert path.startswith(sys.argv[1]), path
assert tether.version().split()[0] in tether.tether("--version").stdout
END
    check "tether.py" hidden env PYTHONPATH="$root/share/tether/python" \
        PYTHONDONTWRITEBYTECODE=1 "$python" mine.py "$root"
else
    skip "tether.py: $why"
fi

# ---- manual and completion ------------------------------------------------
man=$root/share/man/man1
for command in $("$tether" --help=words \
        | awk -F '\t' '$1 == "command" { print $2 }'); do
    check "a page about $command" test -s "$man/tether-$command.1"
done
check "a page about the program" test -s "$man/tether.1"
check "a page about a plug-in" grep -q 'rounds' "$man/tether-validate-backend.1"
if have mandoc; then
    for page in "$man"/*; do
        check "${page##*/}" mandoc -T lint -W error "$page"
    done
else
    skip "manual pages are not judged: no mandoc"
fi

bash_file=$root/share/bash-completion/completions/tether
complete() {   # word...: what the last one may become
    # shellcheck disable=SC2016
    LC_ALL=C bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tether
        echo "${COMPREPLY[@]}"' "$bash_file" "$@"
}
completes() {   # wanted, word...
    want=$1
    shift
    got=$(complete "$@" 2>&1)
    if [ "$got" = "$want" ]; then pass; else fail "completion of $*: $got"; fi
}
if have bash; then
    completes generate tether gen
    completes "--memrope-method" tether generate --memrope
    completes "tether" tether generate --cache te
    completes "--no-warp" tether generate --no-warp
    completes golden tether validate --backend gol
    completes "--manifest" tether validate --man
    completes "paper" tether generate --preset pa
    completes "export" tether validate ex
    completes "error" tether bench e
    completes "sum max" tether generate --fusion ""
    completes "max" tether generate --fusion = m
    completes "sum max" tether generate --fusion =
    completes "bf16" tether convert --dtype b
    completes "dit" tether convert --model d
    completes "" tether decode --model d
    completes "tf32" tether diff --arith t
    completes "tf32" tether validate --arith t
    completes "f32" tether generate --class f3
    completes "layer_norm" tether validate --op la
    completes "fifo,tether" tether compare --caches fifo,te
    completes "full,fifo,memrope" tether compare --caches full,fifo,me
else
    skip "completion: no bash"
fi
# What zsh itself offers after a line, in a terminal of its own: compadd is the
# word through which all of it goes.
cat > offers.zsh <<'END'
zmodload zsh/zpty && zpty z zsh -f -i || exit 3
zpty -w z 'PS1= PS2= RPS1=; bindkey "^I" complete-word
fpath=('${(q)1}' $fpath); autoload -Uz compinit; compinit -u -D
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)* ]]; then builtin compadd "$@"; return; fi
    typeset -a hits; builtin compadd -A hits "$@"
    builtin compadd "$@"; local r=$?
    (( $#hits )) && print -rl -- "<"$^hits">"
    return r
}
at-end() { print -r -- "<<end>>" }
comppostfuncs=(at-end)
print -r -- "<<"ready">>"
'
zpty -r -m z line '*<<ready>>*'
zpty -w -n z "$2"$'\t'
line=
zpty -r -m z line '*<<end>>*'
zpty -d z
print -r -- $line
END
offers() {   # wanted, line
    got=$(timeout 60 zsh -f offers.zsh "$root/share/zsh/site-functions" "$2" |
        grep -o '<[a-z0-9_-]*>' | grep -v '<end>' | tr -d '<>' | tr '\n' ' ')
    if [ "${got% }" = "$1" ]; then pass; else fail "zsh: $2: $got"; fi
}
if have zsh; then
    check "zsh completion" zsh -n "$root/share/zsh/site-functions/_tether"
    if zsh -fc 'zmodload zsh/zpty && zpty z true' 2>/dev/null; then
        offers convert "tether conv"
        offers "sum max" "tether generate --fusion "
        offers bf16 "tether convert --dtype b"
        offers tether "tether compare --caches fifo,te"
        offers "tf32" "tether diff --arith t"
        offers --memrope-method "tether generate --memrope"
    else
        skip "completion of zsh: no pseudo terminals"
    fi
else
    skip "completion: no zsh"
fi

# ---- the library ----------------------------------------------------------
# Words of the compiler for a program, from the .pc file in folder lib of $1.
# pkg-config itself dies where the stack is very small.
package=$(have pkg-config && echo yes)
if [ -n "$package" ]; then
    PKG_CONFIG_LIBDIR="$root/lib/pkgconfig" pkg-config --libs tether \
        > log 2>&1
    if [ $? -gt 128 ]; then
        package=
        skip "pkg-config does not run under the limits here"
    fi
fi
flags() {   # root, pkg-config's options
    if [ -n "$package" ]; then
        PKG_CONFIG_LIBDIR="$1/lib/pkgconfig" pkg-config "$2" --cflags --libs \
            tether
        return
    fi
    printf '%s' "-I'$1/include' -L'$1/lib' -ltether "
    [ "$2" = --shared ] ||
        sed -n 's/^Libs.private: //p' "$1/lib/pkgconfig/tether.pc"
}
compile() {   # root, pkg-config's options, arguments...
    words=$(flags "$1" "$2")
    shift 2
    eval "$CC -std=c11 -Wall -Wextra -Werror \"\$@\" $words"
}
real=
[ -z "$double" ] || real=-DTT_REAL_DOUBLE
other=-DTT_REAL_DOUBLE
[ -z "$double" ] || other=-UTT_REAL_DOUBLE

awk '/^ \*     #include <stdio/ { on = 1 }
    on { s = substr($0, 8); sub(/ *\*\/$/, "", s); print s }
    /\*\/$/ { exit }' "$root/include/tether/tether.h" > video.c
check "the example in tether.h" grep -q tt_rollout_next video.c
mkdir -p "$tmp/static only/lib"
cp -R "$root/include" "$tmp/static only/"
cp -R "$root/lib/libtether.a" "$root/lib/pkgconfig" "$tmp/static only/lib/"
# shellcheck disable=SC2086
{
check "the example, shared" compile "$root" --shared $real -o shared video.c
check "the example, static" compile "$tmp/static only" --static $real \
    -o static video.c
}
for program in shared static; do
    rm -f video.y4m
    LD_LIBRARY_PATH="$root/lib" hidden "./$program" "$root/share/tether/demo" \
        > log 2>&1
    rc=$?
    if [ "$rc" -eq 0 ] && [ -s video.y4m ]; then
        pass
    else
        fail "the example, $program: status $rc: $(tail -n 3 log)"
    fi
    cmp -s video.y4m "${first:=video.y4m}" || fail "the example, $program: bits"
    mv -f video.y4m first.y4m 2>/dev/null
    first=first.y4m
    LD_LIBRARY_PATH="$root/lib" "./$program" /missing > log 2>&1
    rc=$?
    if [ "$rc" -eq 1 ] && grep -q '/missing.*No such file' log; then
        pass
    else
        fail "without a model, $program: status $rc: $(tail -n 3 log)"
    fi
done

# A program of the other compute type does not link, and the message says why.
name=tt_ctx_init_f64
[ -z "$double" ] || name=tt_ctx_init_f32
for way in "$root:--shared" "$tmp/static only:--static"; do
    if compile "${way%:*}" "${way##*:}" $other -o mixed video.c > log 2>&1; then
        fail "another compute type links, ${way##*:}"
    elif grep -q "$name" log; then
        pass
    else
        fail "another compute type: $(tail -n 3 log)"
    fi
done

# Every header alone, in C and in C++.
# shellcheck disable=SC2086
for header in "$root"/include/tether/*.h; do
    line="#include <tether/${header##*/}>"
    echo "$line" > alone.c
    check "${header##*/} alone" $CC -std=c11 -Wall -Wextra -Werror $real \
        -I"$root/include" -fsyntax-only alone.c
    if have g++; then
        check "${header##*/} in C++" g++ -std=c++17 -Wall -Wextra -Wpedantic \
            -Werror -I"$root/include" -fsyntax-only -x c++ alone.c
    fi
done
if have g++; then
    cat > use.cc <<'END'
#include <tether/tether.h>
#include <tether/validate.h>
int main() { tt_ctx c; return tt_ctx_init(&c) || !tt_outcome_name(TT_PASS); }
END
    # a library with a sanitizer wants the same one in the program
    cxx=g++
    case $CC in *-fsanitize*)
        case ${CC%% *} in *clang*) cxx=clang++ ;; esac
        cxx="$cxx ${CC#* }" ;;
    esac
    # shellcheck disable=SC2086
    check "a program in C++" eval "$cxx -std=c++17 $real use.cc -o use \
        $(flags "$root" --shared)"
    check "a program in C++ runs" env LD_LIBRARY_PATH="$root/lib" ./use
else
    skip "headers in C++: no g++"
fi

# No names but ours and, where lines are counted (tests/coverage.sh), gcov's;
# and all that the headers declare.
gcov='^$'
case $CC in *--coverage*) gcov='^__gcov_\|^mangle_path$' ;; esac
foreign() {
    sed "s/.* //; /^tt_/d; /:\$/d; /^\$/d; /^_init\$/d; /^_fini\$/d; /$gcov/d"
}
for library in "$root/lib/libtether.so" "$root/lib/libtether.a"; do
    dynamic=
    case $library in *.so) dynamic=-D ;; esac
    # shellcheck disable=SC2086
    ${NM:-nm} $dynamic -g --defined-only "$library" > names 2>/dev/null
    if [ "$(grep -c ' tt_' names)" -lt 100 ]; then
        fail "${library##*/}: its names cannot be read"
    elif [ -n "$(foreign < names)" ]; then
        fail "${library##*/} exports $(foreign < names | head -n 5)"
    else
        pass
    fi
done
soname=libtether.so.${version%%.*}
check "the soname" sh -c "${OBJDUMP:-objdump} -p '$root/lib/libtether.so' \
    | grep -q 'SONAME *$soname\$'"

if [ -z "$double" ]; then
    # shellcheck disable=SC2086
    check "a plug-in" $CC -std=c11 -Wall -Wextra -Werror -shared -fPIC \
        -I"$root/include" -o mine.so plugin.c
    check "validate --backend" hidden "$tether" validate --backend ./mine.so \
        --op silu --no-calls --no-rollout --json report.json
    check "validate compare" hidden "$tether" validate compare report.json \
        report.json
    check "validate export" hidden "$tether" validate export cases --each 1 -q
    check "a page about comparing" test -s "$man/tether-validate-compare.1"
fi

# ---- and away again --------------------------------------------------------
check "licences" test -s "$root/share/doc/tether/LICENSE.stb"
cd "$clone" || exit 1
check "uninstall" env BUILD="$build" VERSION="$version" LIBRARY= \
    F64=yes RUN= OPENMP= DESTDIR="$tmp/moved away" PREFIX=/usr/local \
    sh tools/install.sh uninstall
left=$(find "$tmp/moved away" ! -type d | head -n 5)
if [ -z "$left" ]; then pass; else fail "left over: $left"; fi
left=$(find "$tmp/moved away" -name '*tether*' | head -n 5)
if [ -z "$left" ]; then pass; else fail "folders left over: $left"; fi

finish
