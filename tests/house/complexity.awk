# complexity.awk: the cyclomatic complexity of every function of C files.
# SPDX-License-Identifier: Apache-2.0
#
#   awk -f tests/house/complexity.awk FILE... | sort -rn
#
# One line a function: complexity, file:line, name. It is 1 and one more for
# every if, for, while, case, &&, || and ?: of the body; comments, strings and
# lines of the preprocessor count for nothing. A function is what the layout
# says it is: its name begins on a line without indent, and its braces stand
# in column 1, or its whole body on one line.

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

function decisions(s,    n) {
    n = gsub(/&&|\|\||\?/, " ", s)
    s = " " s
    while (match(s, /[^A-Za-z0-9_](if|for|while|case)[^A-Za-z0-9_]/)) {
        n++
        s = substr(s, RSTART + RLENGTH - 1)
    }
    return n
}

function name_of(s) {
    sub(/[ ]*\(.*/, "", s)
    sub(/.*[ *]/, "", s)
    return s
}

FNR == 1 { comment = 0; inside = 0; directive = 0; name = "" }
{
    text = code($0 " ")
    if (directive || text ~ /^[ ]*#/) {
        directive = $0 ~ /\\$/
        next
    }
    if (inside) {
        n += decisions(text)
        if (text ~ /^}/) {
            print n, FILENAME ":" line, name
            inside = 0
        }
        next
    }
    if (text ~ /^[A-Za-z_].*\(/) {
        name = name_of(text)
        line = FNR
        if (text ~ /\)[ ]*{.*}/ && text !~ /=[ ]*{/) {
            print 1 + decisions(text), FILENAME ":" line, name
            name = ""
        }
    }
    if (text ~ /^{.*}/ && name != "") {
        print 1 + decisions(text), FILENAME ":" line, name
        name = ""
    }
    if (text ~ /^{/ && name != "") {
        inside = 1
        n = 1
    }
    if (text ~ /;[ ]*$/) name = ""
}
