// SPDX-License-Identifier: MIT
//
// evacuator: the collector's half of handles. It opens runs of homes, takes their memory away, and moves the survivors.
//
// A round, for runs that the caller chose, in this order and no other:
//   1. They are `closing`, and the slab closes them: nothing is allocated there any more.
//   2. Wait: every thread has polled, and blocks of theirs in thread caches have come back. From here on frees in these
//      runs go by the run's lock.
//   3. Under that lock: what is out is listed, each such object gets an armed word that says home, the run is `open`.
//   4. Wait, as the mover does after arming: no thread has a home address as a translation, but by having touched the
//      word since. Then the pins.
//   5. A run in which every word is still armed, or null, and nothing is pinned or kept, is *taken*: each word goes
//      from armed(home) to armed(alias) by publish(), the alias not being ready; then the pages move to the alias, in
//      one step for all threads, and the homes are inaccessible; then the alias is ready. Any touch in between has
//      failed a publish: the words go back, and nothing has happened. Those that are in use get another try or two,
//      and then their runs are closed again.
//   6. Objects move from the alias to the dense class, in the order of their homes, by the mover that moves all
//      objects of this library. No further wait: an armed word that only this thread has changed since step 4 has
//      not been touched. What is touched meanwhile stays at the alias until a later round.
//
// So when an object is copied its home is gone: nothing can be written there, by whomever, that the copy lacks; and when
// a thread is told of a new place nobody can read an old one. What foreign code does with a home that it should not
// have either comes before the pages move, and then it has moved with them, or it faults (faults.cpp).
//
// Coming home: in a moment in which no thread has a translation (threads.hpp), a run's objects are copied to scratch
// pages, which then replace the inaccessible ones in one step.
//
// Tracking: steps 1 to 3, and then the run stays open with its memory at home, for windows on end. Threads touch its
// words, and who looks at them (judging.hpp) arms them again, so that they tell how long each object has not been used.
// settle() goes on with step 4 for those that are to leave; the others are closed again. Of a tracked run no object
// has moved, so closing it needs no wait.
//
// Threads: one at a time, under the host's lock. It calls no user code, allocates with the runtime's own malloc.
//
// Host, besides what homes.hpp asks for:
//   close(runs)                     asks the slab for those whose state is `closing`
//   closed(run)                     it is closed, and its objects may move
//   for_each_out(run, visit)        visit(block); returns how many blocks it has had
//   block_size(run), home_of(run)   bytes; the address of the first block
//   kept(run)                       an object in it that is out must stay; a seq_cst load, see take()
//   reopen(run)                     closed -> in service
//   take_pages(run, alias)          false: nothing has happened
//   tables_may_shrink()     nobody keeps anything by the addresses of words
//   claim_alias(run) -> address, 0: none;  alias_is(address, ready);  leave_alias(address)
//   evacuated(run)                  its memory has gone
//   any_evacuating(), evacuating(address)   of the dense class: which objects are to move within it
//   release(run)                    evacuated -> empty, accessible, in service
//   put_back(run, copy_all, out)    evacuated -> closed: copy_all(scratch) fills the pages; false: nothing has happened
//   heap()                          of the mover, for current addresses
//   tier_of(address)                its class; of a home or an alias 0
//   moved(from, to, object)         what round() has moved between tiers; settle() tells its place instead
//   retired(table)                  its words will not be looked at again
#pragma once

#include "handles/homes.hpp"
#include "handles/threads.hpp"
#include "mobility/arming_mover.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace obase::handles {

// Where the mover's slots are, as it asks SODA: words of forwarding tables. No object contains one, and a table outlives
// every visit.
template <class P>
struct forwarding_words {
    std::ptrdiff_t copy_slots(const void*, void*, std::size_t) noexcept { return 0; }
    bool begin_visit(const void*) noexcept { return true; }
    void end_visit() noexcept {}
    void clear_unvisited(const void*, std::size_t) noexcept {}
};

