# layout.awk: complaints about the layout of C files and scripts.
#
# SPDX-License-Identifier: Apache-2.0
#
#   LC_ALL=C awk -f tests/house/layout.awk LEVELS FILE...
#
# LEVELS has lines "LEVEL ROOM", those of src/README.md. One line a complaint:
# FILE:LINE: what. test_layout.sh says which rules these are.

function complain(what) { print FILENAME ":" FNR ": " what }

function code(s) {   # s without strings, characters and comments
    gsub(/\\./, "", s)
    gsub(/"[^"]*"/, "0", s)
    gsub(/'[^']*'/, "0", s)
    if (comment) {
        if (!sub(/^.*\*\//, "", s)) return ""
        comment = 0
    }
    gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, " ", s)
    sub(/\/\/.*/, "", s)
    if (sub(/\/\*.*/, "", s)) comment = 1
    return s
}

# A line that is broken behind an operator, or behind ? and : of a choice.
function operator_last(s) {
    s = code(s)
    sub(/[ \\]*$/, "", s)
    return s ~ /(&&|\|\|)$/ || s ~ /[^ ] ([-+*\/%&|^<>?:]|[=!<>]=|<<|>>)$/
}

function begin_file(    n, part) {
    n = split(FILENAME, part, "/")
    base = part[n]
    c_file = base ~ /\.([ch]|cu|cpp)$/
    room = part[n - 1]
    for (i = 1; i < n; i++) if (part[i] == "src") room = part[i + 1]
    header = 1          # inside the header comment
    first = 1           # inside its first paragraph
    licence = 0
    before = ""
    comment = 0
    # rooms and tests that have lines broken behind operators, or wide ones
    apart = FILENAME ~ /^(src|tests)\/(validate|cli|ops|cuda)\//
}

# The header comment: the file's name, a sentence, the licence.
function read_header(line) {
    if (c_file && FNR == 1 && index(line, "/* " base ": ") != 1)
        complain("the header does not begin with /* " base ": ")
    if (line ~ /SPDX-License-Identifier: Apache-2\.0( \*\/)?$/) licence = 1
    if (first && c_file && (line ~ /^ \*$/ || line ~ /SPDX/ || line ~ /\*\/$/)) {
        first = 0
        if (before !~ /[.:?]$/ && line !~ /[.:?] \*\/$/)
            complain("the first sentence of the header has no end")
    }
    before = line
    if (c_file ? line ~ /\*\/$/ : line !~ /^#/) {
        header = 0
        if (!licence) complain("the header names no licence " \
                               "(SPDX-License-Identifier: Apache-2.0)")
    }
}

NR == FNR { level[$2] = $1; next }
FNR == 1 { begin_file() }
header { read_header($0) }
/\t/ { complain("a tab") }
/[ \t\r]$/ { complain("a blank at the end") }
c_file && /\{ 0 \}/ { complain("{ 0 }, which is written {0}") }
c_file && operator_last($0) && !apart {
    complain("an operator at the end, which leads the next line")
}
length($0) > 80 && room != "golden" && (FILENAME ~ /^(src|include)\// || c_file && !apart) {
    wide = $0
    gsub(/[\200-\277]/, "", wide)    # one column a character of UTF-8
    if (length(wide) > 80) complain(length(wide) " columns, not 80")
}
c_file && FILENAME ~ /(^|\/)src\// && room != "third_party" && room != "os" \
    && /__(APPLE|linux|FreeBSD)__|_WIN32|__wasm|"\/(proc|sys)\// {
    complain("a question for the system, which is for src/os")
}
c_file && FILENAME ~ /(^|\/)src\// && /^#include "/ {
    there = $2
    gsub(/"/, "", there)
    sub(/\/.*/, "", there)
    if (room == "os") next   # its files take the place of others
    if (there in level && level[there] > level[room])
        complain(room " includes " there ", a higher room")
    if (there in level && there != room && level[there] == level[room])
        complain(room " includes " there ", a room beside it")
}
