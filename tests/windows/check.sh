#!/bin/sh
# check.sh: tether.exe under wine has the bits of the native program.
#
#   sh tests/windows/check.sh BUILD WINDOWS_BUILD     by `make check-windows`
#
# SPDX-License-Identifier: Apache-2.0
#
# Digests; what is special about the system: names, locks, Ctrl-C, pipes, libraries, second
# processes; the test programs that run there. Wine's own folder is made and removed.
this=windows
. tests/script.sh
native=$1
build=$2
. tests/windows/wine.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/windows.XXXXXX") || exit 1
WINEPREFIX=$tmp/wine
WINEDEBUG=-all
WINEDLLOVERRIDES="mscoree,mshtml="
export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
# what one wine leaves ends with it, and with nothing of another's
trap 'wineserver -k 2>/dev/null || /usr/lib/wine/wineserver64 -k 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM
here=$PWD
tether() { "$wine" "$here/$build/tether.exe" "$@"; }
says() {   # what, words, command...: it must say them
    what=$1
    words=$2
    shift 2
    "$@" > "$tmp/log" 2>&1
    if grep -q "$words" "$tmp/log"; then pass
    else fail "$what: no '$words' in: $(tail -n 4 "$tmp/log")"; fi
}
same() {   # what, file, file
    if cmp -s "$2" "$3"; then pass; else fail "$1: $2 and $3 differ"; fi
}

# ---- bits ----
"$native/tether" demo -q -m ref_data/demo -o "$tmp/native" --latents 6 > "$tmp/log" 2>&1
check "demo" tether demo -q -m ref_data/demo -o "$tmp/demo" --latents 6
for f in demo.latents.safetensors demo.apng sheet.png; do
    same demo "$tmp/demo/$f" "$tmp/native/$f"
done
bits() {   # environment, arguments
    # shellcheck disable=SC2086
    env "$1" "$wine" "$build/check_bits.exe" --demo "$native/demo-random" $2 > "$tmp/bits" 2>&1
    line=$(tail -n 1 "$tmp/bits" | tr -d '\r')
    echo "$1, $2: $line"
    case $line in
    *" 0 passed"*) fail "$1 $2: nothing was compared" ;;
    *"passed, 0 failed"*) pass ;;
    *) fail "$1 $2: $(grep FAIL "$tmp/bits" | head -n 3)" ;;
    esac
}
bits TT_CPU= "--class f32 --brief"
bits TT_CPU=generic "--class f32 --small"
bits TT_CPU= "--class amx --brief"
says "the manifest" "^PASS" tether validate --manifest

# ---- names ----
mkdir -p "$tmp/über 日本"
long=$tmp
for i in 1 2 3 4 5 6; do long=$long/$i-34567890123456789012345678901234567890123456789012; done
mkdir -p "$long"
run="-m ref_data\\demo -q --latents 9 --seed 3"
"$native/tether" generate -m ref_data/demo -q --latents 9 --seed 3 -p 'a * \ b' \
    --latents-out "$tmp/nine" --no-decode > "$tmp/log" 2>&1 || fail "native: $(cat "$tmp/log")"
# shellcheck disable=SC2086
check "a name in UTF-8, with backslashes" tether generate $run -p 'a * \ b' --no-decode \
    --latents-out "Z:$(echo "$tmp" | tr / '\\')\\über 日本\\ö.safetensors"
same "a name in UTF-8" "$tmp/über 日本/ö.safetensors" "$tmp/nine"
# shellcheck disable=SC2086
check "a long name" tether generate $run -p 'a * \ b' --no-decode --latents-out "$long/nine"
same "a long name" "$long/nine" "$tmp/nine"
check "pictures" tether decode -q -m ref_data/demo --latents "$tmp/nine" -o "$tmp\\p\\%05d.png"
is "pictures" "$(find "$tmp/p" -name '*.png' | wc -l)" 33
check "a file" tether decode -q -m ref_data/demo --latents "$tmp/nine" -o "$tmp/a.y4m"
says "over a file" "overwrite" tether decode -q -m ref_data/demo --latents "$tmp/nine" \
    -o "$tmp/a.y4m"
