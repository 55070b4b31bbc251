# wine.sh: names wine, or fails where there is none.
#
# SPDX-License-Identifier: Apache-2.0
wine=$(command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2>/dev/null)
[ -n "$wine" ]