struct round_result {
    std::uint64_t moved = 0;     // objects, to the dense class
    std::uint64_t compacted = 0; // objects, within it
    std::uint64_t vetoed = 0;    // objects in use
    std::uint64_t opened = 0;    // runs taken
    std::uint64_t reopened = 0;  // runs closed again
    std::uint64_t given_up = 0;  // waits
    void add(const round_result& other) noexcept {
        moved += other.moved;
        compacted += other.compacted;
        vetoed += other.vetoed;
        opened += other.opened;
        reopened += other.reopened;
        given_up += other.given_up;
    }
};

enum class home_result : std::uint8_t {
    done,
    pinned,
    gave_up, // the stop; asked again, it may be reached
    no_memory,
};

template <class P, class Host>
class evacuator {
  public:
    using threads_type = handles_threads<P, Host>;
    using homes_type = homes<P, Host>;
    using table_type = forwarding_table<P>;
    using record = handles_record<P>;
    using mover_type = mobility::arming_mover<P, typename Host::mover_heap, forwarding_words<P>>;
    using layout = word::arming;

    evacuator(Host& host, threads_type& threads, homes_type& objects)
        : host_(host), threads_(threads), homes_(objects),
          mover_(threads.all(), words_, host.heap()) {}

    // `tries`: how often a run is looked at before it is closed again. 0: it is taken in a moment in which no thread has
    // translations, so that only pins and what is kept can prevent it. `self` is not waited for. `give_up`
    // ends the waits, and `end_stop` that moment, in which other threads stand still.
    template <class GiveUp>
    round_result round(const std::uint32_t* runs, std::size_t count, record* self, unsigned tries,
                       GiveUp&& give_up) {
        return round(runs, count, self, tries, give_up, give_up);
    }
    template <class GiveUp, class EndStop>
    round_result round(const std::uint32_t* runs, std::size_t count, record* self, unsigned tries,
                       GiveUp&& give_up, EndStop&& end_stop) {
        round_result result;
        if (!open_runs(runs, count, self, give_up)) {
            result.given_up = 1;
            return result;
        }
        release_empty();
        arm_again();
        take_and_move(self, tries, give_up, end_stop, gathering{*this}, result);
        for (const opening& o : opening_) close_again(o.run);
        result.reopened += opening_.size();
        opening_.clear();
        return result;
    }

    // Tracking, and what is done in windows by who judges the words.

    // The number that stamps words. What is opened from now on is armed since the next one, which is whole.
    void begin_window() noexcept { ++window_; }
    std::uint64_t window() const noexcept { return window_; }

