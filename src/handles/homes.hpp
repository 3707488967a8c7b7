// SPDX-License-Identifier: MIT
//
// homes: which runs of homes are open, and what threads do with an address of one: translate, free, keep.
//
// A run is in one of three states, a byte that compiled code reads (obase_handles_away):
//   at_home   its objects are where they were born. Its slab serves it.
//   closing   likewise, but the collector is about to open it, or has just ended that: what is freed goes straight to
//             the run's list, under the run's lock, and not to a thread's cache.
//   open      it has a forwarding table; no thread allocates from it.
//
// at_home -> closing -> open -> closing -> at_home. Closing to open happens after a wait, so that a thread which finds
// at_home never meets a table; under the run's lock, so that a free is either in what the table is made from, or goes
// by the table.
//
// Where an object of an open run is, its word says: at its home; at its *alias*, the same place in the memory that was
// its home's and has been given another address (evacuator.hpp); or in the dense class. A translation touches the
// word as every dereference of a guide does. One thing is added: while the memory of a run is on its way to its alias
// (some microseconds, two system calls) the words say alias, and the alias is not ready; a thread that comes then waits.
// It is never given the home of an object whose page is going away, so it never faults on one.
//
// Host:
//   base(), bytes()               the range of homes
//   away(run)                     that byte, an atomic of P
//   table(run)                    an atomic pointer to forwarding_table<P>; only asked of runs that were opened once
//   in_alias(address), alias_ready(address)
//   much_used()                   a run was used as often as its table is to tell
//   clock_ns(), note_translation(ns)   a slow translation took so long, with the reading of the clock
//   free_to_run(home)             the block goes to its run's list
//   freed(home, address)          of an object that was at the address: its home, its alias, or a place of its own
// Templated on the platform; the tests run this text under the deterministic scheduler.
#pragma once

#include "handles/forwarding.hpp"
#include "os/waiting.hpp"

#include <obase/word/arming.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace obase::handles {

enum run_states : std::uint8_t { at_home, closing, open };

enum class free_result : std::uint8_t {
    done,
    no_object, // no block of an open run that was live, or one that was freed before
};

template <class P, class Host>
class homes {
  public:
    using table_type = forwarding_table<P>;
    using layout = word::arming;
    using lock = os::blocking_lock<P>;

    explicit homes(Host& host) noexcept : host_(host) {}

    // Any bit pattern. Precondition: inside a scope.
    std::uint64_t translate(std::uint64_t home) noexcept {
        const std::uint64_t offset = home - host_.base();
        if (offset >= host_.bytes()) return home; // an alias of the byte
        const std::size_t run = offset >> heap::run_shift;
        if (host_.away(run).load_acquire() != open) return home;
        table_type* const here = host_.table(run).load_acquire(); // pairs with the opening
        if (here == nullptr) return home;
        const std::uint32_t uses = here->note_use();
        if (uses % uses_timed == 0) [[unlikely]]
            return translate_timed(*here, home, uses);
        return translate_by(*here, home);
    }

    // As translate(), where that takes a few loads and nothing else; 0: it takes more. For translate.cpp.
    template <bool popcnt = false>
    static std::uint64_t translate_quickly(Host& host, std::uint64_t home) noexcept {
        const std::uint64_t offset = home - host.base();
        if (offset >= host.bytes()) return home;
        const std::size_t run = offset >> heap::run_shift;
        if (host.away(run).load_acquire() != open) return home;
        table_type* const here = host.table(run).load_acquire(); // pairs with the opening
        if (here == nullptr) return home;
        if (!here->note_use_but_each(uses_timed)) return 0;
        const std::size_t in_run = offset & (heap::run_bytes - 1);
        const std::size_t block = here->block_of(in_run);
        auto* const word = here->template word_of_block<popcnt>(block);
        if (word == nullptr) return home;
        std::uint64_t seen = word->load_acquire(); // pairs with publish()
        if (!layout::is_plain(seen)) {
            const std::uint64_t address = layout::address(seen);
            if (host.in_alias(address) && !host.alias_ready(address)) return 0;
            if (!word->cas_acq_rel(seen, address)) return 0; // R5
            seen = address;
        }
        if (seen == 0) return home; // freed
        return seen + (in_run - here->begin_of(block));
    }

