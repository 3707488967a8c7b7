// SPDX-License-Identifier: MIT
//
// evacuation: chooses the runs of a tier that are evacuated in a window, and finds the slots of
// their objects.
//
// Objects leave a tier in the order of their slots, which is not that of their addresses: most
// runs would keep an object or two until the end of the window, and all that was moved would be
// resident twice. So runs are evacuated one after the other, with the objects that stay, and are
// decommitted before the next ones are begun. For that the slots of a run have to be known
// together:
//
//   note()     in the scan, for each object (note_staying() for several): how many are seen in each run, and how much would leave;
//   choose()   after it: the next runs worth evacuating, as many as there is memory for lists of
//              slots;
//   list()     in a second scan: the slots of the chosen runs;
//   slots()    of one chosen run.
//
// A run is chosen if something would leave it and no newborn object lies in it: after the scan the word of a
// newborn object cannot be told from that of a touched one. Or if it is so sparse that it should be empty, or much
// would leave it; with a newborn object in it, nothing in it counts as touched then. It is evacuated as a whole, with the objects that stay,
// if it should be empty, or if most of its objects were seen (what no slot points to cannot be moved) and that
// frees enough of it; else it is left with holes.
//
// Memory: 12 bytes per run, and a word per object of the chosen runs. Without it nothing is chosen, and
// less moves in the window.
//
// Threads: the collector. note() and list() run inside of visits: they allocate nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "heap/scratch_list.hpp"

namespace obase::collector {

// Slot: what the lists hold, a pointer type.
template <class Slot>
class evacuation {
  public:
    // Of the heap, about one run.
    struct run_state {
        std::size_t objects = 0; // handed out
        std::size_t bytes = 0;   // that they take
        std::size_t room = 0;    // that they could take
        bool compacted = false;  // is to be emptied, though nothing may leave
    };

    // Before a scan. False: no memory, and nothing will be chosen.
    // `least_gain`: the share of a run that has to be free, or leave, for what stays to be moved.
    bool begin(std::size_t runs, double least_gain) noexcept {
        most_staying_ = 1 - least_gain;
        noted_ = left_out_ = 0;
        next_ = 0;
        chosen_.clear();
        if (!tallies_.reserve(runs) || !chosen_.reserve(runs)) {
            end();
            return false;
        }
        tallies_.assign_zero(runs);
        return true;
    }

    // Frees all memory.
    void end() noexcept {
        tallies_.release();
        chosen_.release();
        lists_.release();
        next_ = 0;
    }

    // An object of the run was seen, `leaving` bytes of which are to go to another tier.
    void note(std::size_t run, std::size_t leaving, bool newborn) noexcept {
        if (run >= tallies_.size()) return; // begun since the scan
        tally& t = tallies_[run];
        ++noted_;
        ++t.objects;
        t.leaving += static_cast<std::uint32_t>(leaving);
        t.leaving_objects = static_cast<std::uint16_t>(t.leaving_objects + (leaving != 0));
        if (newborn) t.newborn = true;
    }

    // Objects of the run that were seen, none of them newborn, and that stay.
    void note_staying(std::size_t run, unsigned objects) noexcept {
        if (run >= tallies_.size()) return;
        noted_ += objects;
        tally& t = tallies_[run];
        t.objects = (t.objects + objects) & 0x7fff;
    }

    // The next runs, in the order of addresses, whose lists take at most `list_bytes`, or one run; of 0 none.
    // state_of(run) is the heap's run_state. Runs of which a part is to leave and the rest to stay make holes,
    // and may be left out. False: none is chosen, or there is no memory.
    template <class StateOf>
    bool choose(std::size_t list_bytes, StateOf&& state_of,
                bool holes_may_be_made = true) noexcept {
        for (const chosen& done : chosen_) tallies_[done.run].place = 0;
        chosen_.clear();
        lists_.release();
        if (list_bytes == 0) return false;
        std::size_t total = 0;
        for (; next_ < tallies_.size(); ++next_) {
            tally& t = tallies_[next_];
            if (t.objects == 0) continue;
            const run_state now = state_of(next_);
            const bool whole = now.compacted || worth_it(t, now);
            if ((t.leaving == 0 || t.newborn) && !now.compacted && !(whole && t.leaving >= much))
                continue;
            if (!whole && !holes_may_be_made) {
                left_out_ += t.leaving_objects;
                continue;
            }
            if (!chosen_.empty() && (total + t.objects) * sizeof(Slot) > list_bytes) break;
            chosen_.push_back({static_cast<std::uint32_t>(next_), t.objects, 0, whole, whole, total,
                               now.bytes, t.newborn != 0});
            t.place = static_cast<std::uint32_t>(chosen_.size());
            total += t.objects;
        }
        if (lists_.reserve(total)) {
            lists_.assign_zero(total);
        } else {
            for (const chosen& one : chosen_) tallies_[one.run].place = 0;
            chosen_.clear();
            next_ = tallies_.size();
        }
        return !chosen_.empty();
    }

