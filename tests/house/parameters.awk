# parameters.awk: how many parameters the functions of C files take.
# SPDX-License-Identifier: Apache-2.0
#
#   awk -f tests/house/parameters.awk FILE... | sort -rn
#
# One line a function that is defined or declared: parameters, file:line, name.
# Its name begins on a line without indent, like that of complexity.awk;
# comments and lines of the preprocessor count for nothing.

function code(s) {   # s without comments
    if (comment) {
        if (!sub(/^.*\*\//, "", s)) return ""
        comment = 0
    }
    gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, " ", s)
    if (sub(/\/\*.*/, "", s)) comment = 1
    return s
}

function name_of(s) {
    sub(/[ ]*\(.*/, "", s)
    sub(/.*[ *]/, "", s)
    return s
}

# What stands between the brackets of the function, without brackets inside.
function count(s,    n) {
    sub(/^[^(]*\(/, "", s)
    while (gsub(/\([^()]*\)/, "", s)) continue
    sub(/\).*/, "", s)
    gsub(/[ ]/, "", s)
    if (s == "" || s == "void") return 0
    n = gsub(/,/, "", s)
    return n + 1
}

# True when the brackets of s are closed.
function closed(s,    a, b) {
    a = gsub(/\(/, "", s)
    b = gsub(/\)/, "", s)
    return a == b
}

FNR == 1 { comment = 0; directive = 0; head = "" }
{
    text = code($0 " ")
    if (directive || text ~ /^[ ]*#/) {
        directive = $0 ~ /\\$/
        next
    }
    if (head == "" && text ~ /^[A-Za-z_][^=;]*\(/) {
        head = text
        line = FNR
    } else if (head != "") {
        head = head text
    }
    if (head != "" && closed(head)) {
        print count(head), FILENAME ":" line, name_of(head)
        head = ""
    }
}
