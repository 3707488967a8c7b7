// SPDX-License-Identifier: MIT
#include "handles/temperature.hpp"

#include "backend/backends.hpp"
#include "heap/slab_functions.hpp"
#include "os/bus_error.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"
#include "policy/policies.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>
#include <string>
#include <utility>

namespace obase::handles {

namespace {

constexpr std::size_t looks_in_a_step = 256; // runs
constexpr std::size_t takes_in_a_step = 64;
constexpr std::size_t takes_in_a_stop = 16;
constexpr unsigned tries = 3; // to take a run, and to move what is in use
constexpr std::uint8_t stubborn = 3;
constexpr double fullest_room =
    0.75; // runs with a smaller part in use are not tracked: they are gathered
constexpr std::size_t compacted_bytes = 32U << 20; // of a tier, in a window
constexpr double spent_on_leaving = 0.75;          // of what uses may cost before runs come home
constexpr double weight_of_a_look = 0.3;           // at uses
constexpr double opens_until = 0.75;               // of a window
constexpr std::uint32_t windows_beyond_threshold = 3;
constexpr std::uint32_t shortest_turn = 8; // of a policy without a threshold

void say(const std::string& line) { std::fprintf(stderr, "obase: %s\n", line.c_str()); }

std::uint64_t since(std::uint64_t& before, std::uint64_t now) noexcept {
    const std::uint64_t passed = now > before ? now - before : 0;
    before = now;
    return passed;
}

} // namespace

temperature* temperature::from_environment(native_handles& all, const settings& own) noexcept try {
    const options asked = options::from_environment();
    if (asked.origin("mode") != option_origin::environment || asked.mode == run_mode::off)
        return nullptr;
    std::string why;
    std::unique_ptr<policy::placement> placement = policy::make_policy(asked, ~0U, &why);
    if (placement == nullptr) {
        say(why + "; objects are placed by 'papers'");
        placement = policy::make_policy(options(), ~0U, &why);
    }
    std::unique_ptr<backend::backend> reclaim = backend::make_backend(asked.backend, say, &why);
    if (reclaim == nullptr) {
        say(why + "; 'kernel' is told");
        reclaim = backend::make_backend(options().backend, say, &why);
    }
    if (placement == nullptr || reclaim == nullptr) return nullptr;
    return new temperature(all, own, asked, std::move(placement), std::move(reclaim));
} catch (const std::exception&) {
    return nullptr;
}

temperature::temperature(native_handles& all, const settings& own, options asked,
                         std::unique_ptr<policy::placement> placement,
                         std::unique_ptr<backend::backend> reclaim)
    : all_(all), own_(own), options_(std::move(asked)), placement_(std::move(placement)),
      backend_(std::move(reclaim)), tiers_(placement_->tiers()),
      promoted_(static_cast<policy::tier_id>(std::countr_zero(
          tiers_.with(&policy::tier::promoted_to) | policy::tier_mask{1} << dense_class))),
      log_(tiers_), tier_facts_(tiers_), judge_(all, *placement_),
      turns_({.share = own.track, .leaves = spent_on_leaving * own.used.share}),
      used_({.share = own.track}), window_ended_ns_(os::monotonic_ns()),
      threshold_(static_cast<std::uint32_t>(options_.cold_threshold)) {}

void temperature::ask_for(heap::space_options& heaps) const {
    heaps.classes = tiers_.count();
    heaps.file_classes = tiers_.with(&policy::tier::file_backed);
    if (heaps.file_classes != 0) heaps.cold_directory = std::string(options_.cold_directory());
}

void temperature::file_refused(const char* why) noexcept try {
    say(std::string("COLD stays in anonymous memory: ") + why);
    options_.cold_backing = "anon";
} catch (const std::bad_alloc&) {
}

void temperature::heap_is_made() noexcept try {
    const heap::space& heaps = all_.space();
    const std::string file = "the file under COLD in " + std::string(options_.cold_directory());
    for (unsigned cls = 0; cls < heaps.classes(); ++cls) {
        if (!heaps.file_backed(cls)) continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(heaps.range_begin(cls));
        os::end_on_bus_error(begin, begin + heaps.range_bytes(), file.c_str());
    }
} catch (const std::bad_alloc&) {
}

// Tracking, between windows.

void temperature::note_taken(std::uint64_t wall_ns, std::uint64_t program_ns,
                             std::uint64_t uses) noexcept {
    const double per_second = static_cast<double>(uses) * 1e9 / static_cast<double>(program_ns);
    taken_price_ += weight_of_a_look * (turns_.price_of(per_second) - taken_price_);
    running_ += weight_of_a_look *
                (static_cast<double>(program_ns) / static_cast<double>(wall_ns) - running_);
}

void temperature::tick() {
    count_uses();
    if (phase_ == phase::idle) open_more();
}

// What tracked runs cost is paid. Who was seen enough is paused; who costs too much, too.
void temperature::count_uses() {
    translation_ns_ = all_.price_.ns();
    turns_.set_price(translation_ns_);
    used_.set_price(translation_ns_);
    std::vector<policy::used_run> runs;
    std::vector<std::uint32_t> enough;
    std::uint64_t uses = 0;
    all_.evacuator_.for_each_tracked([&](std::uint32_t run) {
        table_type& table = *all_.tables_[run].load_acquire();
        const std::uint32_t now = table.uses();
        table.forget_uses();
        turn& own = turns_of_[run];
        own.uses += now;
        own.all_uses += now;
        uses += now;
        if (own.uses >= policy::turns::enough(table.live()))
            enough.push_back(run);
        else
            runs.push_back({run, now});
    });
    tracked_uses_ += uses;
    const std::uint64_t elapsed = std::exchange(earned_ns_, 0);
    turns_.pass(elapsed, uses);
    for (const std::uint32_t run : enough) pause(run);
    if (turns_.credit_ns() >= 0) return;
    used_.choose(runs, elapsed, runs.size());
    for (const policy::used_run& r : runs) pause(r.number);
}

void temperature::pause(std::uint32_t run) {
    turn& own = turns_of_[run];
    own.open_ns += os::monotonic_ns() - own.opened_ns;
    own.seen = true;
    all_.evacuator_.pause_tracking(run);
}

void temperature::end_turn(std::uint32_t run) {
    all_.evacuator_.stop_tracking(run);
    all_.evacuator_.drop_paused(run);
    turns_.rest(run);
    turns_of_.erase(run);
}

// First those in their turn, and when all of these have been opened, others. Not at the end of a window, when too
// little would be seen.
void temperature::open_more() {
    if (all_.blind_.load_seq_cst() != 0 || all_.mappings_are_used_up() || turns_.may_open() == 0)
        return;
    const std::uint64_t passed = os::monotonic_ns() - window_ended_ns_;
    if (static_cast<double>(passed) > opens_until * static_cast<double>(window_ns())) return;
    std::vector<std::uint32_t> runs;
    while (!pending_.empty() && runs.size() < turns_.may_open()) {
        const std::uint32_t run = pending_.back();
        pending_.pop_back();
        if (all_.evacuator_.paused_table(run) == nullptr) continue; // it became another one's
        if (may_be_tracked(run))
            runs.push_back(run);
        else
            end_turn(run);
    }
    turns_.next(
        static_cast<std::uint32_t>(all_.space_->slabs().runs()),
        [&](std::uint32_t run) { return !turns_of_.contains(run) && may_be_tracked(run); }, runs);
    if (!runs.empty() && all_.threads_are_known(0)) open_runs(runs);
}

bool temperature::may_be_tracked(std::uint32_t run) const noexcept {
    heap::slab_heap<native>& slabs = all_.space_->slabs();
    if (all_.away(run).load_relaxed() != at_home || slabs.is_free(run) || slabs.is_current(run) ||
        !all_.is_movable(reinterpret_cast<const void*>(all_.home_of(run))))
        return false;
    const std::size_t room = slabs.room_in_memory(run);
    const std::size_t used = std::size_t{slabs.blocks_in_use(run)} * slabs.block_size(run);
    return room != 0 && static_cast<double>(used) >= fullest_room * static_cast<double>(room);
}

// Those that cannot be opened, because something in them is kept, or they are filled again, lose their turn.
bool temperature::open_runs(std::vector<std::uint32_t>& runs) {
    if (!all_.commit_tables(all_.space_->slabs().runs())) return false;
    std::sort(runs.begin(), runs.end());
    // One run alone may take what all of them may in a tick.
    const double in_a_tick = own_.track * static_cast<double>(own_.tick_ms) * 1e6 / translation_ns_;
    const auto each = std::bit_ceil(static_cast<std::uint32_t>(
        std::clamp(in_a_tick, double{native_handles::homes_type::uses_timed}, 1e9)));
    const std::uint64_t now = os::monotonic_ns();
    const bool waited = all_.evacuator_.track(
        runs.data(), runs.size(), nullptr, all_.while_waiting(), [&](std::uint32_t run) {
            table_type& table = *all_.tables_[run].load_acquire();
            table.tell_each(each);
            const auto [own, begins] = turns_of_.try_emplace(run);
            if (begins) {
                own->second.objects = static_cast<std::uint32_t>(table.live());
                ++tracked_ever_;
            }
            own->second.opened_ns = now;
            own->second.seen = false;
        });
    turns_.opened();
    if (!waited) return false;
    for (const std::uint32_t run : runs)
        if (!all_.evacuator_.is_tracked(run)) end_turn(run);
    return true;
}

// Windows.

bool temperature::has_work() noexcept {
    return phase_ != phase::idle || os::monotonic_ns() - window_ended_ns_ >= window_ns();
}

void temperature::step() {
    switch (phase_) {
    case phase::idle:
        begin_window();
        break;
    case phase::looking:
        look_at_some();
        break;
    case phase::leaving:
        let_leave();
        break;
    case phase::ending:
        phase_ = phase::idle;
        end_window();
        break;
    }
}

void temperature::begin_window() {
    heap::space& heaps = *all_.space_;
    due_.clear();
    at_ = 0;
    ready_.clear();
    moved_bytes_ = {};
    // Runs that others have closed have no turn any more. One that was not opened in this window is not looked at.
    std::erase_if(turns_of_, [&](const auto& each) {
        return !all_.evacuator_.is_tracked(each.first) &&
               all_.evacuator_.paused_table(each.first) == nullptr;
    });
    for (const auto& [run, own] : turns_of_)
        if (own.seen || all_.evacuator_.is_tracked(run)) due_.push_back(run);
    std::sort(due_.begin(), due_.end());
    all_.evacuator_.for_each_taken([&](std::uint32_t run) { due_.push_back(run); });
    all_.evacuator_.begin_window();
    heaps.clear_touched();
    const double seconds = options_.scaled_window_seconds();
    write_credit_.earn(static_cast<double>(options_.cold_write_limit), seconds, seconds);
    budget_ = moves() ? budget_now() : backend::memory_budget();
    may_return_ = budget_.may_return(in_use_in_files_, exchange_share_.now());
    policy::window_beginning beginning;
    beginning.moves = moves();
    beginning.wanted_bytes =
        budget_.exchange(still_over_, std::exchange(refused_, 0), exchange_share_.now());
    for (policy::tier_id id = 0; id < tiers_.count(); ++id)
        beginning.live_bytes[id] = heaps.counters(id).live_bytes;
    for (policy::tier_id id = 0; id < tiers_.count(); ++id)
        heaps.leave_gaps(id, log_.mostly_out(heaps, id));
    placement_->begin_window(beginning);
    phase_ = phase::looking;
}

// What has moved is judged by where it is; of a tracked run, by what it would give.
struct temperature::placing {
    temperature& all;
    const std::uint32_t* first; // ascending
    std::size_t count;

