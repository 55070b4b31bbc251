#!/bin/sh
# dist.sh: what `make dist` makes. The source archive builds without git (its tests
# run so in .ci/bare), two builds in two folders have the same bytes, and the wheel
# works in a bare venv.
#
#   sh tests/install/dist.sh BUILD        (`make check-dist` calls it)
#
# SPDX-License-Identifier: Apache-2.0
build=$1
this=dist
. tests/script.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tether-dist-XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM
if ! command -v python3 > /dev/null 2>&1; then
    skip "python3, which writes the archives, is not installed"
    total
    exit
fi

# ---- the source, unpacked twice, under names of unequal length -------------
python3 tools/dist.py source "$tmp" || fail "the source archive"
archive=$(echo "$tmp"/tether-*.tar.gz)
top=$(basename "$archive" .tar.gz)
for place in a "another place"; do
    mkdir "$tmp/$place"
    tar xzf "$archive" -C "$tmp/$place"
    check "the archive again, from $place" \
        python3 "$tmp/$place/$top/tools/dist.py" source "$tmp/$place"
    check "it has the same bytes" cmp "$archive" "$tmp/$place/$top.tar.gz"
    ulimit -c 0
    check "a wheel and a static program" sh -c 'cd "$1" &&
        make -j2 wheel && make -j2 dist-static' - "$tmp/$place/$top"
done
here="$tmp/another place/$top/build/dist"
for file in "$tmp/a/$top"/build/dist/*; do
    check "two builds of ${file##*/}" cmp "$file" "$here/${file##*/}"
done

# ---- the static program ------------------------------------------------------
mkdir "$tmp/program"
for file in "$here"/tether-*-linux-*.tar.gz; do
    check "unpack ${file##*/}" tar xzf "$file" -C "$tmp/program"
done
ours=$(cd "$build" && pwd)/tether
alone=$(echo "$tmp"/program/*/bin/tether)
case $("$ours" --version) in
*"compute type f64"*) ours=$alone ;;     # what is released is float
esac
want=$(cd "$tmp" && "$ours" demo -q --latents 6 -o "$tmp/ours" &&
    cksum < "$tmp/ours/demo.latents.safetensors")
made() {   # program
    rm -rf "$tmp/demo"
    env -i PATH=/usr/bin:/bin "$1" demo -q --latents 6 -o "$tmp/demo" &&
        cksum < "$tmp/demo/demo.latents.safetensors"
}
is "the static program's demo" "$(made "$alone")" "$want"
if command -v readelf > /dev/null 2>&1; then
    is "libraries that it needs" \
        "$(readelf -d "$alone" | grep -c NEEDED)" 0
fi

# ---- the wheel -----------------------------------------------------------------
wheel=$(echo "$here"/*.whl)
if ! python3 -m venv --system-site-packages "$tmp/v env" > "$tmp/log" 2>&1 ||
        ! "$tmp/v env/bin/python" -c 'import numpy' > /dev/null 2>&1; then
    skip "the wheel: python3 has no venv with pip, or no numpy"
    total
    exit
fi
bin="$tmp/v env/bin"
check "pip install" "$bin/python" -m pip install --no-index --no-deps -q "$wheel"
is "the wheel's demo" "$(made "$bin/tether")" "$want"
check "its stored bits" env -i PATH=/usr/bin:/bin "$bin/tether" validate --manifest
check "the schema" test -s "$tmp/v env/share/tether/validate.schema.json"
check "the float64 program" env -i PATH=/usr/bin:/bin "$bin/tether-f64" --version
cat > "$tmp/use.py" <<'END'
import numpy, pathlib, sys, tether
prefix = str(pathlib.Path(sys.prefix).resolve())
assert str(pathlib.Path(tether.library_path()).resolve()).startswith(prefix)
assert str(pathlib.Path(tether.program_path()).resolve()).startswith(prefix)
x = numpy.linspace(-4, 4, 9, dtype=numpy.float32)
assert abs(tether.silu(x) - x / (1 + numpy.exp(-x))).max() < 1e-6
END
check "tether.py" env -i PATH=/usr/bin:/bin "$bin/python" "$tmp/use.py"
check "pip uninstall" "$bin/python" -m pip uninstall -q -y tether-video
is "what it leaves" "$(find "$tmp/v env" -name '*tether*' | wc -l | tr -d ' ')" 0
total
