// SPDX-License-Identifier: MIT
//
// The engine of the ATC protocol: what atc.cpp and marked_atc.cpp, its two faces, share.
#pragma once

#include "mobility/activity_index.hpp"
#include "mobility/atc_mover.hpp"
#include "mobility/atc_thread.hpp"
#include "runtime/engine.hpp"

#include <obase/atc.hpp>

#include <cstdint>
#include <new>
#include <optional>

// For the loads that the passes compile: if the word has one of these bits, its lower 48 bits are the
// address. Zero outside of operations on marked pointers, and in those that count. In marked_atc.cpp.
extern "C" OBASE_EXPORT OBASE_TLS constinit thread_local std::uint64_t obase_marked_atc_direct;

namespace obase::runtime_internal {

struct atc_binding {
    using mover = mobility::atc_mover<os::native_platform, heap::space>;
    using registry = mobility::scope_registry<os::native_platform>;
    using record = mobility::thread_record<os::native_platform>;
    using context = mobility::atc_context<os::native_platform>;
    using entry = mobility::atc_entry<os::native_platform>;
    using index = mobility::activity_index<os::native_platform, entry, 64>;
    static constexpr const char* name = "atc";
    static constexpr const char* thread_name = "obase/atc";
    static constexpr unsigned thread_slot = 1;
    static constexpr unsigned saturation = word::atc::idle_saturation;
    static constexpr bool bare_addresses = false;

    static void emplace(std::optional<mover>& place, registry& threads,
                        soda::directory<os::native_platform>& slots, heap::space& space);
    static record* this_record() noexcept { return static_cast<record*>(atc::this_slot()); }
    static record* this_record_if_any() noexcept {
        return static_cast<record*>(atc::this_slot_if_any());
    }
    // The debug mode has nothing to do here: a touched word is no address without a mask anyway.
    static void arm_again(atc::slot&, const heap::space&) noexcept {}

    template <class Pages>
    static record* claim_record(registry& threads, std::uint32_t id, Pages&& zeroed_pages) noexcept;
    static void detach(record& self) noexcept;
    static void forget_other_threads(const record* self) noexcept;
};

static_assert(mobility::mover<atc_binding::mover>);

using atc_engine = engine<atc_binding>;

// Made once, in atc.cpp.
extern template class engine<atc_binding>;

// The protocol's own part of the engine. Never destroyed, like the engine.
struct atc_core {
    atc_binding::index index;
    mobility::atc_state<os::native_platform> state;
    mobility::atc_threads<os::native_platform> threads;

    explicit atc_core(atc_engine& engine) noexcept
        : threads(engine.threads(), engine.directory(), state) {}
};

inline atc_core& core() noexcept {
    alignas(atc_core) static unsigned char storage[sizeof(atc_core)];
    static atc_core* const made = ::new (storage) atc_core(atc_engine::instance());
    return *made;
}

// Null for the record that threads share when there is no memory for their own.
inline atc_binding::context* context_of(atc::record& slot) noexcept {
    return static_cast<atc_binding::context*>(
        static_cast<atc_binding::record&>(slot).protocol_data);
}

} // namespace obase::runtime_internal