    bool wants(std::uint32_t run, bool) const noexcept {
        return std::binary_search(first, first + count, run);
    }
    template <class Move>
    void visit(table_type& table, std::uint32_t, Move&& move) const {
        all.judge_.look_again(table, all.all_.evacuator_.window(), [&](const auto& object) {
            if (!word::arming::is_armed(object.seen)) return;
            const std::uint64_t address = word::arming::address(object.seen);
            policy::tier_id to = object.to;
            if (to != policy::no_tier && all.all_.space_->file_backed(to) && !may_write(address))
                to = policy::no_tier;
            if (to != policy::no_tier && all.leaves_file(object.at, to) && !all.may_return(address))
                to = policy::no_tier;
            if (to == policy::no_tier && all.all_.in_alias(address)) to = all.promoted_;
            if (to != policy::no_tier && to != policy::first_tier)
                move(object.slot, object.seen, to);
        });
    }
    bool may_write(std::uint64_t address) const noexcept {
        return all.options_.cold_write_limit == 0 ||
               all.write_credit_.bytes() >= all.all_.size_of(address);
    }
    void moved(unsigned from, unsigned to, const mobility::moved_object& object) const noexcept {
        all.moved_bytes_[from][to] += object.bytes;
        all.log_.note_filled(to, reinterpret_cast<const void*>(object.to), object.bytes);
        if (all.all_.space_->file_backed(to)) all.write_credit_.spend(object.bytes);
        if (all.leaves_file(from, to) && all.may_return_ != UINT64_MAX)
            all.may_return_ -= std::min<std::uint64_t>(object.bytes, all.may_return_);
    }
};

// From COLD's file to memory that the kernel cannot drop: within what the budget allows.
bool temperature::may_return(std::uint64_t address) noexcept {
    const std::size_t bytes = all_.size_of(address);
    if (bytes <= may_return_) return true;
    refused_ += bytes;
    return false;
}

void temperature::look_at_some() {
    std::vector<std::uint32_t> moving;
    const std::size_t end = std::min(at_ + looks_in_a_step, due_.size());
    for (; at_ < end; ++at_) {
        const std::uint32_t run = due_[at_];
        table_type* table = all_.tables_[run].load_acquire();
        if (table == nullptr) table = all_.evacuator_.paused_table(run);
        if (table == nullptr) continue;
        if (table->is_taken()) {
            if (look_at_taken(*table)) moving.push_back(run);
        } else if (const auto own = turns_of_.find(run); own != turns_of_.end()) {
            look_at_tracked(run, *table, own->second);
        }
    }
    if (!moving.empty() && moves() && all_.threads_are_known(0)) {
        std::sort(moving.begin(), moving.end());
        all_.add(all_.evacuator_.settle(nullptr, 0, nullptr, tries, all_.while_waiting(),
                                        all_.while_stopping_briefly(),
                                        placing{*this, moving.data(), moving.size()}));
    }
    if (at_ != due_.size()) return;
    turns_.admit(ready_, taken_price_);
    due_.clear();
    for (const policy::tracked_run& run : ready_) due_.push_back(run.number);
    at_ = 0;
    phase_ = due_.empty() ? phase::ending : phase::leaving;
}

// True if something in it is to move.
bool temperature::look_at_taken(table_type& table) {
    bool any = false;
    judge_.look(table, all_.evacuator_.window(), [&](const auto& object) {
        const std::uint64_t address = word::arming::address(object.seen);
        any = any || object.to != policy::no_tier || all_.in_alias(address);
        if (object.touched && object.at != policy::first_tier)
            all_.space_->mark_touched(reinterpret_cast<const void*>(address),
                                      all_.size_of(address));
    });
    return any;
}

void temperature::look_at_tracked(std::uint32_t run, table_type& table, turn& own) {
    policy::tracked_run found;
    found.number = run;
    found.windows = table.looks;
    found.objects_begun = own.objects;
    judge_.look(table, all_.evacuator_.window(), [&](const auto& object) {
        const std::uint64_t address = word::arming::address(object.seen);
        const std::size_t size = all_.size_of(address);
        ++found.objects;
        found.live_bytes += size;
        if (object.to != policy::no_tier && object.to != promoted_) found.cold_bytes += size;
        if (object.touched) all_.space_->mark_touched(reinterpret_cast<const void*>(address), size);
    });
    all_.evacuator_.looked_at_paused(run);
    const bool is_open = all_.evacuator_.is_tracked(run);
    const std::uint64_t open_ns = own.open_ns + (is_open ? os::monotonic_ns() - own.opened_ns : 0);
    // Of the program's time.
    found.uses_per_second =
        static_cast<double>(own.all_uses) * 1e9 /
        (static_cast<double>(std::max<std::uint64_t>(open_ns, 1)) * std::max(running_, 1e-3));
    own.uses = 0;
    own.seen = false;
    const std::uint32_t longest = std::max(threshold_ + windows_beyond_threshold,
                                           placement_->state_bits() != 0 ? shortest_turn : 0U);
    switch (turns_.judge(found, longest)) {
    case policy::turns::verdict::goes_on:
        return;
    case policy::turns::verdict::is_ready:
        // Those that are not admitted for long, for their price, make room for others.
        if (moves() && found.windows < 2 * longest) {
            ready_.push_back(found);
            return;
        }
        if (!moves()) would_ += found.cold_bytes;
        break;
    case policy::turns::verdict::ends:
        break;
    }
    end_turn(run);
}

void temperature::let_leave() {
    std::vector<std::uint32_t> runs;
    std::vector<std::uint32_t> by_force;
    const std::size_t end = std::min(at_ + takes_in_a_step, due_.size());
    std::vector<std::uint32_t> paused;
    for (std::size_t i = at_; i < end; ++i)
        if (all_.evacuator_.paused_table(due_[i]) != nullptr) paused.push_back(due_[i]);
    if (!paused.empty() && all_.threads_are_known(0)) open_runs(paused);
    for (; at_ < end; ++at_) {
        const auto own = turns_of_.find(due_[at_]);
        if (own == turns_of_.end() || !all_.evacuator_.is_tracked(due_[at_])) continue;
        const bool forced = own->second.refused >= stubborn && by_force.size() < takes_in_a_stop;
        (forced ? by_force : runs).push_back(due_[at_]);
    }
    if (all_.blind_.load_seq_cst() == 0 && all_.threads_are_known(0)) {
        const auto settle = [&](std::vector<std::uint32_t>& some, unsigned how_often) {
            if (some.empty()) return;
            std::sort(some.begin(), some.end());
            all_.add(all_.evacuator_.settle(some.data(), some.size(), nullptr, how_often,
                                            all_.while_waiting(), all_.while_stopping_briefly(),
                                            placing{*this, some.data(), some.size()}));
            for (const std::uint32_t run : some) {
                if (all_.evacuator_.is_tracked(run)) {
                    if (how_often == 0) { // not even by force: something in it is kept
                        end_turn(run);
                        continue;
                    }
                    turn& own = turns_of_[run];
                    if (own.refused < stubborn) ++own.refused;
                    continue;
                }
                turns_of_.erase(run);
                if (table_type* const table = all_.tables_[run].load_acquire(); table != nullptr)
                    table->tell_each(0);
            }
        };
        settle(runs, tries);
        settle(by_force, 0);
    }
    if (at_ == due_.size()) phase_ = phase::ending;
}

bool temperature::page_out(policy::tier_id id, std::uint64_t address) const noexcept {
    if (id == policy::first_tier) return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(all_.space_->range_begin(id));
    return log_.page_out(id, (address - begin) / backend::page_ages::page_bytes);
}

// Sparse runs of the tiers, and what has been freed: homes whose last object is gone go back here.
void temperature::compact() {
    heap::space& heaps = *all_.space_;
    const double below = placement_->compacted_below(options_.compaction_live_fraction);
    for (policy::tier_id id = policy::first_tier + 1; id < tiers_.count(); ++id) {
        if (heaps.file_backed(id) && options_.cold_write_limit != 0 && write_credit_.bytes() == 0)
            continue;
        const auto is_out = [this, id](std::size_t run) { return log_.run_out(id, run); };
        if (options_.compaction_live_fraction > 0)
            heaps.select_evacuation(id, below, compacted_bytes, heap::run_filter(is_out));
    }
    if (all_.evacuator_.taken() != 0 && all_.threads_are_known(0))
        all_.add(all_.evacuator_.round(nullptr, 0, nullptr, tries, all_.while_waiting(),
                                       all_.while_stopping_briefly()));
    heaps.decommit_free_memory();
}

void temperature::gathered(unsigned to, const mobility::moved_object& object) noexcept {
    log_.note_filled(static_cast<policy::tier_id>(to), reinterpret_cast<const void*>(object.to),
                     object.bytes);
    if (all_.space_->file_backed(to)) write_credit_.spend(object.bytes);
}

void temperature::end_window() {
    heap::space& heaps = *all_.space_;
    // First, so that the next window does not begin at once if there is no memory for the end of this one.
    const std::uint64_t now = os::monotonic_ns();
    const std::uint64_t began = std::exchange(window_ended_ns_, now);
    if (moves()) compact();
    log_.end_window(heaps);
    os::machine here;
    const bool swap = hints() && os::read_machine(&here) && os::can_page_out(here);
    policy::window_facts facts;
    facts.length_seconds = static_cast<double>(now - began) * 1e-9;
    facts.moved_bytes = moved_bytes_;
    const std::uint64_t own_cpu = since(cpu_before_[0], os::thread_cpu_ns());
    const std::uint64_t all_cpu = since(cpu_before_[1], os::process_cpu_ns());
    const std::uint64_t own_faults = since(faults_before_[0], os::thread_major_faults());
    const std::uint64_t all_faults = since(faults_before_[1], os::process_major_faults());
    if (all_cpu > own_cpu) facts.running_seconds = static_cast<double>(all_cpu - own_cpu) * 1e-9;
    if (all_faults > own_faults) facts.major_faults = all_faults - own_faults;
    tier_facts_.gather(facts, heaps, log_, backend_->done(), {hints(), swap});
    for (policy::tier_id id = 0; id < tiers_.count(); ++id)
        facts.touched_pages += facts.tiers[id].touched_pages;
    // What nobody looks at counts as used.
    heap::slab_heap<native>& slabs = heaps.slabs();
    for (std::size_t run = 0; run < slabs.runs(); ++run)
        if (all_.away(run).load_relaxed() == at_home && !slabs.is_free(run))
            facts.touched_pages += slabs.room_in_memory(run) / os::page_size;
    const backend::memory_budget budget = budget_.allowed == 0 ? budget_ : budget_now();
    facts.excess_bytes = budget.excess();
    const policy::directives next = placement_->end_of_window(facts);
    threshold_ = next.cold_threshold;
    turns_.end_of_window();
    ++windows_;
    pending_.clear();
    for (const auto& each : turns_of_)
        if (!all_.evacuator_.is_tracked(each.first)) pending_.push_back(each.first);
    if (hints() && log_.view(heaps, *placement_, view_, budget.may_leave(0), swap)) {
        log_.clear();
        tell_backend();
    } else {
        log_.clear();
        log_.forget_out();
        backend_->skip_window();
    }
    exchange_share_.note(refused_);
    note_use();
}

// What the next window has to know of this one's end.
void temperature::note_use() {
    still_over_ = 0;
    in_use_in_files_ = 0;
    if (budget_.allowed == 0) return;
    heap::space& heaps = *all_.space_;
    for (policy::tier_id id = 0; id < tiers_.count(); ++id)
        if (heaps.file_backed(id)) in_use_in_files_ += heaps.touched_in(id).pages * os::page_size;
    if (hints() && options_.hint_pageout) still_over_ = budget_now().excess();
}

// Between two pieces who waits for the lock gets it. If that was a thread that moved something, or a fork, the files may
// be others: the rest is told after the next window.
void temperature::tell_backend() {
    bool alone = true;
    backend_->after_window(view_, options_, [this, &alone] {
        if (all_.hurry_.load_relaxed() != 0) {
            alone = false;
            all_.work_.unlock();
            while (all_.hurry_.load_relaxed() != 0) native::yield();
            all_.work_.lock();
        }
        return alone && all_.blind_.load_relaxed() == 0;
    });
    for (policy::tier_id id = 0; id < tiers_.count(); ++id)
        if (!tier_facts_.can_leave(id)) log_.forget_out(id);
}

void temperature::came_home(std::uint32_t run) {
    all_.evacuator_.drop_paused(run);
    turns_of_.erase(run);
    turns_.rest(run, policy::turns::rest_of_used);
}

// The collector's thread is not here, and was between two steps. What left memory is in it, or not: nobody knows.
void temperature::fork_child() noexcept {
    phase_ = phase::idle;
    window_ended_ns_ = os::monotonic_ns();
    earned_ns_ = 0;
    log_.clear();
    log_.forget_out();
    backend_->skip_window();
    exchange_share_ = {};
    still_over_ = 0;
    refused_ = in_use_in_files_ = 0;
    cpu_before_[0] = cpu_before_[1] = faults_before_[0] = faults_before_[1] = 0;
}

void temperature::read_figures(obase_handles_figures& to) const noexcept {
    to.windows = windows_;
    to.translation_ns = static_cast<std::uint64_t>(translation_ns_);
    to.tracked_runs = all_.evacuator_.tracked();
    to.tracked_ever = tracked_ever_;
    to.tracked_uses = tracked_uses_;
    to.would_leave_bytes = would_;
    for (policy::tier_id id = policy::first_tier + 1; id < tiers_.count(); ++id) {
        const std::uint64_t bytes = all_.space_->counters(id).live_bytes;
        (tiers_[id].promoted_to ? to.hot_bytes : to.cold_bytes) += bytes;
        to.left_bytes += backend_->done().paged_out_bytes[id];
    }
}

} // namespace obase::handles
