# flags.mk: of macOS.
# SPDX-License-Identifier: Apache-2.0
OS_FLAGS := -Isrc/os/macos
