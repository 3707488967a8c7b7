// SPDX-License-Identifier: MIT
//
// quiet_runtime: the process's runtime as tests want it: configured from the environment (so that
// OBASE_DEBUG_REARM=1 reaches every test), but with windows only when the test asks for one.
//
//     auto& runtime = obase::testing::quiet_runtime();
//     ASSERT_EQ(runtime.collect_now(), obase::collect_result::done);
//
// A test of the collector's own clock cannot use it. Under OBASE_AUDIT=1 (docs/audit.md) there is no collector, and nothing to
// configure.
#pragma once

#include <obase/arming.hpp>
#include <obase/runtime.hpp>

#include <cstdio>
#include <cstdlib>

namespace obase::testing {

template <class Protocol = arming>
runtime& quiet_runtime() {
    runtime& made = runtime::of<Protocol>();
    static const bool configured = [&] {
        if (std::getenv("OBASE_AUDIT") != nullptr) return true;
        options settings = options::from_environment();
        settings.window_seconds = 1e6;
        settings.compaction_live_fraction = 0.75;
        const std::string error = made.configure(settings);
        if (!error.empty()) {
            std::fprintf(stderr, "quiet_runtime: %s\n", error.c_str());
            std::abort();
        }
        return true;
    }();
    (void)configured;
    return made;
}

// All moves, whatever their direction.
inline std::uint64_t moves_of(const statistics& s) { return s.moved_objects + s.compacted; }

} // namespace obase::testing