    // Opens the runs; those that could not be are at home. visit(run) for those that were. False: the wait was given up.
    template <class GiveUp, class Visit>
    bool track(const std::uint32_t* runs, std::size_t count, record* self, GiveUp&& give_up,
               Visit&& visit) {
        tracked_.reserve(tracked_.size() + count);
        if (!open_runs(runs, count, self, give_up)) return false;
        release_empty();
        const std::size_t first = tracked_.size();
        for (const opening& o : opening_) tracked_.push_back(o.run);
        opening_.clear();
        for (std::size_t i = first; i < tracked_.size(); ++i) visit(tracked_[i]);
        return true;
    }
    // The run is at home, and no longer tracked.
    void stop_tracking(std::uint32_t run) {
        if (!forget_tracked(run)) return;
        make_room_to_retire();
        close_again(run);
    }
    // In the child of a fork, when the slab has put closed runs back in service: nothing in a tracked run has moved, so it
    // is at home, and threads of the child allocate there.
    void forget_tracked_in_child() noexcept {
        for (const std::uint32_t run : tracked_) {
            table_type* const table = host_.table(run).load_acquire();
            host_.table(run).store_release(nullptr);
            host_.away(run).store_seq_cst(at_home);
            free_what_was_freed(run, *table);
            host_.retired(*table);
            try {
                make_room_to_retire();
                retired_.push_back(table);
            } catch (const std::bad_alloc&) { // it stays
            }
        }
        tracked_.clear();
    }
    // The run is at home, its table is kept for what it says, and for track(), which goes on with it. The objects that
    // are out then, of those that had a word, are as old as they were at the last look.
    void pause_tracking(std::uint32_t run) {
        if (!is_tracked(run)) return;
        table_type* const table = host_.table(run).load_acquire();
        paused_.insert_or_assign(run, paused{table, window_});
        forget_tracked(run);
        {
            const std::lock_guard hold(homes_.lock_of(run));
            free_what_was_freed(run, *table);
            host_.table(run).store_release(nullptr);
            host_.away(run).store_seq_cst(closing);
        }
        abandon(run);
    }
    // Of a paused run; null: it is none. Threads may be in it still, until a wait.
    table_type* paused_table(std::uint32_t run) const noexcept {
        const auto found = paused_.find(run);
        return found == paused_.end() ? nullptr : found->second.table;
    }
    void looked_at_paused(std::uint32_t run) noexcept {
        if (const auto found = paused_.find(run); found != paused_.end())
            found->second.window = window_;
    }
    void drop_paused(std::uint32_t run) {
        const auto found = paused_.find(run);
        if (found == paused_.end()) return;
        make_room_to_retire();
        host_.retired(*found->second.table);
        retired_.push_back(found->second.table);
        paused_.erase(found);
    }
    // Of the tracked runs takes these, as far as they are still; the others stay tracked. And moves what `place` says,
    // whose words have been armed before. `tries` as in round().
    //
    // Place: wants(run, at_alias), whether visit() is to be asked, at_alias if an object is still there; visit(table, run, move) calls move(word, seen, target) for armed
    // words; moved(tier, target, moved_object) for those that did, `tier` being the one that the object was in.
    template <class GiveUp, class EndStop, class Place>
    round_result settle(const std::uint32_t* runs, std::size_t count, record* self, unsigned tries,
                        GiveUp&& give_up, EndStop&& end_stop, Place&& place) {
        round_result result;
        taken_.reserve(taken_.size() + count);
        opening_.clear();
        opening_.reserve(count);
        for (std::size_t i = 0; i < count; ++i)
            if (is_tracked(runs[i])) opening_.push_back({runs[i]});
        compacts_ = host_.any_evacuating();
        take_and_move(self, tries, give_up, end_stop, place, result);
        opening_.clear();
        return result;
    }

    template <class Visit>
    void for_each_tracked(Visit&& visit) const {
        for (const std::uint32_t run : tracked_) visit(run);
    }
    std::size_t tracked() const noexcept { return tracked_.size(); }
    bool is_tracked(std::uint32_t run) const noexcept {
        table_type* const table = host_.table(run).load_acquire();
        return table != nullptr && !table->is_taken();
    }

    // Precondition: no thread has a translation, but for pins.
    home_result come_home(std::size_t run, std::uint64_t* objects) {
        table_type* const table = host_.table(run).load_acquire();
        if (table == nullptr) return home_result::done;
        make_room_to_retire();
        mobility::collect_pins(threads_.all(), pinned_);
        block_set out;
        bool pinned = false;
        table->for_each([&](auto& word, std::size_t block) {
            const std::uint64_t now = layout::address(word.load_acquire());
            pinned = pinned || (now != 0 && mobility::is_pinned(pinned_, now));
            if (now != 0) out.set(block);
        });
        if (!table->is_taken()) { // the memory is at home; with a pin in it the run stays tracked
            if (!pinned) stop_tracking(static_cast<std::uint32_t>(run));
            return home_result::done;
        }
        if (pinned) return home_result::pinned;
        const auto copy_all = [&](char* scratch) {
            table->for_each([&](auto& word, std::size_t block) {
                const std::uint64_t now = layout::address(word.load_acquire());
                if (now == 0) return;
                const auto* const from = reinterpret_cast<const void*>(now);
                using mobility::racy_copy; // or a test's
                racy_copy(scratch + table->begin_of(block), from, host_.heap().info(from).size);
            });
        };
        {
            const std::lock_guard hold(homes_.lock_of(run));
            if (!host_.put_back(run, copy_all, out)) return home_result::no_memory;
            table->for_each([&](auto& word, std::size_t block) {
                const std::uint64_t now = layout::address(word.load_acquire());
                if (now == 0) return;
                ++*objects;
                if (!host_.in_alias(now)) host_.free_dense(now);
                word.store_release(host_.home_of(run) + table->begin_of(block));
            });
            unpublish(run, table);
        }
        forget_taken(run);
        host_.reopen(run);
        host_.away(run).store_seq_cst(at_home);
        return home_result::done;
    }

