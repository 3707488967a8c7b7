// SPDX-License-Identifier: MIT
//
// native_atomic<T>: std::atomic with the memory order in the name of every operation.
//
// The only place in obase where std::memory_order is written. A reader of any other file sees the
// order at the call (`load_acquire`), and a review of orders is a search for names. The
// deterministic scheduler's atomic (testing/deterministic.hpp) has the same members, so code
// templated on its atomics runs unchanged under both.
//
// Code that has nothing to do with guides uses std::atomic.
//
// Layout: exactly that of T (static_assert below), so an array of words may be viewed as atomics.
#pragma once

#include <obase/language.hpp>

#include <atomic>
#include <type_traits>

namespace obase::word {

template <class T>
class native_atomic {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(std::atomic<T>::is_always_lock_free, "every atomic of obase is lock-free");

  public:
    constexpr native_atomic() noexcept : value_{} {}
    constexpr explicit native_atomic(T value) noexcept : value_(value) {}
    native_atomic(const native_atomic&) = delete;
    native_atomic& operator=(const native_atomic&) = delete;

    T load_relaxed() const noexcept { return value_.load(std::memory_order_relaxed); }
    T load_acquire() const noexcept { return value_.load(std::memory_order_acquire); }
    T load_seq_cst() const noexcept { return value_.load(std::memory_order_seq_cst); }

    void store_relaxed(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
    void store_release(T value) noexcept { value_.store(value, std::memory_order_release); }
    void store_seq_cst(T value) noexcept { value_.store(value, std::memory_order_seq_cst); }

    T exchange_relaxed(T value) noexcept {
        return value_.exchange(value, std::memory_order_relaxed);
    }
    T exchange_acq_rel(T value) noexcept {
        return value_.exchange(value, std::memory_order_acq_rel);
    }
    T exchange_seq_cst(T value) noexcept {
        return value_.exchange(value, std::memory_order_seq_cst);
    }

    // Compare-exchange, strong. Returns true if `expected` was replaced; otherwise `expected` holds
    // what was seen (relaxed for cas_relaxed and cas_release, acquire for the others).
    bool cas_relaxed(T& expected, T desired) noexcept {
        return value_.compare_exchange_strong(expected, desired, std::memory_order_relaxed,
                                              std::memory_order_relaxed);
    }
    bool cas_release(T& expected, T desired) noexcept {
        return value_.compare_exchange_strong(expected, desired, std::memory_order_release,
                                              std::memory_order_relaxed);
    }
    bool cas_acq_rel(T& expected, T desired) noexcept {
        return value_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                              std::memory_order_acquire);
    }
    bool cas_seq_cst(T& expected, T desired) noexcept {
        return value_.compare_exchange_strong(expected, desired, std::memory_order_seq_cst,
                                              std::memory_order_seq_cst);
    }

    T fetch_add_relaxed(T operand) noexcept {
        return value_.fetch_add(operand, std::memory_order_relaxed);
    }
    T fetch_add_acq_rel(T operand) noexcept {
        return value_.fetch_add(operand, std::memory_order_acq_rel);
    }
    T fetch_add_seq_cst(T operand) noexcept {
        return value_.fetch_add(operand, std::memory_order_seq_cst);
    }

    T fetch_sub_relaxed(T operand) noexcept {
        return value_.fetch_sub(operand, std::memory_order_relaxed);
    }
    T fetch_sub_acq_rel(T operand) noexcept {
        return value_.fetch_sub(operand, std::memory_order_acq_rel);
    }
    T fetch_sub_seq_cst(T operand) noexcept {
        return value_.fetch_sub(operand, std::memory_order_seq_cst);
    }

    T fetch_or_relaxed(T operand) noexcept {
        return value_.fetch_or(operand, std::memory_order_relaxed);
    }
    T fetch_or_acq_rel(T operand) noexcept {
        return value_.fetch_or(operand, std::memory_order_acq_rel);
    }
    T fetch_or_seq_cst(T operand) noexcept {
        return value_.fetch_or(operand, std::memory_order_seq_cst);
    }

    T fetch_and_relaxed(T operand) noexcept {
        return value_.fetch_and(operand, std::memory_order_relaxed);
    }
    T fetch_and_acq_rel(T operand) noexcept {
        return value_.fetch_and(operand, std::memory_order_acq_rel);
    }
    T fetch_and_seq_cst(T operand) noexcept {
        return value_.fetch_and(operand, std::memory_order_seq_cst);
    }

  private:
    std::atomic<T> value_;
};

// Keeps the compiler from moving memory accesses across it; no instruction. Orders a thread against
// its own signal handlers and against membarrier in another thread.
inline void compiler_fence() noexcept { asm volatile("" ::: "memory"); }

static_assert(sizeof(native_atomic<unsigned long>) == sizeof(unsigned long));

} // namespace obase::word
