/* SPDX-License-Identifier: MIT */
#pragma once
#if defined(__has_include) && __has_include(<obase/marked.h>)
#include <obase/marked.h>
#else
#define OBASE_GUIDED __attribute__((annotate("obase::guided")))
#define OBASE_ENTRY __attribute__((annotate("obase::entry")))
#define OBASE_INTERNAL __attribute__((annotate("obase::internal")))
#endif
#define OBASE_OUTSIDE __attribute__((annotate("obase::outside")))
#include <stddef.h>
