// SPDX-License-Identifier: MIT
//
// temperature: hot and cold for programs that nobody annotated. Which runs of homes are tracked (policy/turns.hpp), what
// their words say to the policy of the option `policy`, which objects move to which tier, and what the backend of the option
// `backend` hears.
//
// One window, in steps, so that threads that need the collector's lock get it in between:
//   looking   each tracked and each taken run is looked at (judging.hpp). Objects of taken runs move to where the policy
//             wants them; of tracked ones it is worked out what leaving would give.
//   leaving   tracked runs of which enough is cold are taken, as many as uses of them may cost. Their objects go to the tiers
//             that the policy says; those of which it says nothing go where what is in use lies.
//   ending    sparse runs of the tiers are compacted, homes of which all objects were freed go back, the policy gets
//             its facts and the backend its view.
// Between windows, in each tick, uses of tracked runs are counted and paid for, runs that were seen enough are paused, and
// others are opened.
//
// With a budget (the option memory; docs/temperature.md, "A budget") nothing leaves memory while the process is within it,
// and as much as is over it else; what is in use again stays in COLD's file while there is no room. Threads that allocate do
// not wait for it.
//
// It is there when the environment sets OBASE_MODE to observe, move or hint, and not in stress mode. Options that it
// reads: mode, window_seconds, time_scale, policy, backend, those of the policies, memory, cold_backing, cold_write_limit,
// compaction_live_fraction and the hints'.
//
// Threads: the collector, under its lock (native_handles::work); fork_child() in the child.
#pragma once

#include "backend/backend.hpp"
#include "backend/memory_budget.hpp"
#include "backend/tier_facts.hpp"
#include "backend/window_log.hpp"
#include "handles/judging.hpp"
#include "handles/native.hpp"
#include "policy/exchange_share.hpp"
#include "policy/placement.hpp"
#include "policy/turns.hpp"
#include "policy/write_credit.hpp"

#include <obase/options.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace obase::handles {

class temperature {
  public:
    // nullptr: the environment asks for none, or there is no memory for it.
    static temperature* from_environment(native_handles& all, const settings& own) noexcept;

    // What the heap must have.
    void ask_for(heap::space_options& heaps) const;
    void file_refused(const char* why) noexcept; // COLD lies in anonymous memory
    void heap_is_made() noexcept;

    // Of `wall_ns` the program could run for `program_ns`, with so many slow translations in runs whose objects have
    // left. Some times a second.
    void note_taken(std::uint64_t wall_ns, std::uint64_t program_ns, std::uint64_t uses) noexcept;
    // Time has passed. Each tick.
    void earn(std::uint64_t wall_ns) noexcept {
        earned_ns_ += static_cast<std::uint64_t>(running_ * static_cast<double>(wall_ns));
    }
    // Each tick, and when a tracked run is much used.
    void tick();
    // A window is under way, or due. Then steps are to follow each other.
    bool has_work() noexcept;
    void step();
    void fork_child() noexcept;

    // The run came home, since it was used, or foreign code reached it.
    void came_home(std::uint32_t run);
    // The object was moved there by a round, not by a window.
    void gathered(unsigned to, const mobility::moved_object& object) noexcept;
    void table_ends(const native_handles::table_type& table) noexcept { judge_.forget(table); }
    bool page_out(policy::tier_id id, std::uint64_t address) const noexcept;
    bool run_out(policy::tier_id id, std::size_t run) const noexcept {
        return log_.run_out(id, run);
    }
    void read_figures(obase_handles_figures& to) const noexcept;

  private:
    using table_type = native_handles::table_type;
    enum class phase : std::uint8_t { idle, looking, leaving, ending };
    struct turn {
        std::uint64_t uses = 0;     // in the window
        std::uint64_t all_uses = 0; // since the turn began
        std::uint64_t open_ns = 0;  // for how long it was open since then, until it was opened last
        std::uint64_t opened_ns = 0; // and when that was
        std::uint32_t objects = 0;
        std::uint8_t refused = 0; // takes
        bool seen = false;        // in the window: it was open for long enough, and is paused
    };
    struct placing;

    temperature(native_handles& all, const settings& own, options asked,
                std::unique_ptr<policy::placement> placement,
                std::unique_ptr<backend::backend> reclaim);

    bool moves() const noexcept { return options_.mode >= run_mode::move; }
    bool hints() const noexcept { return options_.mode == run_mode::hint; }
    std::uint64_t window_ns() const noexcept {
        return static_cast<std::uint64_t>(options_.scaled_window_seconds() * 1e9);
    }
    void count_uses();
    void pause(std::uint32_t run);
    void end_turn(std::uint32_t run);
    void open_more();
    bool may_be_tracked(std::uint32_t run) const noexcept;
    bool open_runs(std::vector<std::uint32_t>& runs);
    void begin_window();
    void look_at_some();
    void look_at_tracked(std::uint32_t run, table_type& table, turn& own);
    bool look_at_taken(table_type& table);
    void let_leave();
    void end_window();
    void compact();
    void tell_backend();
    backend::memory_budget budget_now() const noexcept {
        return backend::current_budget(options_.memory);
    }
    void note_use();
    bool leaves_file(unsigned from, unsigned to) const noexcept {
        return all_.space_->file_backed(from) && !all_.space_->file_backed(to);
    }
    bool may_return(std::uint64_t address) noexcept;

    native_handles& all_;
    const settings& own_;
    options options_;
    std::unique_ptr<policy::placement> placement_;
    std::unique_ptr<backend::backend> backend_;
    const policy::tier_table& tiers_;
    policy::tier_id promoted_;
    backend::window_log log_;
    backend::tier_facts tier_facts_;
    backend::window_view view_;
    word_judge<os::native_platform, native_handles> judge_;
    policy::turns turns_;
    policy::used_runs used_;
    std::unordered_map<std::uint32_t, turn> turns_of_;

    phase phase_ = phase::idle;
    std::uint64_t window_ended_ns_;
    std::vector<std::uint32_t> pending_; // in their turn, and not opened yet in this window
    std::vector<std::uint32_t> due_;     // runs to look at, or to let leave
    std::size_t at_ = 0;                 // of those
    std::vector<policy::tracked_run> ready_;
    std::array<std::array<std::uint64_t, policy::max_tiers>, policy::max_tiers> moved_bytes_{};
    double taken_price_ = 0; // of the program's time, smoothed
    double running_ = 1;     // part of the time in which the program could run, smoothed
    double translation_ns_ = translation_price::least_ns;
    std::uint64_t earned_ns_ = 0; // of the program's time, not passed to the turns yet
    policy::write_credit write_credit_{heap::max_dense_size};
    backend::memory_budget budget_; // when the window began
    policy::exchange_share exchange_share_;
    double still_over_ = 0;             // bytes over the budget after the last window
    std::uint64_t may_return_ = 0;      // bytes, from COLD's file to memory, in the window
    std::uint64_t refused_ = 0;         // bytes that were in use in it, and found no room
    std::uint64_t in_use_in_files_ = 0; // bytes of pages, in the last window
    std::uint64_t cpu_before_[2]{}, faults_before_[2]{}; // the collector's, the process's
    std::uint32_t threshold_ = 0;                        // C_t
    std::uint64_t would_ = 0; // bytes that are cold, of runs whose turn has ended; in mode observe
    std::uint64_t windows_ = 0, tracked_uses_ = 0, tracked_ever_ = 0;
};

} // namespace obase::handles
