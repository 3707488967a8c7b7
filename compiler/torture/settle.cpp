// SPDX-License-Identifier: MIT
//
// settle() of torture.h, compiled without the plugins. With FORCED it asks for windows, and at the end
// of the program it says on the standard error how many objects have moved.
#include "compiler/torture/torture.h"

#if defined(FORCED)
#include <obase/runtime.hpp>

namespace {

class moves_said_at_end {
  public:
    moves_said_at_end() {
        // Without the collector's thread there are no windows to ask for.
        const std::string wrong = obase::runtime::get().start();
        if (!wrong.empty()) std::fprintf(stderr, "obase: %s\n", wrong.c_str());
    }
    ~moves_said_at_end() {
        const obase::statistics s = obase::runtime::get().statistics();
        std::fprintf(stderr, "objects moved: %llu\n",
                     static_cast<unsigned long long>(s.moved_objects + s.compacted));
    }
} whole_program;

} // namespace

void settle() {
    constexpr int windows = 6; // armed, cold, moved, and what that has left is seen to be so
    for (int i = 0; i < windows; ++i) (void)obase::runtime::get().collect_now();
}
#else
void settle() {}
#endif