    // Of runs whose memory is gone. visit(run).
    template <class Visit>
    void for_each_taken(Visit&& visit) const {
        for (const taken_run& t : taken_) visit(t.run);
    }
    std::size_t taken() const noexcept { return taken_.size(); }
    std::size_t table_memory_bytes() const noexcept { return table_memory_.bytes(); }
    std::size_t table_bytes() const noexcept {
        std::size_t bytes = 0;
        for (const taken_run& t : taken_)
            if (table_type* const table = host_.table(t.run).load_acquire(); table != nullptr)
                bytes += table->bytes();
        for (const std::uint32_t run : tracked_) bytes += host_.table(run).load_acquire()->bytes();
        for (const auto& each : paused_) bytes += each.second.table->bytes();
        return bytes;
    }

  private:
    struct opening {
        std::uint32_t run;
    };
    struct taken_run {
        std::uint32_t run;
        std::uint64_t alias; // 0: all of its objects have left it
    };

    // What round() moves: what is still at its alias, and what is in sparse runs of dense classes.
    struct gathering {
        evacuator& all;
        bool wants(std::uint32_t, bool at_alias) const noexcept {
            return at_alias || all.compacts_;
        }
        template <class Move>
        void visit(table_type& table, std::uint32_t, Move&& move) const {
            table.for_each([&](auto& word, std::size_t) {
                const std::uint64_t seen = word.load_acquire();
                const std::uint64_t address = layout::address(seen);
                if (layout::is_armed(seen) && all.leaves(address))
                    move(word, seen,
                         all.host_.in_alias(address) ? Host::target_class
                                                     : all.host_.tier_of(address));
            });
        }
        void moved(unsigned from, unsigned to,
                   const mobility::moved_object& object) const noexcept {
            all.host_.moved(from, to, object);
        }
    };

    // Steps 1 to 3. False: the wait was given up, and all are at home.
    template <class GiveUp>
    bool open_runs(const std::uint32_t* runs, std::size_t count, record* self, GiveUp& give_up) {
        make_tables_smaller();
        std::vector<table_type*> due;
        // All the memory that lists of runs need, before a run has left its state.
        due.reserve(retired_.size() + taken_.size() + count);
        taken_.reserve(taken_.size() + count);
        opening_.reserve(count);
        close(runs, count);
        due.swap(retired_);
        if (threads_.wait(self, true, give_up) != mobility::wait_result::done) {
            retired_.insert(retired_.end(), due.begin(), due.end());
            for (const opening& o : opening_) abandon(o.run);
            opening_.clear();
            return false;
        }
        for (table_type* const table : due)
            table->destroy(table_memory_); // no thread is in one any more
        std::erase_if(opening_, [&](const opening& o) { return !open_run(o.run); });
        return true;
    }

    // Steps 4 to 6 of those in opening_; what could not be taken stays there.
    template <class GiveUp, class EndStop, class Place>
    void take_and_move(record* self, unsigned tries, GiveUp& give_up, EndStop& end_stop,
                       Place&& place, round_result& result) {
        if (tries == 0) {
            take_in_a_stop(self, end_stop, result);
            tries = 1; // for what is to leave besides
        }
        for (unsigned left = std::max(tries, 1U); left != 0; --left) {
            if (threads_.wait_for(mover_, self, give_up) != mobility::wait_result::done) {
                result.given_up = 1;
                break;
            }
            std::erase_if(opening_,
                          [&](const opening& o) { return take(o.run, left > 1, result); });
            move_out(place, result);
            if (opening_.empty()) break;
        }
    }