    std::size_t noted() const noexcept { return noted_; } // objects, by note()
    // Objects that were to leave runs that choose() has left out.
    std::size_t left_out() const noexcept { return left_out_; }
    std::size_t list_bytes() const noexcept { return lists_.size() * sizeof(Slot); }
    std::size_t chosen_runs() const noexcept { return chosen_.size(); }
    std::size_t run(std::size_t i) const noexcept { return chosen_[i].run; }
    std::size_t bytes(std::size_t i) const noexcept { return chosen_[i].bytes; }
    bool is_chosen(std::size_t run) const noexcept {
        return run < tallies_.size() && tallies_[run].place != 0;
    }
    // Objects that stay in the tier are to be moved, too: nearly all objects of the run can move now.
    bool rest_moves(std::size_t i) const noexcept { return chosen_[i].whole && !chosen_[i].stuck; }
    void note_unmovable(std::size_t i, std::size_t objects) noexcept {
        chosen_[i].stuck = objects * few > chosen_[i].room;
    }
    // The run is to be emptied, objects that stay in the tier included.
    bool run_is_whole(std::size_t run) const noexcept {
        return is_chosen(run) && chosen_[tallies_[run].place - 1].whole;
    }
    // So much leaves the run, or has left it, that it was to be emptied when it was chosen.
    bool worth_emptying(std::size_t i) const noexcept { return chosen_[i].worth_emptying; }
    bool run_is_worth_emptying(std::size_t run) const noexcept {
        return is_chosen(run) && chosen_[tallies_[run].place - 1].worth_emptying;
    }
    // The run cannot be closed: what stays in it does so.
    void leave_rest(std::size_t i) noexcept { chosen_[i].whole = false; }
    // A newborn object was seen in the run since it was chosen.
    void note_birth(std::size_t i) noexcept { chosen_[i].born_since = true; }
    bool born_since(std::size_t i) const noexcept { return chosen_[i].born_since; }
    // The run has had its turn.
    void drop(std::size_t i) noexcept { tallies_[chosen_[i].run].place = 0; }

    // A slot whose object lies in the run. More than were noted find no room.
    void list(std::size_t run, Slot slot) noexcept {
        if (!is_chosen(run)) return;
        chosen& c = chosen_[tallies_[run].place - 1];
        if (c.listed < c.room) lists_[c.first + c.listed++] = slot;
    }
    std::span<const Slot> slots(std::size_t i) const noexcept {
        return {lists_.data() + chosen_[i].first, chosen_[i].listed};
    }
    // The slot moved with the object that it lies in.
    void relocate(std::size_t run, Slot from, Slot to) noexcept {
        if (!is_chosen(run)) return;
        const chosen& c = chosen_[tallies_[run].place - 1];
        Slot* const begin = lists_.data() + c.first;
        Slot* const found = std::find(begin, begin + c.listed, from);
        if (found != begin + c.listed) *found = to;
    }

  private:
    static constexpr std::size_t few = 16; // one in so many
    // Bytes that leave a run, for which it is worth to move newborn objects, too.
    static constexpr std::size_t much = heap::run_bytes / 8;

    struct tally {
        std::uint32_t leaving = 0; // bytes
        std::uint32_t place = 0;   // in chosen_, + 1; 0: not chosen
        std::uint16_t leaving_objects = 0;
        std::uint16_t objects : 15 = 0; // seen; at most 8192 fit
        std::uint16_t newborn : 1 = false;
    };
    struct chosen {
        std::uint32_t run;
        std::uint32_t room; // of its list
        std::uint32_t listed;
        bool whole;
        bool worth_emptying;
        std::size_t first; // of its list, in lists_
        std::size_t bytes; // of its objects
        bool born_since = false;
        bool stuck = false; // some objects cannot move in this window
    };

    bool worth_it(const tally& t, const run_state& now) const noexcept {
        const std::size_t staying = now.bytes - std::min<std::size_t>(now.bytes, t.leaving);
        return t.objects * std::size_t{4} >= now.objects * 3 &&
               static_cast<double>(staying) <= most_staying_ * static_cast<double>(now.room);
    }

    double most_staying_ = 0;  // share of a run
    std::size_t noted_ = 0;    // objects
    std::size_t left_out_ = 0; // objects
    std::size_t next_ = 0;     // runs before it have had their turn
    heap::scratch_list<tally> tallies_;
    heap::scratch_list<chosen> chosen_;
    heap::scratch_list<Slot> lists_;
};

} // namespace obase::collector
