// SPDX-License-Identifier: MIT
//
// The functions of obase::arming: each calls the threads' half of the protocol
// (mobility/arming_thread.hpp) with the calling thread's record.
#include <obase/arming.hpp>

#include "mobility/arming_thread.hpp"
#include "runtime/arming_engine.hpp"
#include "runtime/atc_engine.hpp"
#include "runtime/engine_collector.hpp"
#include "runtime/engine_lifecycle.hpp"
#include "runtime/engine_threads.hpp"

namespace obase {

template class runtime_internal::engine<runtime_internal::arming_binding>;

using runtime_internal::arming_engine;

constinit thread_local arming::thread_context arming::context_{};

namespace {
mobility::thread_record<os::native_platform>& full(arming::record& slot) noexcept {
    return static_cast<mobility::thread_record<os::native_platform>&>(slot);
}
mobility::arming_threads<os::native_platform, arming_engine> half() noexcept {
    return mobility::arming_threads<os::native_platform, arming_engine>(arming_engine::instance());
}
} // namespace

auto arming::attach_thread() noexcept -> record* {
    arming_engine& engine = arming_engine::instance();
    os::add_exit_hook(&detach_thread);
    // False: this thread's exit hooks are used up. Its record then stays taken, at epoch 0.
    os::arm_exit_hooks();
    auto* self = engine.attach_thread();
    context_ = {self, &engine.threads().epoch()};
    return self;
}

void arming::detach_thread() noexcept {
    record* self = context_.slot;
    if (self == nullptr) return;
    // Where no destructors ran, as in C, frames and thread-local storage may have left slots behind.
    const os::stack_range stack = os::own_stack();
    forget_range(stack.low, stack.high);
    os::for_each_own_dynamic_storage([](std::uintptr_t begin, std::uintptr_t end) {
        forget_range(reinterpret_cast<void*>(begin), reinterpret_cast<void*>(end));
    });
    arming_engine::instance().leave_thread(full(*self));
    context_ = {};
    arming_engine::instance().detach_thread(full(*self));
}

void arming::end_scope_with_work(record& self) noexcept {
    arming_engine::instance().end_scope(full(self));
}

word::bits arming::first_touch(slot& s) noexcept {
    record* self = context_.slot;
    return half().first_touch(self != nullptr ? &full(*self) : nullptr, s);
}

void arming::construct(slot& s, word::bits word) noexcept {
    if (runtime_internal::atc_engine::manages(&s)) [[unlikely]] {
        s.store_release(word);
        arming_engine::instance().say_once_of_mixing();
        return;
    }
    half().construct(full(*here()), s, word);
}

void* arming::destroy(slot& s) noexcept { return address(half().destroy(full(*here()), s)); }

void arming::forget_range(void* begin, void* end) noexcept {
    half().forget_range(full(*here()), begin, end);
}

word::bits arming::exchange(slot& s, word::bits word) noexcept { return half().exchange(s, word); }

bool arming::compare_exchange(slot& s, void*& expected, word::bits word) noexcept {
    auto seen = reinterpret_cast<word::bits>(expected);
    const bool done = half().compare_exchange(s, seen, word);
    expected = reinterpret_cast<void*>(seen);
    return done;
}

void* arming::allocate_usual(std::size_t bytes) noexcept {
    return arming_engine::allocate_usual(bytes);
}
void* arming::allocate_as(std::size_t bytes, const allocation_options& how) noexcept {
    return arming_engine::instance().allocate(bytes, how);
}
void arming::deallocate(void* object) noexcept { arming_engine::deallocate(object); }
std::size_t arming::usable_size(const void* object) noexcept {
    return arming_engine::instance().usable_size(object);
}

auto arming::pin(void* object) noexcept -> pin_entry* {
    return arming_engine::instance().pin(full(*here()), object);
}

void arming::retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept {
    arming_engine::instance().retire(full(*here()), object, destroy, bytes);
}

runtime& arming::runtime_of() noexcept { return arming_engine::instance(); }

runtime& runtime::get() noexcept { return arming::runtime_of(); }

} // namespace obase