cp "$tmp/a.y4m" "$tmp/b.y4m"
check "over a file" tether decode -q -m ref_data/demo --latents "$tmp/nine" -o "$tmp/a.y4m" \
    --overwrite
same "over a file" "$tmp/a.y4m" "$tmp/b.y4m"
check "encode" tether encode -q -m ref_data/demo -i "$tmp/a.y4m" -o "$tmp/e"
"$native/tether" encode -q -m ref_data/demo -i "$tmp/a.y4m" -o "$tmp/f" > "$tmp/log" 2>&1
same "encode" "$tmp/e" "$tmp/f"
tether inspect ref_data/demo/diffusion_pytorch_model.safetensors 2> "$tmp/log" | head -n 1 > /dev/null
is "a reader that goes away" "$(cat "$tmp/log")" ""
check "kv-dir" tether generate -q -m ref_data/demo -p 'a * \ b' --latents 9 --seed 3 --no-decode \
    --kv-dir "$tmp/p" --latents-out "$tmp/kv"
same "kv-dir" "$tmp/kv" "$tmp/nine"
is "kv-dir leaves" "$(find "$tmp/p" -name 'tether-*' | wc -l)" 0

# ---- reports ----
# shellcheck disable=SC2086
check "a record" tether generate $run -p 'a * \ b' -o "$tmp/r.y4m" --analyze "$tmp\\r"
check "analyze" tether analyze "$tmp\\r" -o "$tmp\\t"
"$native/tether" analyze "$tmp/r" -o "$tmp/n" > "$tmp/log" 2>&1 || fail "native: $(cat "$tmp/log")"
for f in "$tmp/n"/*.csv; do same analyze "$f" "$tmp/t/${f##*/}"; done
says "explain" "chunk 2" tether explain "$tmp\\r" --chunk 2 --layer 0
check "compare" tether compare -q -m "ref_data\\demo" -p 'a red circle' --latents 6 \
    --caches fifo,tether -o "$tmp\\c.html"
is "compare" "$(ls "$tmp/c.html")" "$tmp/c.html"

# ---- a stop, a lock, and going on ----
words="generate -t 1 -m ref_data/demo -p x --latents 3000 --no-decode --latents-out $tmp/stop"
# shellcheck disable=SC2086
"$wine" "$build/tether.exe" $words > "$tmp/out" 2>&1 &
run=$!
i=0
while [ $i -lt 100 ] && ! grep -q 'chunk [0-9]' "$tmp/out"; do sleep 0.2; i=$((i + 1)); done
# shellcheck disable=SC2086
says "a lock" "another run is writing" tether $words --overwrite
kill -INT $run
wait $run
is "Ctrl-C" "$?" 130
says "Ctrl-C" "stopping after this step" cat "$tmp/out"
words="generate -q -m ref_data/demo -p x --no-decode --latents-out $tmp/go"
# shellcheck disable=SC2086
{ tether $words --latents 6 && tether $words --latents 9 --resume; } > "$tmp/log" 2>&1 || fail resume
"$native/tether" generate -q -m ref_data/demo -p x --no-decode --latents-out "$tmp/gone" \
    --latents 9 > "$tmp/log" 2>&1
same "resume" "$tmp/go" "$tmp/gone"

# ---- other programs and libraries ----
mkdir "$tmp/bin"
${WINDOWS_CC:?} -O -o "$tmp/bin/ffmpeg.exe" tests/windows/ffmpeg.c -static || fail "a compiler"
WINEPATH=$tmp/bin
export WINEPATH
mkdir "$tmp/planted"
cp "$tmp/bin/ffmpeg.exe" "$tmp/planted/"
(cd "$tmp/planted" && WINEPATH='' && export WINEPATH &&
    tether decode -q -m "$here/ref_data/demo" --latents "$tmp/nine" -o "$tmp/c.mp4") > "$tmp/log" 2>&1