    // Of taken runs of which an eighth of the objects was freed since, or whose tables lie between gaps: tables that have
    // words of what is left only. A thread that is in the old one touches a word there of which the new one has a copy; what
    // it gets by that it has until its next poll. So this comes before a wait, and nothing is moved until it is over.
    void make_tables_smaller() {
        if (!host_.tables_may_shrink()) return;
        for (const taken_run& t : taken_) {
            table_type* const table = host_.table(t.run).load_acquire();
            if (8 * table->live() > 7 * table->size() && !table->lies_between_gaps(table_memory_))
                continue;
            make_room_to_retire();
            const std::lock_guard hold(homes_.lock_of(t.run)); // none is freed meanwhile
            block_set live;
            table->for_each([&](auto& word, std::size_t block) {
                if (word.load_acquire() != 0) live.set(block);
            });
            if (live.none()) continue; // the run is about to be released
            const std::size_t size = table->block_size();
            table_type* const smaller =
                table_type::make(table_memory_, size, heap::run_bytes / size, live, true);
            if (smaller == nullptr) return;
            smaller->for_each([&](auto& word, std::size_t block) {
                word.store_relaxed(table->word_of(table->begin_of(block))->load_acquire());
            });
            smaller->set_taken(true);
            host_.table(t.run).store_release(smaller); // pairs with translate()
            retired_.push_back(table);
        }
    }

    void make_room_to_retire() {
        if (retired_.size() == retired_.capacity()) retired_.reserve(2 * retired_.size() + 1);
    }
    bool forget_tracked(std::uint32_t run) { return std::erase(tracked_, run) != 0; }

    void close(const std::uint32_t* runs, std::size_t count) {
        opening_.clear();
        for (std::size_t i = 0; i < count; ++i) host_.away(runs[i]).store_seq_cst(closing);
        host_.close();
        for (std::size_t i = 0; i < count; ++i) {
            if (host_.closed(runs[i]))
                opening_.push_back({runs[i]});
            else
                host_.away(runs[i]).store_seq_cst(at_home);
        }
    }

    // Closing, without a table -> at home.
    void abandon(std::uint32_t run) {
        host_.reopen(run);
        host_.away(run).store_seq_cst(at_home);
    }

    bool open_run(std::uint32_t run) {
        bool opened = false;
        {
            const std::lock_guard hold(homes_.lock_of(run));
            block_set live;
            const std::size_t blocks =
                host_.for_each_out(run, [&](std::size_t block) { live.set(block); });
            if (live.any() && !host_.kept(run)) {
                table_type* const table = table_of(run, blocks, live);
                if (table != nullptr) {
                    host_.table(run).store_release(table); // pairs with translate()
                    host_.away(run).store_seq_cst(open);
                    opened = true;
                }
            }
        }
        if (!opened) abandon(run);
        end_paused(run);
        return opened;
    }

    // For the blocks that are out: the table of before the pause, if they are the same, or a new one with what that one
    // said. Behind a wait no thread is in the old one, and none in the new one yet.
    table_type* table_of(std::uint32_t run, std::size_t blocks, const block_set& live) {
        const auto found = paused_.find(run);
        table_type* const before = found == paused_.end() ? nullptr : found->second.table;
        const std::uint64_t looked = before == nullptr ? 0 : found->second.window;
        const std::size_t size = host_.block_size(run);
        if (before != nullptr && before->block_size() == size && has_words_of(*before, live)) {
            paused_.erase(found);
            before->for_each([&](auto& word, std::size_t) {
                const std::uint64_t seen = word.load_relaxed();
                if (seen != 0) word.store_relaxed(as_old(seen, looked));
            });
            before->forget_uses();
            return before;
        }
        table_type* const table =
            table_type::make(table_memory_, size, blocks, live, host_.tables_may_shrink());
        if (table == nullptr) return nullptr;
        const bool knows = before != nullptr && before->block_size() == size;
        if (knows) table->looks = before->looks;
        table->for_each([&](auto& word, std::size_t block) {
            const std::size_t offset = table->begin_of(block);
            auto* const old = knows ? before->word_of(offset) : nullptr;
            const std::uint64_t seen = old == nullptr ? 0 : old->load_relaxed();
            word.store_relaxed(seen != 0
                                   ? as_old(seen, looked)
                                   : layout::make_armed(host_.home_of(run) + offset, window_ + 1));
        });
        return table;
    }
    // Windows in which nobody could see a touch make nothing older.
    std::uint64_t as_old(std::uint64_t seen, std::uint64_t looked) const noexcept {
        const std::uint64_t address = layout::address(seen);
        if (!layout::is_armed(seen)) return layout::make_armed(address, window_ + 1);
        return layout::make_armed(address, window_ - layout::age(seen, looked));
    }
    // And no others: a word of what was freed means that its block is to go back.
    static bool has_words_of(table_type& table, const block_set& live) {
        bool same = table.size() == live.count();
        table.for_each([&](auto& word, std::size_t block) {
            same = same && word.load_relaxed() != 0 && live.test(block);
        });
        return same;
    }
    void end_paused(std::uint32_t run) {
        const auto found = paused_.find(run);
        if (found == paused_.end()) return;
        host_.retired(*found->second.table);
        found->second.table->destroy(table_memory_);
        paused_.erase(found);
    }

