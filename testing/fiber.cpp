// SPDX-License-Identifier: MIT
//
// The stack switch, and what the sanitizers have to be told about it.
#include "testing/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <cxxabi.h>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OBASE_TESTING_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define OBASE_TESTING_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define OBASE_TESTING_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define OBASE_TESTING_TSAN 1
#endif

#ifdef OBASE_TESTING_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef OBASE_TESTING_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifndef __x86_64__
#error "the deterministic scheduler switches stacks on x86-64 only"
#endif

// void obase_testing_switch_stack(void** save, void* load): pushes the registers that a callee must
// preserve, leaves the stack pointer in *save, and continues where `load` was saved.
asm(R"(
    .text
    .globl obase_testing_switch_stack
    .hidden obase_testing_switch_stack
    .type obase_testing_switch_stack, @function
obase_testing_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size obase_testing_switch_stack, . - obase_testing_switch_stack
)");

extern "C" void obase_testing_switch_stack(void** save, void* load);

namespace obase::testing {

namespace {

constexpr std::size_t page_size = 4096;
constexpr std::size_t stack_bytes = std::size_t{256} * 1024;

// Both are per OS thread. `arriving` is the fiber being switched to, for the first instruction of a
// fresh stack; `departing` is the one just left, whose stack bounds AddressSanitizer reports.
thread_local fiber* arriving = nullptr;
thread_local fiber* departing = nullptr;

} // namespace

fiber::fiber(kind k) : kind_(k) {
    if (kind_ == kind::host) {
        idle_ = false;
        entered_ = true;
#ifdef OBASE_TESTING_TSAN
        sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
        return;
    }
    // One inaccessible page below the stack turns an overflow into a fault.
    void* memory = ::mmap(nullptr, stack_bytes + page_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    ::mprotect(memory, page_size, PROT_NONE);
    stack_ = static_cast<char*>(memory) + page_size;
    stack_size_ = stack_bytes;
    reset_stack();
}

fiber::~fiber() {
    if (kind_ == kind::host) {
        return;
    }
#ifdef OBASE_TESTING_TSAN
    __tsan_destroy_fiber(sanitizer_fiber_);
#endif
#ifdef OBASE_TESTING_ASAN
    __asan_unpoison_memory_region(stack_, stack_size_);
#endif
    ::munmap(stack_ - page_size, stack_bytes + page_size);
}

void fiber::reset_stack() {
#ifdef OBASE_TESTING_ASAN
    __asan_unpoison_memory_region(stack_, stack_size_);
    sanitizer_stack_ = nullptr;
#endif
#ifdef OBASE_TESTING_TSAN
    if (sanitizer_fiber_ != nullptr) {
        __tsan_destroy_fiber(sanitizer_fiber_);
    }
    sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
    // As if main() had been called (the stack pointer is 8 past a multiple of 16) without a caller:
    // six zero registers, the address to return into, and a zero that ends frame-pointer walks.
    auto* top = reinterpret_cast<void**>(stack_ + stack_size_);
    void** sp = top - 8;
    std::memset(static_cast<void*>(sp), 0, 8 * sizeof(void*));
    sp[6] = reinterpret_cast<void*>(&fiber::main);
    stack_pointer_ = sp;
    entered_ = false;
    exceptions_ = {};
    idle_ = true;
}

void fiber::assign(job work, void* argument) {
    if (!idle_) {
        reset_stack();
    }
    work_ = work;
    argument_ = argument;
    idle_ = false;
}

void fiber::arrived() {
#ifdef OBASE_TESTING_ASAN
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(sanitizer_stack_, &bottom, &size);
    if (departing != nullptr && departing->kind_ == kind::host) {
        departing->stack_ = const_cast<char*>(static_cast<const char*>(bottom));
        departing->stack_size_ = size;
    }
#endif
}

void fiber::leave(fiber& from, fiber& to) {
    auto* record = reinterpret_cast<exception_record*>(abi::__cxa_get_globals());
    from.exceptions_ = *record;
    *record = to.exceptions_;
    arriving = &to;
    departing = &from;
#ifdef OBASE_TESTING_ASAN
    __sanitizer_start_switch_fiber(&from.sanitizer_stack_, to.stack_, to.stack_size_);
#endif
#ifdef OBASE_TESTING_TSAN
    __tsan_switch_to_fiber(to.sanitizer_fiber_, 0);
#endif
    obase_testing_switch_stack(&from.stack_pointer_, to.stack_pointer_);
}

void fiber::switch_to(fiber& from, fiber& to) {
    leave(from, to);
    from.arrived();
}

// Never returns: a fiber whose work has ended waits here for more, so that a stack (and what the
// sanitizers know of it) is used again without being rebuilt.
void fiber::main() {
    fiber& self = *arriving;
    self.entered_ = true;
    self.arrived();
    for (;;) {
        fiber* next = self.work_(self.argument_);
        self.idle_ = true;
        switch_to(self, *next);
    }
}

#ifdef OBASE_TESTING_ASAN
leaks_permitted::leaks_permitted() { __lsan_disable(); }
leaks_permitted::~leaks_permitted() { __lsan_enable(); }
#else
leaks_permitted::leaks_permitted() = default;
leaks_permitted::~leaks_permitted() = default;
#endif

} // namespace obase::testing
