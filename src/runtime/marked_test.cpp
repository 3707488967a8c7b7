// SPDX-License-Identifier: MIT
//
// Marked pointers on the arming protocol.
#include "runtime/arming_engine.hpp"

#include <obase/arming.hpp>
#include <obase/word/arming.hpp>

#include <cstdint>

namespace {

struct kind {
    using protocol = obase::arming;
    using engine = obase::runtime_internal::arming_engine;
    static bool waits_at(std::uint64_t word) { return protocol::layout::is_armed(word); }
};

} // namespace

#define OBASE_MARKED(name) obase_marked_##name
#include "runtime/marked_test.hpp"