    // For runs that are always in use. Threads wait in their polls for some ten microseconds for each run.
    template <class EndStop>
    void take_in_a_stop(record* self, EndStop& end_stop, round_result& result) {
        if (!threads_.stop(self, end_stop)) return;
        try {
            mobility::collect_pins(threads_.all(), pinned_);
        } catch (const std::bad_alloc&) {
            threads_.go_on();
            return;
        }
        std::erase_if(opening_, [&](const opening& o) {
            bool pinned = false;
            host_.table(o.run).load_acquire()->for_each([&](auto& word, std::size_t) {
                const std::uint64_t seen = word.load_acquire();
                pinned = pinned || mobility::is_pinned(pinned_, layout::address(seen));
                if (layout::is_plain(seen) && seen != 0) word::arm(word, seen, window_ + 1);
            });
            return !pinned && take(o.run, false, result);
        });
        threads_.go_on();
    }

    // After the wait. True: the run is taken.
    bool take(std::uint32_t run, bool again, round_result& result) {
        table_type* const table = host_.table(run).load_acquire();
        const std::uint64_t home = host_.home_of(run);
        std::uint64_t vetoes = 0;
        bool pinned = false;
        table->for_each([&](auto& word, std::size_t) {
            const std::uint64_t seen = word.load_acquire();
            if (layout::is_null(seen)) return;
            pinned = pinned || mover_.pinned(layout::address(seen));
            if (!layout::is_armed(seen)) ++vetoes;
        });
        std::uint64_t alias = 0;
        // Before kept() is asked: who keeps an object says so before it asks whether the run is taken.
        table->set_taken(true);
        if (vetoes == 0 && !pinned && !host_.kept(run)) alias = host_.claim_alias(run);
        if (alias != 0 && move_to_alias(*table, run, home, alias)) {
            forget_tracked(run);
            taken_.push_back({run, alias});
            ++result.opened;
            return true;
        }
        table->set_taken(false);
        if (alias != 0) host_.leave_alias(alias);
        result.vetoed += vetoes;
        if (again)
            table->for_each([&](auto& word, std::size_t) {
                const std::uint64_t seen = word.load_acquire();
                if (layout::is_plain(seen) && seen != 0) word::arm(word, seen, window_ + 1);
            });
        return false;
    }

    bool move_to_alias(table_type& table, std::uint32_t run, std::uint64_t home,
                       std::uint64_t alias) {
        host_.alias_is(alias, false);
        bool touched = false;
        table.for_each([&](auto& word, std::size_t) {
            const std::uint64_t seen = word.load_acquire();
            if (touched || layout::is_null(seen)) return;
            if (layout::is_armed(seen) && word::publish(word, seen, seen - home + alias)) return;
            touched = word.load_acquire() != 0; // else it was freed
        });
        if (!touched && host_.take_pages(run, alias)) {
            host_.evacuated(run);
            host_.alias_is(alias, true);
            return true;
        }
        // Threads that found the alias wait until it is ready, or the word another one: none was touched.
        table.for_each([&](auto& word, std::size_t) {
            const std::uint64_t seen = word.load_acquire();
            if (layout::is_armed(seen) && host_.in_alias(layout::address(seen)))
                word::publish(word, seen, seen - alias + home);
        });
        return false;
    }

