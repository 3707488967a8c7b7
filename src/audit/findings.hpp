// SPDX-License-Identifier: MIT
//
// findings: what an audit has found, once each, and how it is told: as text, and as JSON for `obase audit`.
//
// Threads: any. add() and the writers are async-signal-safe, so that the handler of a fault can tell all before the
// process ends; a lock that another thread holds then is not waited for long.
#pragma once

#include "audit/arenas.hpp"

#include <cstddef>
#include <cstdint>

namespace obase::audit {

enum class kind : std::uint8_t {
    stale_use,     // an address was used after its operation had ended
    raw_word,      // a marked field was read by code that the passes did not compile
    two_slots,     // an object is in two marked fields after an operation
    freed_in_slot, // a marked field holds what was freed
    kept_address,  // suspected: a word outside of marked fields still has an address from before
    foreign_free, // memory of marked fields freed or resized by code that does not know it; was done right
    left_by_jump, // an operation was left by longjmp; was ended
    never_ended,  // an operation was open when the process ended
    plain_unit,   // a unit that was compiled without the passes calls a function on marked fields
};
inline constexpr unsigned kinds = 9;

struct finding {
    kind what;
    place at = nullptr; // the instruction, or the call
    bool at_is_return = false;
    std::uint64_t object = 0; // its address when it was found
    record known{};           // what is known of it
    place second = nullptr;   // two_slots: what made the other field a slot
    char where[160] = "";     // in words: what held the address
    std::uint64_t count = 1;
};

class findings {
  public:
    // `known_path` and `report_path` may be "". `strict`: what is only suspected counts as an error, too.
    void open(const char* report_path, const char* known_path, bool strict) noexcept;

    void add(const finding& found) noexcept;

    struct totals {
        std::uint64_t ends = 0, audited = 0, busy = 0, open = 0, late = 0;
        std::uint64_t moved = 0, arenas = 0, unprotected = 0, searches = 0, objects = 0;
    };
    // Tells everything, once. Returns true if there are errors.
    bool tell(const totals& done, bool in_handler) noexcept;
    // Child of a fork: what the parent has found is the parent's.
    void forget() noexcept;

  private:
    static constexpr std::size_t most = 128;
    static constexpr std::size_t room = std::size_t{512} << 10;

    bool lock_if_possible() noexcept;
    bool tell_all(const totals& done, bool in_handler) noexcept;
    const char* severity(const finding& f) const noexcept;
    void describe(const finding& f, bool in_handler, char* text, std::size_t bytes) noexcept;
    bool is_known(const finding& f, const char* text) const noexcept;

    finding found_[most];
    std::size_t count_ = 0;
    std::uint64_t lost_ = 0; // for which there was no room
    bool strict_ = false;
    bool told_ = false;
    char report_[1024] = "";
    char known_[64 << 10] = ""; // contents of the file
    char text_[16 << 10];
    char all_[room];
    std::mutex lock_;
};

} // namespace obase::audit
