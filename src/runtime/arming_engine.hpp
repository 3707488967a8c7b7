// SPDX-License-Identifier: MIT
//
// The engine of the arming protocol: what arming.cpp and marked.cpp, its two faces, share.
#pragma once

#include "mobility/arming_mover.hpp"
#include "mobility/arming_thread.hpp"
#include "runtime/engine.hpp"

#include <obase/arming.hpp>

#include <cstdint>
#include <new>
#include <optional>

namespace obase::runtime_internal {

struct arming_binding {
    using mover = mobility::arming_mover<os::native_platform, heap::space>;
    using record = mobility::thread_record<os::native_platform>;
    static constexpr const char* name = "arming";
    static constexpr const char* thread_name = "obase/arming";
    static constexpr unsigned thread_slot = 0;
    static constexpr unsigned saturation = ~0u;
    static constexpr bool bare_addresses = true;

    static void emplace(std::optional<mover>& place,
                        mobility::scope_registry<os::native_platform>& registry,
                        soda::directory<os::native_platform>& slots, heap::space& space) {
        place.emplace(registry, slots, space);
    }
    static record* this_record() noexcept { return static_cast<record*>(arming::this_slot()); }
    static record* this_record_if_any() noexcept {
        return static_cast<record*>(arming::this_slot_if_any());
    }
    // A record for a new thread; null when there is no memory for one.
    template <class Pages>
    static record* claim_record(mobility::scope_registry<os::native_platform>& registry,
                                std::uint32_t id, Pages&& zeroed_pages) noexcept {
        return mobility::claim_record(registry, id, [&]() -> record* {
            void* memory = zeroed_pages(sizeof(record));
            return memory != nullptr ? ::new (memory) record{} : nullptr;
        });
    }
    // Nothing per thread but the record.
    static void detach(record&) noexcept {}
    static void forget_other_threads(const record*) noexcept {}
    static void arm_again(arming::slot& slot, const heap::space& space) noexcept {
        word::bits seen = slot.load_acquire();
        if (word::arming::is_null(seen) || !word::arming::is_plain(seen)) return;
        if (space.contains(reinterpret_cast<const void*>(seen))) // R17
            slot.cas_acq_rel(seen, word::arming::make_born_touched(seen));
    }
};

static_assert(mobility::object_heap<heap::space>);
static_assert(mobility::mover<arming_binding::mover>);

using arming_engine = engine<arming_binding>;

// Made once, in arming.cpp.
extern template class engine<arming_binding>;

} // namespace obase::runtime_internal
