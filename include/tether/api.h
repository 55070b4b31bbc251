/* api.h: what surrounds the declarations of every public header.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The objects are compiled with -fvisibility=hidden, so a shared library
 * exports what stands between TT_API_BEGIN and TT_API_END and nothing else. Two
 * lines a header cannot be forgotten for a single function, as a word before
 * each prototype could. To C++ the names are those of C. */
#ifndef TETHER_API_H
#define TETHER_API_H

#ifdef __GNUC__
#define TT_API_PUSH _Pragma("GCC visibility push(default)")
#define TT_API_POP _Pragma("GCC visibility pop")
#else
#define TT_API_PUSH
#define TT_API_POP
#endif

#ifdef __cplusplus
#define TT_API_BEGIN TT_API_PUSH extern "C" {
#define TT_API_END } TT_API_POP
#else
#define TT_API_BEGIN TT_API_PUSH
#define TT_API_END TT_API_POP
#endif

#endif
