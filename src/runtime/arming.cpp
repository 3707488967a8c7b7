// SPDX-License-Identifier: MIT
//
// The functions of obase::arming: each is a transition of obase/word/arming.hpp on one slot plus
// what the rules demand around it.
#include <obase/arming.hpp>

#include "runtime/arming_engine.hpp"

namespace obase {

template class runtime_internal::engine<runtime_internal::arming_binding>;

using runtime_internal::arming_engine;

constinit thread_local arming::thread_context arming::context_{};

namespace {
mobility::thread_record<os::native_platform>& full(arming::record& slot) noexcept {
    return static_cast<mobility::thread_record<os::native_platform>&>(slot);
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
    // Where no destructors ran, as in C, frames may have left slots behind.
    const os::stack_range stack = os::own_stack();
    forget_range(stack.low, stack.high);
    context_ = {};
    arming_engine::instance().detach_thread(full(*self));
}

void arming::end_scope_with_work(record& self) noexcept {
    arming_engine::instance().end_scope(full(self));
}

void* arming::first_touch(slot& s) noexcept {
    const word::touch_result touched = word::touch(s);
    if (touched.disarmed) {
        arming_engine& engine = arming_engine::instance();
        if (engine.rearms() && in_scope()) engine.remember_touch(full(*context_.slot), s);
    }
    return reinterpret_cast<void*>(touched.address);
}

void arming::construct(slot& s, word::bits word) noexcept {
    s.store_release(word); // R10: the word first, then the bit
    const scope one_operation;
    arming_engine::instance().directory().set(&s);
}

void* arming::destroy(slot& s) noexcept {
    const scope one_operation;
    arming_engine::instance().directory().clear(&s); // R10: bit, hazard, and only then the word
    return address(s.load_acquire());
}

void arming::forget_range(void* begin, void* end) noexcept {
    const scope one_operation;
    arming_engine::instance().directory().clear_range(begin, end);
}

word::bits arming::exchange(slot& s, word::bits word) noexcept { return word::replace(s, word); }

bool arming::compare_exchange(slot& s, void*& expected, word::bits word) noexcept {
    auto seen = reinterpret_cast<word::bits>(expected);
    const bool done = word::compare_replace(s, seen, word);
    expected = reinterpret_cast<void*>(seen);
    return done;
}

void* arming::allocate(std::size_t bytes, const allocation& how) noexcept {
    return arming_engine::instance().allocate(bytes, how);
}
void arming::deallocate(void* object) noexcept { arming_engine::instance().deallocate(object); }
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
