// SPDX-License-Identifier: MIT
//
// The functions of obase::atc: each opens a scope and calls the threads' half of the protocol
// (mobility/atc_thread.hpp) with the calling thread's context.
#include <obase/atc.hpp>

#include "runtime/arming_engine.hpp"
#include "runtime/atc_engine.hpp"
#include "runtime/engine_collector.hpp"
#include "runtime/engine_lifecycle.hpp"
#include "runtime/engine_threads.hpp"

namespace obase {

namespace runtime_internal {

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

template class engine<atc_binding>;

} // namespace runtime_internal

using runtime_internal::atc_engine;
using runtime_internal::context_of;
using runtime_internal::core;

namespace {

// The mode of a thread that is in no scope. It is never written.
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
    // Where no destructors ran, as in C, frames and thread-local storage may have left slots behind.
    const os::stack_range stack = os::own_stack();
    forget_range(stack.low, stack.high);
    os::for_each_own_dynamic_storage([](std::uintptr_t begin, std::uintptr_t end) {
        forget_range(reinterpret_cast<void*>(begin), reinterpret_cast<void*>(end));
    });
    atc_engine::instance().leave_thread(full(*self));
    context_ = {nullptr, nullptr, nullptr, &no_mode};
    obase_marked_atc_direct = 0;
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

word::bits atc::touch(slot& s) noexcept {
    auto* own = context_of(*here());
    if (own != nullptr) return core().threads.touch(*own, s);
    return core().state.counts() ? word::count_in_forever(s).address : word::mark_access(s).address;
}

void atc::construct(slot& s, word::bits word) noexcept {
    if (runtime_internal::arming_engine::manages(&s)) [[unlikely]] {
        // Sticky: it is never counted in, so that no TAG holds the address of a slot that may move.
        s.store_release(word::atc::make_sticky(word::atc::entering(word)));
        atc_engine::instance().say_once_of_mixing();
        return;
    }
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

void* atc::allocate_usual(std::size_t bytes) noexcept { return atc_engine::allocate_usual(bytes); }
void* atc::allocate_as(std::size_t bytes, const allocation_options& how) noexcept {
    return atc_engine::instance().allocate(bytes, how);
}
void atc::deallocate(void* object) noexcept { atc_engine::deallocate(object); }
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
