// SPDX-License-Identifier: MIT
//
// obase::scope: the dynamic extent of one operation. Addresses obtained from guides are good inside
// it.
//
//     {
//         obase::scope s;
//         use(*my_guide);       // the object cannot move before the brace
//     }
//
// Nestable, cheap (docs/benchmarks.md), async-signal-safe once the thread has used obase. It opens
// one per operation of a data structure, not one per program: while a scope is open, nothing that
// was armed after it opened can move and nothing retired can be freed. One that stays open over a
// window is reported with its thread and age.
//
// A scope must not be open across a coroutine or fiber switch. To keep an address for long, or to
// pass it to another thread, use obase::pin.
#pragma once

#include <obase/language.hpp>

#include <obase/arming.hpp>

namespace obase {

template <class Protocol>
using basic_scope = typename Protocol::scope;

using scope = basic_scope<arming>;

} // namespace obase