is "an ffmpeg in this folder is not run" "$? $(ls "$tmp/c.mp4" 2>/dev/null)" "1 "
check "ffmpeg writes" tether decode -q -m ref_data/demo --latents "$tmp/nine" -o "$tmp/a.mp4"
is "ffmpeg writes" "$(wc -c < "$tmp/a.mp4")" $((33 * 64 * 64 * 3))
printf 'no picture' > "$tmp/b.mp4"
check "ffmpeg reads" tether encode -q -m ref_data/demo -i "$tmp/b.mp4" -o "$tmp/b"
plugin="validate --backend $build/tests/validate/mutants.so --no-calls --no-rollout --rounds 6"
# shellcheck disable=SC2086
says "a plug-in" "^PASS" tether $plugin --op rms_norm
TETHER_MISBEHAVES=exit
export TETHER_MISBEHAVES
# Under wine exit() of a DLL waits for ever now and then: the limit of time ends it.
for try in 1 2 3; do
    # shellcheck disable=SC2086
    tether $plugin --op silu --timeout 20 > "$tmp/exits" 2>&1
    grep -q "did not return within 20 seconds" "$tmp/exits" || break
    echo "note: one that exits: it waits, try $try"
done
says "one that exits" "ended the process with exit status 7" cat "$tmp/exits"
TETHER_MISBEHAVES=far
# shellcheck disable=SC2086
says "one that writes elsewhere" "reached outside its output" tether $plugin --op silu
TETHER_MISBEHAVES=hang
# shellcheck disable=SC2086
says "one that hangs" "did not return within 3 seconds" tether $plugin --op silu --timeout 3
unset TETHER_MISBEHAVES WINEPATH
mkdir "$tmp/v"
TMPDIR=$tmp/v "$wine" "$build/tether.exe" validate --backend golden > "$tmp/out" 2>&1 &
run=$!
i=0
while [ $i -lt 100 ] && ! ls -d "$tmp"/v/tether-v*/tether-v* > "$tmp/log" 2>&1; do
    sleep 0.2
    i=$((i + 1))
done
is "the folder of its second process" "$(find "$tmp/v" -mindepth 2 -name 'tether-v*' | wc -l)" 1
sleep 1
kill -INT $run
wait $run
is "validate and Ctrl-C" "$?" 130
says "validate and Ctrl-C" "stopping after this step" cat "$tmp/out"
is "what validate leaves" "$(find "$tmp/v" -name 'tether-*')" ""

# ---- two builds have the same bytes: no time is in a program ----
field() { od -An -tu4 -j "$1" -N 4 "$build/tether.exe" | tr -d ' '; }
is "the time in tether.exe" "$(field $(($(field 60) + 8)))" 0

# ---- test programs ----
mkdir "$tmp/t" "$tmp/cli" "$tmp/cli/tests" "$tmp/cli/tests/cli"
TMPDIR=$tmp/t
export TMPDIR
one() {   # name, command...
    name=$1
    shift
    timeout -k 5 "${TIME:+1}200" "$@" > "$tmp/log" 2>&1
    rc=$?
    line=$(grep -aE ' [0-9]+ passed, [0-9]+ failed' "$tmp/log" | tail -n 1 | tr -d '\r')
    grep -a '^SKIP' "$tmp/log"
    case $line in
    *" 0 failed"*) [ $rc -eq 0 ] && pass || fail "$name ended with $rc" ;;
    *) fail "$name: ${line:-ended with $rc}: $(grep -a FAIL "$tmp/log" | head -n 3)" ;;
    esac
}
for t in core io ops cache dit vae text rollout run; do
    for f in tests/$t/test_*.c; do
        name=$t/${f#tests/*/test_}
        name=${name%.c}
        why=$(sed -n "${TIME:+/: time: /d;}s#^$name: ##p" tests/windows/not_run.txt)
        if [ -n "$why" ]; then skip "$name: $why"
        else one "$name" "$wine" "$build/${f%.c}.exe"; fi
    done
done
# programs of this system, whose program is tether.exe
printf '#!/bin/sh\nexec "%s" "%s/tether.exe" "$@"\n' "$wine" "$here/$build" > "$tmp/cli/tether"
chmod +x "$tmp/cli/tether"
for name in demo inputs; do
    cp "$native/tests/cli/test_$name" "$tmp/cli/tests/cli/"
    one "cli/$name" "$tmp/cli/tests/cli/test_$name"
done
skip "cli/: others: $(sed -n 's#^cli/: ##p' tests/windows/not_run.txt)"
total
