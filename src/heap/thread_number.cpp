// SPDX-License-Identifier: MIT
#include "heap/thread_number.hpp"

#include <bit>
#include <cstdint>

#include "os/thread.hpp"

namespace obase::heap {
namespace {

using native = os::native_platform;

constexpr unsigned words = thread_number<native>::at_once / 64;
constinit native::atomic<std::uint64_t> taken[words]; // a bit each

} // namespace

__thread unsigned thread_number<native>::plus_one_ = 0;

unsigned thread_number<native>::take() noexcept {
    if (!os::add_exit_hook(leave) || !os::arm_exit_hooks()) return no_thread_number;
    for (unsigned word = 0; word < words; ++word)
        for (std::uint64_t seen = taken[word].load_relaxed(); seen != ~std::uint64_t{0};) {
            const auto bit = static_cast<unsigned>(std::countr_one(seen));
            // Pairs with leave().
            if (!taken[word].cas_acq_rel(seen, seen | std::uint64_t{1} << bit)) continue;
            plus_one_ = word * 64 + bit + 1;
            return plus_one_ - 1;
        }
    return no_thread_number;
}

void thread_number<native>::leave() noexcept {
    if (plus_one_ == 0) return;
    const unsigned number = plus_one_ - 1;
    plus_one_ = 0;
    taken[number / 64].fetch_and_acq_rel(~(std::uint64_t{1} << (number % 64)));
}

void thread_number<native>::only_caller_is_left() noexcept {
    for (unsigned word = 0; word < words; ++word) {
        const bool mine = plus_one_ != 0 && (plus_one_ - 1) / 64 == word;
        taken[word].store_relaxed(mine ? std::uint64_t{1} << ((plus_one_ - 1) % 64) : 0);
    }
}

} // namespace obase::heap