    // As translate(), and the object's own current address; 0: the address is not in an open run's object.
    std::uint64_t translate_object(std::uint64_t home, std::uint64_t* begin_of_home) noexcept {
        const std::uint64_t offset = home - host_.base();
        const std::size_t in_run = offset & (heap::run_bytes - 1);
        table_type* const here = host_.table(offset >> heap::run_shift).load_acquire();
        if (here == nullptr) return 0;
        auto* const word = here->word_of(in_run);
        if (word == nullptr) return 0;
        *begin_of_home = home - (in_run - here->begin_of(here->block_of(in_run)));
        return current(*word);
    }

    // Of an object in a run that is not at_home. Precondition: inside a scope, which saw the state.
    free_result free(std::uint64_t home) noexcept {
        const std::uint64_t offset = home - host_.base();
        const std::size_t run = offset >> heap::run_shift;
        std::uint64_t old = 0;
        {
            const std::lock_guard hold(lock_of(run));
            table_type* const here = host_.table(run).load_acquire();
            if (here == nullptr) {
                host_.free_to_run(home);
                return free_result::done;
            }
            const std::size_t in_run = offset & (heap::run_bytes - 1);
            auto* const word = here->word_of(in_run);
            if (word == nullptr || here->begin_of(here->block_of(in_run)) != in_run)
                return free_result::no_object;
            old = word->exchange_acq_rel(0); // a publish of the mover fails from here on
            if (old == 0) return free_result::no_object;
            here->one_less();
        }
        host_.freed(home, layout::address(old));
        return free_result::done;
    }

    // Of the run's changes of state, and of frees in it. For fork: all of them.
    lock& lock_of(std::size_t run) noexcept { return locks_[run % lock_count]; }
    void lock_all() noexcept {
        for (lock& each : locks_) each.lock();
    }
    void unlock_all() noexcept {
        for (lock& each : locks_) each.unlock();
    }
    void unlock_all_in_child() noexcept {
        for (lock& each : locks_) each.unlock_in_child();
    }

    // The current address that the word has, touched; 0 if the object was freed.
    std::uint64_t current(typename table_type::word& word) noexcept {
        for (unsigned looks = 0;; ++looks) {
            std::uint64_t seen = word.load_acquire(); // pairs with publish()
            if (layout::is_plain(seen)) return seen;
            const std::uint64_t address = layout::address(seen);
            if (host_.in_alias(address) && !host_.alias_ready(address)) {
                looks < spins ? P::pause() : P::yield();
                continue;
            }
            if (word.cas_acq_rel(seen, address)) return address; // R5
        }
    }

    static constexpr std::uint32_t uses_timed = 128; // one of so many

  private:
    std::uint64_t translate_by(table_type& here, std::uint64_t home) noexcept {
        const std::size_t in_run = (home - host_.base()) & (heap::run_bytes - 1);
        auto* const word = here.word_of(in_run);
        if (word == nullptr) return home;
        const std::uint64_t now = current(*word);
        if (now == 0) return home; // freed
        return now + (in_run - here.begin_of(here.block_of(in_run)));
    }
    // How long it takes is mostly how far away the words are from the processor.
    [[gnu::noinline]] std::uint64_t translate_timed(table_type& here, std::uint64_t home,
                                                    std::uint32_t uses) noexcept {
        const std::uint64_t begun = host_.clock_ns();
        const std::uint64_t now = translate_by(here, home);
        host_.note_translation(host_.clock_ns() - begun);
        if (here.tells(uses)) host_.much_used();
        return now;
    }

    static constexpr std::size_t lock_count = 64;
    static constexpr unsigned spins = 1000;

    Host& host_;
    lock locks_[lock_count];
};

} // namespace obase::handles
