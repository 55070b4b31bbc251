# script.sh: what the tests in shell share: they count, and say so at the end.
#
# SPDX-License-Identifier: Apache-2.0
#
#   this=room/what
#   . tests/script.sh
#   pass; fail "what is wrong"; skip "what was not tested, and why"
#   finish                 or total
# shellcheck shell=sh disable=SC2154
passed=0
failed=0
skipped=0
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); echo "FAIL $this: $*"; }
skip() { skipped=$((skipped + 1)); echo "SKIP $this: $*"; }

check() {   # what, command...: it must succeed; its words go to $tmp/log
    what=$1
    shift
    if "$@" > "$tmp/log" 2>&1; then
        pass
    else
        fail "$what: $(tail -n 5 "$tmp/log")"
    fi
}

is() {   # what, is, should be
    if [ "$2" = "$3" ]; then pass; else fail "$1: '$2', not '$3'"; fi
}

last_line() {   # before the counts: and the exit status
    line="$1$passed passed, $failed failed"
    if [ "$skipped" -gt 0 ]; then line="$line, $skipped skipped"; fi
    echo "$line"
    [ "$failed" -eq 0 ]
}
finish() { last_line "$this: "; }   # of a test among others
total() { last_line ''; }           # of a make target