    // Objects that are to move on, and whose words have been armed since before the last wait.
    template <class Place>
    void move_out(Place&& place, round_result& result) {
        for (taken_run& t : taken_) {
            if (!place.wants(t.run, t.alias != 0)) continue;
            table_type* const table = host_.table(t.run).load_acquire();
            if (table == nullptr) continue;
            place.visit(*table, t.run, [&](auto& word, std::uint64_t seen, unsigned target) {
                mobility::moved_object moved;
                const std::uint64_t address = layout::address(seen);
                const unsigned tier = host_.tier_of(address);
                if (mover_.move({&word, seen, target}, window_, moved) !=
                    mobility::move_result::moved)
                    return;
                ++(host_.in_alias(address) ? result.moved : result.compacted);
                place.moved(tier, target, moved);
            });
            if (t.alias != 0 && !any_at_alias(*table)) {
                host_.leave_alias(t.alias);
                t.alias = 0;
            }
        }
    }
    bool any_at_alias(table_type& table) const {
        bool any = false;
        table.for_each([&](auto& word, std::size_t) {
            any = any || host_.in_alias(layout::address(word.load_acquire()));
        });
        return any;
    }

    // True for an object that is to move on: it is still at its alias, or in a sparse run of the dense class.
    bool leaves(std::uint64_t address) const noexcept {
        return host_.in_alias(address) || (compacts_ && host_.evacuating(address));
    }

    // Of those, what was in use gets another chance.
    void arm_again() {
        compacts_ = host_.any_evacuating();
        for (const taken_run& t : taken_) {
            if (t.alias == 0 && !compacts_) continue;
            host_.table(t.run).load_acquire()->for_each([&](auto& word, std::size_t) {
                const std::uint64_t seen = word.load_acquire();
                if (layout::is_plain(seen) && seen != 0 && leaves(seen))
                    word::arm(word, seen, window_ + 1);
            });
        }
    }

    // An open run whose memory did not go -> at home.
    void close_again(std::uint32_t run) {
        table_type* const table = host_.table(run).load_acquire();
        {
            const std::lock_guard hold(homes_.lock_of(run));
            free_what_was_freed(run, *table);
            unpublish(run, table);
        }
        abandon(run);
    }
    // The run's lock is held.
    void free_what_was_freed(std::uint32_t run, table_type& table) {
        table.for_each([&](auto& word, std::size_t block) {
            if (word.load_acquire() == 0)
                host_.free_to_run(host_.home_of(run) + table.begin_of(block));
        });
    }

    // Taken runs of which all objects were freed.
    void release_empty() {
        std::erase_if(taken_, [&](const taken_run& t) {
            table_type* const table = host_.table(t.run).load_acquire();
            {
                const std::lock_guard hold(homes_.lock_of(t.run));
                if (table->live() != 0) return false;
                unpublish(t.run, table);
            }
            if (t.alias != 0) host_.leave_alias(t.alias);
            host_.away(t.run).store_seq_cst(at_home); // before a thread can allocate there
            host_.release(t.run);
            return true;
        });
    }

    // The run's lock is held.
    void unpublish(std::uint32_t run, table_type* table) {
        host_.table(run).store_release(nullptr);
        host_.away(run).store_seq_cst(closing);
        host_.retired(*table);
        retired_.push_back(table);
    }
    void unpublish(std::size_t run, table_type* table) {
        unpublish(static_cast<std::uint32_t>(run), table);
    }
    void close_again(std::size_t run) { close_again(static_cast<std::uint32_t>(run)); }

    void forget_taken(std::size_t run) {
        std::erase_if(taken_, [&](const taken_run& t) {
            if (t.run != run) return false;
            if (t.alias != 0) host_.leave_alias(t.alias);
            return true;
        });
    }

    Host& host_;
    threads_type& threads_;
    homes_type& homes_;
    forwarding_words<P> words_;
    mover_type mover_;
    table_memory table_memory_;
    std::vector<opening> opening_;
    std::vector<taken_run> taken_;
    std::vector<std::uint32_t> tracked_; // open, and their memory is at home
    struct paused {
        table_type* table;
        std::uint64_t window; // of the last look
    };
    std::unordered_map<std::uint32_t, paused> paused_; // at home, and their tables wait
    std::vector<table_type*>
        retired_; // threads may be in them until a wait that begins now has ended
    std::vector<std::uint64_t> pinned_;
    std::uint64_t window_ = 0;
    bool compacts_ = false;
};

} // namespace obase::handles
