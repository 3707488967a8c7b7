// SPDX-License-Identifier: MIT
//
// The functions of obase::atc: each opens a scope and calls the threads' half of the protocol
// (mobility/atc_thread.hpp) with the calling thread's context.
#include <obase/atc.hpp>

#include "mobility/activity_index.hpp"
#include "mobility/atc_mover.hpp"
#include "mobility/atc_thread.hpp"
#include "runtime/engine.hpp"

namespace obase {

namespace runtime_internal {

struct atc_binding {
    using mover = mobility::atc_mover<os::native_platform, heap::space>;
    using registry = mobility::scope_registry<os::native_platform>;
    using record = mobility::thread_record<os::native_platform>;
    using context = mobility::atc_context<os::native_platform>;
    using entry = mobility::atc_entry<os::native_platform>;
    using index = mobility::activity_index<os::native_platform, entry, 64>;
    static constexpr const char* name = "atc";
    static constexpr const char* thread_name = "obase/atc";
    static constexpr unsigned saturation = word::atc::idle_saturation;

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

using atc_engine = engine<atc_binding>;

namespace {

// The protocol's own part of the engine. Never destroyed, like the engine.
struct atc_core {
    atc_binding::index index;
    mobility::atc_state<os::native_platform> state;
    mobility::atc_threads<os::native_platform> threads;

    explicit atc_core(atc_engine& engine) noexcept
        : threads(engine.threads(), engine.directory(), state) {}
};

atc_core& core() noexcept {
    alignas(atc_core) static unsigned char storage[sizeof(atc_core)];
    static atc_core* const made = ::new (storage) atc_core(atc_engine::instance());
    return *made;
}

// Null for the record that threads share when there is no memory for their own.
atc_binding::context* context_of(atc::record& slot) noexcept {
    return static_cast<atc_binding::context*>(
        static_cast<atc_binding::record&>(slot).protocol_data);
}

} // namespace

void atc_binding::emplace(std::optional<mover>& place, registry& threads,
                          soda::directory<os::native_platform>& slots, heap::space& space) {
    place.emplace(threads, slots, space, core().state);
}

template <class Pages>
auto atc_binding::claim_record(registry& threads, std::uint32_t id, Pages&& zeroed_pages) noexcept
    -> record* {
    entry* claimed = core().index.claim(threads, id, [&]() -> index::place* {
        void* memory = zeroed_pages(sizeof(index::place));
        return memory != nullptr ? ::new (memory) index::place : nullptr;
    });
    return claimed != nullptr ? &claimed->record : nullptr;
}

void atc_binding::detach(record& self) noexcept { core().threads.detach(*context_of(self)); }

void atc_binding::forget_other_threads(const record* self) noexcept {
    core().threads.forget_other_threads(
        self != nullptr ? static_cast<const context*>(self->protocol_data) : nullptr);
}

} // namespace runtime_internal

using runtime_internal::atc_engine;
using runtime_internal::context_of;
using runtime_internal::core;

namespace {

// Where the mode of a thread is found that is in no scope: nobody writes it.
constinit mobility::atc_mode no_mode = mobility::atc_mode::undecided;
// The mode of a thread that shares the emergency record.
constinit thread_local mobility::atc_mode mode_without_record = mobility::atc_mode::undecided;

mobility::thread_record<os::native_platform>& full(atc::record& slot) noexcept {
    return static_cast<mobility::thread_record<os::native_platform>&>(slot);
}
std::uint64_t bits_of(const void* object) noexcept {
    return reinterpret_cast<std::uint64_t>(object);
}

} // namespace

constinit thread_local atc::thread_context atc::context_{nullptr, nullptr, nullptr, &no_mode};

auto atc::attach_thread() noexcept -> record* {
    atc_engine& engine = atc_engine::instance();
    os::add_exit_hook(&detach_thread);
    // False: this thread's exit hooks are used up. Its record then stays taken, at epoch 0.
    os::arm_exit_hooks();
    auto* self = engine.attach_thread();
    auto* own = context_of(*self);
    context_ = {self, &engine.threads().epoch(), &core().state,
                own != nullptr ? &own->mode : &mode_without_record};
    return self;
}

void atc::detach_thread() noexcept {
    record* self = context_.slot;
    if (self == nullptr) return;
    context_ = {nullptr, nullptr, nullptr, &no_mode};
    atc_engine::instance().detach_thread(full(*self));
}

void atc::end_scope_with_work(record& self) noexcept {
    if (auto* own = context_of(self); own != nullptr)
        core().threads.end_operation(*own);
    else
        mode_without_record = mobility::atc_mode::undecided;
    if (self.exit_work)
        atc_engine::instance().end_scope(full(self));
    else
        mobility::exit_scope(self, 0);
}

void* atc::touch(slot& s) noexcept {
    auto* own = context_of(*here());
    if (own != nullptr) return reinterpret_cast<void*>(core().threads.dereference(*own, s));
    return address(core().state.counts() ? word::count_in_forever(s).address
                                         : word::mark_access(s).address);
}

void atc::construct(slot& s, word::bits word) noexcept {
    const scope one_operation;
    core().threads.construct(s, word);
}

void* atc::destroy(slot& s) noexcept {
    const scope one_operation;
    return address(core().threads.destroy(context_of(*context_.slot), s));
}

void atc::forget_range(void* begin, void* end) noexcept {
    const scope one_operation;
    core().threads.forget_range(context_of(*context_.slot), begin, end);
}

word::bits atc::exchange(slot& s, word::bits word) noexcept {
    const scope one_operation;
    return core().threads.exchange(s, word);
}

bool atc::compare_exchange(slot& s, void*& expected, word::bits word) noexcept {
    for (;;) {
        if (core().threads.exchange_if(s, bits_of(expected), word)) return true;
        void* current = dereference(s);
        if (current != expected) {
            expected = current;
            return false;
        }
    }
}

void* atc::allocate(std::size_t bytes, const allocation& how) noexcept {
    return atc_engine::instance().allocate(bytes, how);
}
void atc::deallocate(void* object) noexcept { atc_engine::instance().deallocate(object); }
std::size_t atc::usable_size(const void* object) noexcept {
    return atc_engine::instance().usable_size(object);
}

auto atc::pin(void* object) noexcept -> pin_entry* {
    return atc_engine::instance().pin(full(*here()), object);
}

void atc::retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept {
    atc_engine::instance().retire(full(*here()), object, destroy, bytes);
}

runtime& atc::runtime_of() noexcept { return atc_engine::instance(); }

} // namespace obase
