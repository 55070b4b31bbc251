# tour.mk: the nine steps of the lesson as a page.
# SPDX-License-Identifier: Apache-2.0
