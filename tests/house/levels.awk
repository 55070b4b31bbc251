# levels.awk: the rooms of src/README.md, one "LEVEL ROOM" a line.
#
# SPDX-License-Identifier: Apache-2.0
#
# Its first block has lines "LEVEL  ROOM  ROOM     what they are".

/^```/ {
    if (block++) exit
    next
}
block && /^[0-9]  / {
    split($0, part, /   +/)
    n = split(part[1], word)
    for (i = 2; i <= n; i++) print word[1], word[i]
}
