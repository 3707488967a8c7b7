// SPDX-License-Identifier: MIT
//
// The scheduler behind deterministic.hpp and tracked_heap.hpp.
//
// A virtual thread runs on its own fiber up to its next operation, and stops in point() before
// carrying it out. There decide() chooses what happens next: another thread's pending operation,
// the oldest buffered store of some thread becoming visible, or this thread's own operation. What
// lies between two points of a thread is therefore one indivisible step.
//
// The schedule is the sequence of numbers that pick() returned. Everything else is a function of
// it, which is what makes a (strategy, seed) pair enough to run a schedule again.
#include "testing/deterministic.hpp"

#include "testing/block_table.hpp"
#include "testing/fiber.hpp"
#include "testing/tracked_heap.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace obase::testing {

namespace {

using detail::arithmetic;
using detail::operation;

const char* text_of(operation o) {
    switch (o) {
#define OBASE_TESTING_TEXT(name)                                                                   \
    case operation::name:                                                                          \
        return #name;
        OBASE_TESTING_OPERATIONS(OBASE_TESTING_TEXT)
#undef OBASE_TESTING_TEXT
    }
    return "?";
}

const char* text_of(testing::strategy s) {
    switch (s) {
    case testing::strategy::random:
        return "random";
    case testing::strategy::pct:
        return "pct";
    case testing::strategy::bounded_exhaustive:
        return "exhaustive";
    }
    return "?";
}

// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
class random_numbers {
  public:
    void seed(std::uint64_t s) { state_ = s; }
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    unsigned below(unsigned n) { return static_cast<unsigned>(((next() >> 32) * n) >> 32); }

  private:
    std::uint64_t state_ = 0;
};

std::uint64_t read_memory(const void* address, unsigned size) {
    std::uint64_t value = 0;
    std::memcpy(&value, address, size);
    return value;
}

void write_memory(void* address, unsigned size, std::uint64_t value) {
    std::memcpy(address, &value, size);
}

std::uint64_t compute(arithmetic a, std::uint64_t old, std::uint64_t operand, unsigned size) {
    std::uint64_t value = 0;
    switch (a) {
    case arithmetic::replace:
        value = operand;
        break;
    case arithmetic::add:
        value = old + operand;
        break;
    case arithmetic::subtract:
        value = old - operand;
        break;
    case arithmetic::bit_or:
        value = old | operand;
        break;
    case arithmetic::bit_and:
        value = old & operand;
        break;
    }
    return size == 8 ? value : value & ((std::uint64_t{1} << (8 * size)) - 1);
}

struct pending_store {
    void* address;
    std::uint64_t value;
    unsigned size;
};

// The FIFO of one virtual thread. The capacity is of the order of a real one; a store into a full
// one waits for the oldest to become visible.
class store_buffer {
  public:
    bool empty() const { return head_ == tail_; }
    bool full() const { return tail_ - head_ == capacity; }
    unsigned count() const { return tail_ - head_; }
    void push(pending_store s) { entries_[tail_++ % capacity] = s; }
    pending_store pop() { return entries_[head_++ % capacity]; }
    // 0 is the oldest.
    const pending_store& at(unsigned i) const { return entries_[(head_ + i) % capacity]; }
    void clear() { head_ = tail_ = 0; }

  private:
    static constexpr unsigned capacity = 32;
    std::array<pending_store, capacity> entries_;
    unsigned head_ = 0, tail_ = 0;
};

bool overlap(const void* a, std::size_t a_size, const void* b, std::size_t b_size) {
    const auto x = reinterpret_cast<std::uintptr_t>(a);
    const auto y = reinterpret_cast<std::uintptr_t>(b);
    return x < y + b_size && y < x + a_size;
}

enum class thread_state : std::uint8_t {
    ready,
    waiting, // has called pause() or yield(), and memory has not changed since
    asleep,  // in sleep_on(), until wake_all()
    ended,
};

struct virtual_thread {
    std::function<void()> work;
    std::string name;
    fiber* stack = nullptr;
    store_buffer buffer;
    thread_state state = thread_state::ready;
    operation pending = operation::end; // what it will do when it is chosen
    const void* pending_address = nullptr;
    unsigned permits = 0; // permit_freed objects alive

    // Fairness of bounded_exhaustive, as sets of threads (bit i is thread i): those that have been
    // ready and not chosen since this thread last waited, and those that must be chosen before it.
    std::uint64_t passed_over = 0;
    std::uint64_t goes_after = 0;
};

struct step {
    std::uint64_t number;
    const void* address;
    std::uint64_t before, after;
    const char* text;
    operation what;
    std::uint8_t thread;
    std::uint8_t size;
};

struct named_range {
    const void* begin;
    std::size_t size;
    std::string text;
};

// One of the things that can happen next: a thread's pending operation, or a flush.
struct candidate {
    std::uint8_t thread;
    bool flush;
};

class scheduler {
  public:
    scheduler() : host_(fiber::kind::host) {}

    result explore(const exploration& e, const std::function<void()>& body);

    void spawn(std::string thread_name, std::function<void()> work);
    void run();
    [[noreturn]] void fail(const std::string& what);
    unsigned choose(unsigned n);
    unsigned current() const { return current_; }
    std::uint64_t now() const { return step_; }
    void note(const char* text, std::uint64_t value) {
        record(operation::note, nullptr, 8, value, value, text);
    }
    void name(const void* address, std::size_t size, std::string text) {
        names_.push_back({address, size, std::move(text)});
    }

    std::uint64_t load(operation o, const void* address, unsigned size);
    void store(operation o, void* address, unsigned size, std::uint64_t value);
    std::uint64_t modify(operation o, arithmetic a, void* address, unsigned size,
                         std::uint64_t operand);
    bool compare_exchange(operation o, void* address, unsigned size, std::uint64_t& expected,
                          std::uint64_t desired);
    void initialize(void* address, unsigned size, std::uint64_t value);
    void destroy(void* address, unsigned size);
    bool membarrier();
    bool has_membarrier() const {
        return exploration_->membarrier != testing::membarrier_mode::missing;
    }
    void wait(operation o);
    void sleep_on(const void* address, std::uint32_t expected);
    void wake_all(const void* address);

    unsigned new_heap() { return heaps_++; }
    void* allocate(std::size_t size, const char* block_name, std::size_t alignment, unsigned heap,
                   bool reuse);
    void free(void* address, unsigned heap, bool fill);
    void unmap(void* address, std::size_t size);
    void access(const void* address, std::size_t size, bool write, bool racy);
    void racy_copy(void* target, const void* source, std::size_t size);
    void permit(int change) {
        auto& p = threads_[current_].permits;
        p = static_cast<unsigned>(static_cast<int>(p) + change);
    }
    block_table& blocks() { return blocks_; }

    void write_crash_line() const;

  private:
    enum class freed { forbidden, allowed };

    void execute(const std::function<void()>& body);
    void abandon();
    void prepare_strategy();
    bool next_path();
    static fiber* body_main(void* self);
    static fiber* thread_main(void* self);
    void start(virtual_thread& t);
    void call(const std::function<void()>& work);

    void point(operation o, const void* address);
    void switch_to(unsigned thread);
    unsigned decide();
    unsigned pick(const candidate* candidates, unsigned count);
    unsigned pick_random(const candidate* candidates, unsigned count);
    unsigned pick_by_priority(const candidate* candidates, unsigned count);
    unsigned pick_next_path(const candidate* candidates, unsigned count);
    unsigned branch(unsigned count);
    int& priority(const candidate& c) { return priorities_[2u * c.thread + (c.flush ? 1 : 0)]; }

    bool buffered() const { return running_ && exploration_->memory == testing::memory_model::tso; }
    void flush_oldest(unsigned thread);
    void drain(unsigned thread);
    void drain_overlapping(unsigned thread, const void* address, std::size_t size,
                           bool exact_may_stay);
    void commit(void* address, unsigned size, std::uint64_t value);
    void memory_changed();
    void had_its_turn(unsigned thread);
    std::uint64_t ready_threads() const;

    void check_memory(const void* address, std::size_t size, freed f, bool write);
    freed reading() const {
        return threads_[current_].permits != 0 ? freed::allowed : freed::forbidden;
    }

    void record(operation o, const void* address, unsigned size, std::uint64_t before,
                std::uint64_t after, const char* text = nullptr);
    std::string address_text(const void* address, std::vector<const void*>& unnamed);
    std::string value_text(std::uint64_t value);
    std::string thread_text(unsigned thread) const;
    std::string trace_text(std::size_t most);
    std::string state_text();
    std::string replay_text() const;
    bool read_replay(const std::string& text);

    static constexpr std::size_t trace_capacity = 4096; // steps kept
    static constexpr std::size_t report_steps = 80;     // steps printed
    // All threads waiting, woken, and waiting again without a change to memory, this often: stuck.
    static constexpr unsigned idle_limit = 2000;

    const exploration* exploration_ = nullptr;
    const std::function<void()>* body_ = nullptr;
    std::uint64_t seed_ = 0;

    fiber host_;
    std::vector<std::unique_ptr<fiber>> stacks_; // stacks_[i] is thread i's, the body's is 0
    std::vector<virtual_thread> threads_;        // reserved for max_threads + 1
    unsigned current_ = 0;
    unsigned unfinished_ = 0;
    bool running_ = false;
    bool starting_ = false;
    unsigned idle_rounds_ = 0;

    bool failed_ = false;
    std::string failure_;

    std::vector<step> trace_;
    std::uint64_t step_ = 0;
    std::uint64_t hash_ = 0;
    std::vector<named_range> names_;
    block_table blocks_;
    unsigned heaps_ = 0;

    random_numbers random_;
    unsigned flush_weight_ = 16; // against 16 for a thread
    unsigned stay_of_8_ = 0;     // chance of going on with the same thread, in eighths

    std::array<int, 2 * (max_threads + 1)> priorities_{};
    int lowest_priority_ = 0;
    std::vector<std::uint64_t> change_points_; // ascending; steps at which the leader is demoted
    std::size_t next_change_ = 0;
    std::uint64_t decisions_ = 0;
    std::uint64_t length_ = 0; // decisions expected in one execution (pct)

    struct choice {
        unsigned chosen, count;
    };
    std::vector<choice> path_; // bounded_exhaustive: this execution's choices
    std::size_t depth_ = 0;
    unsigned preemptions_ = 0;
    bool calibrating_ = false;
};

// One per OS thread that explores, never destroyed: abandoned stacks may be among its own. `active`
// while an execution is under way.
thread_local scheduler* own_scheduler = nullptr;
thread_local scheduler* active = nullptr;

scheduler& running_exploration(const char* caller) {
    if (active == nullptr) {
        std::fprintf(stderr, "%s outside of testing::explore\n", caller);
        std::abort();
    }
    return *active;
}

// A signal that ends the process would take the schedule with it. Tells it, then lets the signal do
// what it did before. On its own stack: a fiber that overflowed its has none left.
extern "C" void obase_testing_crashed(int signal) {
    if (active != nullptr) {
        active->write_crash_line();
    }
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

void watch_crashes() {
    alignas(16) static std::array<char, std::size_t{64} * 1024> stack;
    stack_t alternative{};
    alternative.ss_sp = stack.data();
    alternative.ss_size = stack.size();
    stack_t present{};
    if (::sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) != 0) {
        ::sigaltstack(&alternative, nullptr);
    }
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
        struct sigaction present_action{};
        // A sanitizer's or the test's own handler stays.
        if (::sigaction(signal, nullptr, &present_action) == 0 &&
            present_action.sa_handler == SIG_DFL) {
            struct sigaction action{};
            action.sa_handler = &obase_testing_crashed;
            action.sa_flags = SA_ONSTACK;
            ::sigaction(signal, &action, nullptr);
        }
    }
}

// Virtual threads and the body.

void scheduler::call(const std::function<void()>& work) {
    try {
        work();
    } catch (const std::exception& e) {
        fail(std::string("exception left the thread: ") + e.what());
    } catch (...) {
        fail("exception left the thread");
    }
}

fiber* scheduler::body_main(void* argument) {
    auto& s = *static_cast<scheduler*>(argument);
    s.call(*s.body_);
    if (s.threads_.size() > 1) {
        s.fail("the body ended without run(): the spawned threads did nothing");
    }
    return &s.host_;
}

fiber* scheduler::thread_main(void* argument) {
    auto& s = *static_cast<scheduler*>(argument);
    const unsigned self = s.current_;
    s.call(s.threads_[self].work);
    s.threads_[self].work = nullptr; // what it captured may act in its destructor: still the thread
    s.record(operation::end, nullptr, 0, 0, 0);
    // Buffered stores outlive the thread, as if it had been preempted before its very last step.
    s.threads_[self].state = thread_state::ended;
    s.threads_[self].pending = operation::end;
    s.had_its_turn(self);
    --s.unfinished_;
    const unsigned next = s.starting_ ? 0 : s.decide();
    s.current_ = next;
    return s.threads_[next].stack;
}

void scheduler::spawn(std::string thread_name, std::function<void()> work) {
    if (threads_.size() > max_threads) {
        fail("too many virtual threads");
    }
    const auto index = static_cast<unsigned>(threads_.size());
    if (running_) {
        drain(current_); // creating a thread is a system call
        record(operation::spawn, nullptr, 0, index, index);
        ++unfinished_;
    }
    while (stacks_.size() <= index) {
        stacks_.push_back(std::make_unique<fiber>(fiber::kind::own));
    }
    virtual_thread& t = threads_.emplace_back();
    t.work = std::move(work);
    t.name = std::move(thread_name);
    t.stack = stacks_[index].get();
    t.stack->assign(&scheduler::thread_main, this);
}

void scheduler::run() {
    if (running_ || current_ != 0) {
        fail("run() is for the body");
    }
    running_ = true;
    unfinished_ = static_cast<unsigned>(threads_.size()) - 1;
    idle_rounds_ = 0;
    // Up to the first operation of each: what precedes it concerns no other thread, and choosing
    // who starts would count every schedule several times.
    starting_ = true;
    for (unsigned i = 1; i < threads_.size(); ++i) {
        current_ = i;
        fiber::switch_to(*threads_[0].stack, *threads_[i].stack);
    }
    starting_ = false;
    current_ = 0;
    const unsigned first = decide();
    if (first != 0) {
        current_ = first;
        fiber::switch_to(*threads_[0].stack, *threads_[first].stack);
    }
    running_ = false;
    threads_.resize(1);
}

void scheduler::fail(const std::string& what) {
    failed_ = true;
    failure_ = what;
    fiber::switch_to(*threads_[current_].stack, host_);
    std::abort(); // a failed execution is not continued
}

// Points and decisions.

void scheduler::switch_to(unsigned thread) {
    const unsigned self = current_;
    current_ = thread;
    fiber::switch_to(*threads_[self].stack, *threads_[thread].stack);
}

void scheduler::point(operation o, const void* address) {
    if (!running_) {
        return;
    }
    virtual_thread& t = threads_[current_];
    t.pending = o;
    t.pending_address = address;
    if (starting_) {
        switch_to(0);
        return;
    }
    const unsigned next = decide();
    if (next != current_) {
        switch_to(next);
    }
}

// Carries out flushes until a thread is chosen, and returns it; 0 (the body) when all have ended.
unsigned scheduler::decide() {
    for (;;) {
        if (++decisions_ > exploration_->max_steps) {
            fail("stuck: more than " + std::to_string(exploration_->max_steps) +
                 " steps in one execution\n" + state_text());
        }
        std::array<candidate, 2 * (max_threads + 1)> candidates;
        unsigned count = 0;
        bool ready = false;
        const bool fair = exploration_->strategy == testing::strategy::bounded_exhaustive;
        // The current thread first: choice 0 of bounded_exhaustive is to go on.
        if (current_ != 0 && threads_[current_].state == thread_state::ready &&
            (!fair || threads_[current_].goes_after == 0)) {
            candidates[count++] = {static_cast<std::uint8_t>(current_), false};
            ready = true;
        }
        const auto n = static_cast<unsigned>(threads_.size());
        // Then in turn, so that "always the first" is a fair schedule.
        for (unsigned k = 1; k < n; ++k) {
            const unsigned i = 1 + (current_ + k - 1) % (n - 1);
            if (i != current_ && threads_[i].state == thread_state::ready &&
                (!fair || threads_[i].goes_after == 0)) {
                candidates[count++] = {static_cast<std::uint8_t>(i), false};
                ready = true;
            }
        }
        for (unsigned i = 1; i < n; ++i) {
            if (!threads_[i].buffer.empty()) {
                candidates[count++] = {static_cast<std::uint8_t>(i), true};
            }
        }
        if (count == 0) {
            if (unfinished_ == 0) {
                return 0;
            }
            if (++idle_rounds_ > idle_limit) {
                fail("stuck: all threads wait, and memory does not change\n" + state_text());
            }
            for (unsigned i = 1; i < n; ++i) {
                if (threads_[i].state == thread_state::waiting) {
                    threads_[i].state = thread_state::ready;
                }
            }
            continue;
        }
        if (ready && exploration_->strategy == testing::strategy::random && !calibrating_) {
            // Seldom, a waiting thread does look again, in case it waits for a number of looks.
            for (unsigned i = 1; i < n; ++i) {
                if (threads_[i].state == thread_state::waiting && i != current_) {
                    candidates[count++] = {static_cast<std::uint8_t>(i), false};
                }
            }
        }
        const candidate c = candidates[count == 1 ? 0 : pick(candidates.data(), count)];
        if (c.flush) {
            flush_oldest(c.thread);
            continue;
        }
        threads_[c.thread].state = thread_state::ready;
        if (fair) {
            had_its_turn(c.thread);
        }
        return c.thread;
    }
}

unsigned scheduler::pick(const candidate* candidates, unsigned count) {
    if (calibrating_) {
        return 0;
    }
    switch (exploration_->strategy) {
    case testing::strategy::random:
        return pick_random(candidates, count);
    case testing::strategy::pct:
        return pick_by_priority(candidates, count);
    case testing::strategy::bounded_exhaustive:
        return pick_next_path(candidates, count);
    }
    return 0;
}

unsigned scheduler::pick_random(const candidate* candidates, unsigned count) {
    const bool may_stay = candidates[0].thread == current_ && !candidates[0].flush;
    if (may_stay && stay_of_8_ != 0 && random_.below(8) < stay_of_8_) {
        return 0;
    }
    std::array<unsigned, 2 * (max_threads + 1)> weights;
    unsigned total = 0;
    for (unsigned i = 0; i < count; ++i) {
        const candidate& c = candidates[i];
        weights[i] = c.flush                                           ? flush_weight_
                     : threads_[c.thread].state == thread_state::ready ? 16u
                                                                       : 1u;
        total += weights[i];
    }
    unsigned left = random_.below(total);
    unsigned i = 0;
    while (left >= weights[i]) {
        left -= weights[i];
        ++i;
    }
    return i;
}

unsigned scheduler::pick_by_priority(const candidate* candidates, unsigned count) {
    for (;;) {
        unsigned best = 0;
        for (unsigned i = 1; i < count; ++i) {
            if (priority(candidates[i]) > priority(candidates[best])) {
                best = i;
            }
        }
        if (next_change_ == change_points_.size() || change_points_[next_change_] > decisions_) {
            return best;
        }
        ++next_change_;
        priority(candidates[best]) = --lowest_priority_;
    }
}

unsigned scheduler::branch(unsigned count) {
    if (depth_ == path_.size()) {
        path_.push_back({0, count});
    }
    choice& c = path_[depth_++];
    if (c.count == 0) {
        c.count = count; // a path that was read from a replay line
    }
    if (c.count != count || c.chosen >= count) {
        fail("the body did something else than in the execution before, under the same schedule");
    }
    return c.chosen;
}

unsigned scheduler::pick_next_path(const candidate* candidates, unsigned count) {
    // Leaving a thread that waits is no preemption, also if memory has just changed for it.
    const operation pending = threads_[current_].pending;
    const bool preemptible = candidates[0].thread == current_ && !candidates[0].flush &&
                             pending != operation::pause && pending != operation::yield;
    if (!preemptible) {
        return branch(count);
    }
    if (preemptions_ < exploration_->preemptions) {
        const unsigned i = branch(count);
        if (i != 0 && !candidates[i].flush) {
            ++preemptions_;
        }
        return i;
    }
    // No preemption left: this thread, or a flush. Flushes are the last candidates.
    unsigned first_flush = 1;
    while (first_flush < count && !candidates[first_flush].flush) {
        ++first_flush;
    }
    const unsigned choices = 1 + count - first_flush;
    const unsigned i = choices == 1 ? 0 : branch(choices);
    return i == 0 ? 0 : first_flush + i - 1;
}

// Fairness. Where every schedule is tried, some run the same threads forever although another is
// ready, because the threads that wait keep waking each other. Nothing is lost by leaving those
// out: a thread that waits for the second time without a ready thread having had its turn in
// between goes after that one (Musuvathi, Qadeer: Fair stateless model checking, PLDI 2008).

std::uint64_t scheduler::ready_threads() const {
    std::uint64_t set = 0;
    for (std::size_t i = 1; i < threads_.size(); ++i) {
        set |= std::uint64_t{threads_[i].state == thread_state::ready} << i;
    }
    return set;
}

void scheduler::had_its_turn(unsigned thread) {
    for (virtual_thread& t : threads_) {
        t.passed_over &= ~(std::uint64_t{1} << thread);
        t.goes_after &= ~(std::uint64_t{1} << thread);
    }
}

unsigned scheduler::choose(unsigned n) {
    if (n <= 1) {
        return 0;
    }
    unsigned value = 0;
    if (!calibrating_) {
        value = exploration_->strategy == testing::strategy::bounded_exhaustive ? branch(n)
                                                                                : random_.below(n);
    }
    record(operation::choose, nullptr, 8, n, value);
    return value;
}

void scheduler::wait(operation o) {
    if (!running_) {
        return;
    }
    record(o, nullptr, 0, 0, 0);
    virtual_thread& t = threads_[current_];
    t.state = thread_state::waiting;
    had_its_turn(current_);
    t.goes_after |= t.passed_over;
    t.passed_over = ready_threads();
    priorities_[2u * current_] = --lowest_priority_;
    point(o, nullptr);
    threads_[current_].state = thread_state::ready;
}

// A system call, so the caller's stores are visible before it looks.
void scheduler::sleep_on(const void* address, std::uint32_t expected) {
    if (!running_) {
        fail("sleeps where no other thread runs");
    }
    point(operation::sleep, address);
    drain(current_);
    check_memory(address, sizeof expected, freed::forbidden, false);
    const std::uint64_t seen = read_memory(address, sizeof expected);
    record(operation::sleep, address, sizeof expected, seen, expected);
    if (seen != expected) {
        return;
    }
    threads_[current_].state = thread_state::asleep;
    had_its_turn(current_);
    point(operation::sleep, address);
}

void scheduler::wake_all(const void* address) {
    point(operation::wake, address);
    record(operation::wake, address, 0, 0, 0);
    for (std::size_t i = 1; i < threads_.size(); ++i) {
        virtual_thread& t = threads_[i];
        if (t.state == thread_state::asleep && t.pending_address == address) {
            t.state = thread_state::ready;
            idle_rounds_ = 0;
        }
    }
}

// Memory.

void scheduler::memory_changed() {
    idle_rounds_ = 0;
    for (std::size_t i = 1; i < threads_.size(); ++i) {
        if (threads_[i].state == thread_state::waiting) {
            threads_[i].state = thread_state::ready;
        }
    }
}

void scheduler::commit(void* address, unsigned size, std::uint64_t value) {
    if (read_memory(address, size) != value) {
        write_memory(address, size, value);
        memory_changed();
    }
}

void scheduler::flush_oldest(unsigned thread) {
    const pending_store s = threads_[thread].buffer.pop();
    const std::uint64_t before = read_memory(s.address, s.size);
    commit(s.address, s.size, s.value);
    const unsigned chooser = current_;
    current_ = thread; // the trace names the thread whose store it is
    record(operation::flush, s.address, s.size, before, s.value);
    current_ = chooser;
}

void scheduler::drain(unsigned thread) {
    while (!threads_[thread].buffer.empty()) {
        flush_oldest(thread);
    }
}

// Makes the oldest stores visible until none is left that touches the given bytes; stores to
// exactly these bytes may stay if the caller can forward from them.
void scheduler::drain_overlapping(unsigned thread, const void* address, std::size_t size,
                                  bool exact_may_stay) {
    store_buffer& b = threads_[thread].buffer;
    for (unsigned i = b.count(); i-- != 0;) {
        const pending_store& s = b.at(i);
        if (overlap(s.address, s.size, address, size) &&
            !(exact_may_stay && s.address == address && s.size == size)) {
            for (unsigned k = 0; k <= i; ++k) {
                flush_oldest(thread);
            }
            return;
        }
    }
}

std::uint64_t scheduler::load(operation o, const void* address, unsigned size) {
    point(o, address);
    check_memory(address, size, reading(), false);
    store_buffer& b = threads_[current_].buffer;
    std::uint64_t value = 0;
    bool forwarded = false;
    if (!b.empty()) {
        drain_overlapping(current_, address, size, true);
        for (unsigned i = b.count(); i-- != 0 && !forwarded;) {
            if (b.at(i).address == address) {
                value = b.at(i).value;
                forwarded = true;
            }
        }
    }
    if (!forwarded) {
        value = read_memory(address, size);
    }
    record(o, address, size, value, value);
    return value;
}

void scheduler::store(operation o, void* address, unsigned size, std::uint64_t value) {
    point(o, address);
    check_memory(address, size, freed::forbidden, true);
    if (o != operation::store_seq_cst && buffered()) {
        store_buffer& b = threads_[current_].buffer;
        if (b.full()) {
            flush_oldest(current_);
        }
        b.push({address, value, size});
        record(o, address, size, value, value);
        return;
    }
    drain(current_);
    const std::uint64_t before = read_memory(address, size);
    commit(address, size, value);
    record(o, address, size, before, value);
}

std::uint64_t scheduler::modify(operation o, arithmetic a, void* address, unsigned size,
                                std::uint64_t operand) {
    point(o, address);
    check_memory(address, size, freed::forbidden, true);
    drain(current_);
    const std::uint64_t before = read_memory(address, size);
    const std::uint64_t after = compute(a, before, operand, size);
    commit(address, size, after);
    record(o, address, size, before, after);
    return before;
}

bool scheduler::compare_exchange(operation o, void* address, unsigned size, std::uint64_t& expected,
                                 std::uint64_t desired) {
    point(o, address);
    check_memory(address, size, reading(), false);
    drain(current_);
    const std::uint64_t before = read_memory(address, size);
    if (before != expected) {
        expected = before;
        record(o, address, size, before, before, "failed");
        return false;
    }
    check_memory(address, size, freed::forbidden, true);
    commit(address, size, desired);
    record(o, address, size, before, desired);
    return true;
}

// No point: a constructor's store is seen by no thread before it is published by a later one.
void scheduler::initialize(void* address, unsigned size, std::uint64_t value) {
    check_memory(address, size, freed::forbidden, true);
    if (!buffered()) {
        write_memory(address, size, value);
        return;
    }
    store_buffer& b = threads_[current_].buffer;
    if (b.full()) {
        flush_oldest(current_);
    }
    b.push({address, value, size});
    record(operation::initialize, address, size, value, value);
}

// Memory outside tracked_heap may become anything after this, so nothing may be written to it
// later. In tracked memory the stores stay in their order until the block is freed.
void scheduler::destroy(void* address, unsigned size) {
    if (!running_ || blocks_.contains(address)) {
        return;
    }
    drain_overlapping(current_, address, size, false);
    for (unsigned i = 1; i < threads_.size(); ++i) {
        for (unsigned k = 0; i != current_ && k < threads_[i].buffer.count(); ++k) {
            const pending_store& s = threads_[i].buffer.at(k);
            if (overlap(s.address, s.size, address, size)) {
                fail("atomic destroyed while a store of " + thread_text(i) +
                     " to it is still buffered");
            }
        }
    }
}

bool scheduler::membarrier() {
    point(operation::membarrier, nullptr);
    const auto mode = exploration_->membarrier;
    if (mode == testing::membarrier_mode::missing ||
        (mode == testing::membarrier_mode::unreliable && choose(2) == 1)) {
        record(operation::membarrier_fails, nullptr, 0, 0, 0);
        return false;
    }
    // Each CPU passes its barrier at some moment of the call, not all at the same one: a thread
    // whose turn has come may store again, into its buffer, before the call returns.
    drain(current_);
    std::array<bool, max_threads + 1> passed{};
    for (;;) {
        std::array<std::uint8_t, max_threads + 1> left;
        unsigned count = 0;
        for (unsigned i = 1; i < threads_.size(); ++i) {
            if (threads_[i].buffer.empty()) {
                passed[i] = true;
            }
            if (!passed[i]) {
                left[count++] = static_cast<std::uint8_t>(i);
            }
        }
        if (count == 0) {
            record(operation::membarrier, nullptr, 0, 0, 0);
            return true;
        }
        const unsigned i = left[choose(count)];
        drain(i);
        passed[i] = true;
        if (count > 1) {
            point(operation::membarrier, nullptr);
        }
    }
}

// Tracked memory.

void scheduler::check_memory(const void* address, std::size_t size, freed f, bool write) {
    if (!blocks_.contains(address)) {
        return;
    }
    const auto* p = static_cast<const char*>(address);
    const char* what = write ? "write" : "read";
    if (blocks_.unmapped(p, size)) {
        fail(std::string(what) + " of unmapped memory, in " + blocks_.describe(address));
    }
    const block* b = blocks_.find(address);
    if (b == nullptr || p + size > b->begin + b->size) {
        fail(std::string(what) + " outside of any block" +
             (b == nullptr ? std::string() : ", past the end of " + blocks_.describe(b->begin)));
    }
    if (!b->live && f == freed::forbidden) {
        fail(std::string("use after free: ") + what + " of " + std::to_string(size) + " bytes at " +
             blocks_.describe(address) + ", allocated by " + thread_text(b->allocated_by) +
             " at step " + std::to_string(b->allocated_at) + ", freed by " +
             thread_text(b->freed_by) + " at step " + std::to_string(b->freed_at));
    }
}

void* scheduler::allocate(std::size_t size, const char* block_name, std::size_t alignment,
                          unsigned heap, bool reuse) {
    point(operation::allocate, nullptr);
    block* b = blocks_.allocate(std::max<std::size_t>(size, 1), alignment, heap, reuse);
    if (b == nullptr) {
        fail("the arena of tracked_heap is full");
    }
    b->name = block_name;
    b->allocated_by = current_;
    b->allocated_at = step_;
    record(operation::allocate, b->begin, 8, size, size);
    return b->begin;
}

void scheduler::free(void* address, unsigned heap, bool fill) {
    point(operation::free, address);
    block* b = blocks_.contains(address) ? blocks_.find(address) : nullptr;
    if (b == nullptr || b->begin != address || b->heap != heap) {
        fail("free of what is not a block of this heap");
    }
    if (!b->live) {
        fail("second free of " + blocks_.describe(address) + ", freed by " +
             thread_text(b->freed_by) + " at step " + std::to_string(b->freed_at));
    }
    if (running_) {
        drain_overlapping(current_, b->begin, b->size, false);
    }
    for (unsigned i = 1; i < threads_.size(); ++i) {
        for (unsigned k = 0; k < threads_[i].buffer.count(); ++k) {
            const pending_store& s = threads_[i].buffer.at(k);
            if (overlap(s.address, s.size, b->begin, b->size)) {
                fail("free of " + blocks_.describe(b->begin) + " while a store of " +
                     thread_text(i) + " to it is still buffered");
            }
        }
    }
    b->live = false;
    b->freed_by = current_;
    b->freed_at = step_;
    record(operation::free, b->begin, 8, b->size, b->size);
    if (fill) {
        std::memset(b->begin, 0xdd, b->size);
        memory_changed();
    }
}

void scheduler::unmap(void* address, std::size_t size) {
    point(operation::unmap, address);
    auto* begin = static_cast<char*>(address);
    for (char* p = begin; p < begin + size; p += 16) {
        const block* b = blocks_.contains(p) ? blocks_.find(p) : nullptr;
        if (b != nullptr && b->live) {
            fail("unmap of " + blocks_.describe(b->begin) + ", which is live");
        }
    }
    blocks_.unmap(begin, size);
    record(operation::unmap, address, 8, size, size);
}

void scheduler::access(const void* address, std::size_t size, bool write, bool racy) {
    const operation o = racy ? (write ? operation::racy_write : operation::racy_read)
                             : (write ? operation::write : operation::read);
    point(o, address);
    record(o, address, 8, size, size);
    if (!blocks_.contains(address)) {
        fail("access() to memory that is not from a tracked_heap");
    }
    check_memory(address, size, racy ? freed::allowed : freed::forbidden, write);
}

void scheduler::racy_copy(void* target, const void* source, std::size_t size) {
    if (size % 8 != 0 || reinterpret_cast<std::uintptr_t>(target) % 8 != 0 ||
        reinterpret_cast<std::uintptr_t>(source) % 8 != 0) {
        fail("racy_copy: not whole aligned words");
    }
    for (std::size_t i = 0; i < size; i += 8) {
        permit(+1);
        const std::uint64_t word =
            load(operation::racy_read, static_cast<const char*>(source) + i, 8);
        permit(-1);
        store(operation::racy_write, static_cast<char*>(target) + i, 8, word);
    }
}

// Executions.

void scheduler::execute(const std::function<void()>& body) {
    failed_ = false;
    failure_.clear();
    trace_.clear();
    step_ = 0;
    hash_ = 0;
    names_.clear();
    blocks_.clear();
    heaps_ = 0;
    decisions_ = 0;
    depth_ = 0;
    preemptions_ = 0;
    running_ = false;
    starting_ = false;
    current_ = 0;
    body_ = &body;
    if (stacks_.empty()) {
        stacks_.push_back(std::make_unique<fiber>(fiber::kind::own));
    }
    threads_.clear();
    threads_.reserve(max_threads + 1);
    virtual_thread& t = threads_.emplace_back();
    t.name = "body";
    t.stack = stacks_[0].get();
    t.stack->assign(&scheduler::body_main, this);
    prepare_strategy();
    active = this;
    {
        const leaks_permitted allocations_of_failed_executions;
        fiber::switch_to(host_, *t.stack);
    }
    active = nullptr;
}

// What the stacks of a failed execution own is leaked: running destructors in the middle of it
// would be another execution. The closures of its threads may be in use by those stacks.
void scheduler::abandon() {
    static thread_local auto* leaked = new std::vector<std::vector<virtual_thread>>;
    leaked->push_back(std::move(threads_));
    threads_ = {};
}

void scheduler::prepare_strategy() {
    random_.seed(seed_ * 0x2545f4914f6cdd1du + 0x9e3779b97f4a7c15u);
    static constexpr std::array<unsigned, 4> flush_weights{1, 4, 16, 48};
    static constexpr std::array<unsigned, 4> stay{0, 0, 4, 7};
    flush_weight_ = flush_weights[random_.below(4)];
    stay_of_8_ = stay[random_.below(4)];
    if (exploration_->strategy != testing::strategy::pct || calibrating_) {
        return;
    }
    for (std::size_t i = 0; i < priorities_.size(); ++i) {
        priorities_[i] = static_cast<int>(i) + 1;
    }
    for (std::size_t i = priorities_.size() - 1; i > 0; --i) {
        std::swap(priorities_[i], priorities_[random_.below(static_cast<unsigned>(i) + 1)]);
    }
    lowest_priority_ = 0;
    change_points_.clear();
    for (unsigned i = 1; i < exploration_->depth; ++i) {
        change_points_.push_back(1 + random_.below(static_cast<unsigned>(length_)));
    }
    std::sort(change_points_.begin(), change_points_.end());
    next_change_ = 0;
}

// The next path in depth-first order; false if there is none.
bool scheduler::next_path() {
    path_.resize(depth_);
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().count) {
        path_.pop_back();
    }
    if (path_.empty()) {
        return false;
    }
    ++path_.back().chosen;
    return true;
}

result scheduler::explore(const exploration& e, const std::function<void()>& body) {
    result r;
    exploration replayed = e;
    exploration_ = &replayed;
    path_.clear();
    length_ = 0;
    if (const char* seed = std::getenv("OBASE_TEST_SEED"); seed != nullptr && *seed != '\0') {
        replayed.first_seed = std::strtoull(seed, nullptr, 10);
    }
    std::string replay = e.replay;
    if (const char* line = std::getenv("OBASE_TEST_REPLAY"); line != nullptr) {
        const std::string text = line;
        const auto slash = text.rfind('/');
        if (slash != std::string::npos && text.substr(0, slash) == e.name) {
            replay = text.substr(slash + 1);
        }
    }
    bool replaying = false;
    seed_ = replayed.first_seed;
    if (!replay.empty()) {
        replaying = true;
        if (!read_replay(replay)) {
            r.ok = false;
            r.failure = "not a schedule: " + replay;
            r.report = e.name + ": " + r.failure;
            return r;
        }
        replayed.seeds = 1;
    }

    if (replayed.strategy == testing::strategy::pct && length_ == 0) {
        // Where a change of priority may fall depends on how long executions are: measure one
        // without preemptions. The length is part of the replay line.
        calibrating_ = true;
        execute(body);
        calibrating_ = false;
        length_ = std::max<std::uint64_t>(decisions_, 1);
        // A failure of this one is a failure: the empty path of bounded_exhaustive.
        if (failed_) {
            abandon();
            replayed.strategy = testing::strategy::bounded_exhaustive;
            path_.clear();
            replayed.preemptions = 0;
            replayed.seeds = 1;
            failed_ = false;
        }
    }

    for (std::uint64_t i = 0; i < replayed.seeds; ++i) {
        execute(body);
        ++r.executions;
        r.steps += step_;
        if (failed_) {
            break;
        }
        if (replayed.strategy == testing::strategy::bounded_exhaustive) {
            if (replaying) {
                break;
            }
            if (!next_path()) {
                r.complete = true;
                break;
            }
        } else {
            ++seed_;
        }
    }

    r.trace_hash = hash_;
    r.ok = !failed_;
    if (failed_) {
        r.failure = failure_;
        r.replay = replay_text();
        r.trace = trace_text(report_steps);
        r.report = e.name + ": " + failure_ + "\n  execution " + std::to_string(r.executions) +
                   " of at most " + std::to_string(replayed.seeds) + ", " + thread_text(current_) +
                   ", step " + std::to_string(step_) + "\n  again: OBASE_TEST_REPLAY='" + e.name +
                   "/" + r.replay + "'\n" + r.trace;
        abandon();
    } else {
        r.report = e.name + ": ok, " + text_of(replayed.strategy) + ", " +
                   std::to_string(r.executions) + " executions, " + std::to_string(r.steps) +
                   " steps" + (r.complete ? ", complete" : "");
    }
    exploration_ = nullptr;
    return r;
}

// Replay lines: random:<seed>, pct:<seed>:<depth>:<length>, exhaustive:<preemptions>:<choice>.<...>

std::string scheduler::replay_text() const {
    const std::string head = std::string(text_of(exploration_->strategy)) + ":";
    switch (exploration_->strategy) {
    case testing::strategy::random:
        return head + std::to_string(seed_);
    case testing::strategy::pct:
        return head + std::to_string(seed_) + ":" + std::to_string(exploration_->depth) + ":" +
               std::to_string(length_);
    case testing::strategy::bounded_exhaustive:
        break;
    }
    std::string text = head + std::to_string(exploration_->preemptions) + ":";
    for (std::size_t i = 0; i < depth_ && i < path_.size(); ++i) {
        text += (i == 0 ? "" : ".") + std::to_string(path_[i].chosen);
    }
    return text;
}

// Allocates nothing: the heap may be what broke.
void scheduler::write_crash_line() const {
    static std::array<char, 16384> line;
    std::size_t used = 0;
    auto add = [&used](const char* format, auto... arguments) {
        if (used < line.size()) {
            const int n =
                std::snprintf(line.data() + used, line.size() - used, format, arguments...);
            used += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
    };
    add("%s: crashed in thread %u, step %llu\n  again: OBASE_TEST_REPLAY='%s/%s:",
        exploration_->name.c_str(), current_, static_cast<unsigned long long>(step_),
        exploration_->name.c_str(), text_of(exploration_->strategy));
    const auto seed = static_cast<unsigned long long>(seed_);
    switch (exploration_->strategy) {
    case testing::strategy::random:
        add("%llu", seed);
        break;
    case testing::strategy::pct:
        add("%llu:%u:%llu", seed, exploration_->depth, static_cast<unsigned long long>(length_));
        break;
    case testing::strategy::bounded_exhaustive:
        add("%u:", exploration_->preemptions);
        for (std::size_t i = 0; i < depth_ && i < path_.size(); ++i) {
            add(i == 0 ? "%u" : ".%u", path_[i].chosen);
        }
        break;
    }
    add("%s", "'\n");
    if (::write(STDERR_FILENO, line.data(), std::min(used, line.size() - 1)) < 0) {
        return; // no thread is left
    }
}

bool scheduler::read_replay(const std::string& text) {
    auto& e = const_cast<exploration&>(*exploration_);
    const auto colon = text.find(':');
    if (colon == std::string::npos) {
        return false;
    }
    const std::string head = text.substr(0, colon);
    const char* p = text.c_str() + colon + 1;
    auto number = [&p](std::uint64_t& value) {
        char* end = nullptr;
        value = std::strtoull(p, &end, 10);
        const bool some = end != p;
        p = *end == ':' || *end == '.' ? end + 1 : end;
        return some;
    };
    std::uint64_t value = 0;
    if (head == "random") {
        e.strategy = testing::strategy::random;
        return number(seed_);
    }
    if (head == "pct") {
        e.strategy = testing::strategy::pct;
        if (!number(seed_) || !number(value)) {
            return false;
        }
        e.depth = static_cast<unsigned>(value);
        return number(length_) && length_ != 0;
    }
    if (head == "exhaustive") {
        e.strategy = testing::strategy::bounded_exhaustive;
        if (!number(value)) {
            return false;
        }
        e.preemptions = static_cast<unsigned>(value);
        while (number(value)) {
            path_.push_back({static_cast<unsigned>(value), 0});
        }
        return true;
    }
    return false;
}

// Reports.

void scheduler::record(operation o, const void* address, unsigned size, std::uint64_t before,
                       std::uint64_t after, const char* text) {
    ++step_;
    const std::uint64_t what = (std::uint64_t{current_} << 8) | static_cast<std::uint64_t>(o);
    hash_ = (hash_ ^ what) * 0x9ddfea08eb382d69u;
    hash_ ^= hash_ >> 29;
    const step s{step_,
                 address,
                 before,
                 after,
                 text,
                 o,
                 static_cast<std::uint8_t>(current_),
                 static_cast<std::uint8_t>(size)};
    if (trace_.size() < trace_capacity) {
        trace_.push_back(s);
    } else {
        trace_[(step_ - 1) % trace_capacity] = s;
    }
}

std::string scheduler::thread_text(unsigned thread) const {
    if (thread == 0) {
        return "the body";
    }
    std::string text = "thread " + std::to_string(thread);
    if (thread < threads_.size() && !threads_[thread].name.empty()) {
        text += " (" + threads_[thread].name + ")";
    }
    return text;
}

std::string scheduler::address_text(const void* address, std::vector<const void*>& unnamed) {
    const auto* p = static_cast<const char*>(address);
    for (auto n = names_.rbegin(); n != names_.rend(); ++n) {
        const auto* begin = static_cast<const char*>(n->begin);
        if (p >= begin && p < begin + n->size) {
            return p == begin ? n->text : n->text + "+" + std::to_string(p - begin);
        }
    }
    std::string block_name = blocks_.describe(address);
    if (!block_name.empty()) {
        return block_name;
    }
    auto known = std::find(unnamed.begin(), unnamed.end(), address);
    if (known == unnamed.end()) {
        unnamed.push_back(address);
        known = unnamed.end() - 1;
    }
    return "atomic" + std::to_string(known - unnamed.begin() + 1);
}

std::string scheduler::value_text(std::uint64_t value) {
    char digits[24];
    if (value < 10) {
        std::snprintf(digits, sizeof digits, "%u", static_cast<unsigned>(value));
    } else {
        std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(value));
    }
    std::string text = digits;
    const std::uint64_t address = value & 0x0000ffffffffffffu; // the tag of a slot is above
    const std::string pointee = blocks_.describe(reinterpret_cast<const void*>(address));
    return pointee.empty() ? text : text + " (" + pointee + ")";
}

std::string scheduler::trace_text(std::size_t most) {
    std::vector<const void*> unnamed;
    const std::uint64_t kept = std::min<std::uint64_t>(trace_.size(), most);
    std::string text =
        "  the last " + std::to_string(kept) + " of " + std::to_string(step_) + " steps:\n";
    for (std::uint64_t n = step_ - kept; n < step_; ++n) {
        const step& s = trace_[n % trace_capacity];
        char line[128];
        std::snprintf(line, sizeof line, "  %6llu  %*s%u  %s",
                      static_cast<unsigned long long>(s.number), static_cast<int>(2 * s.thread), "",
                      static_cast<unsigned>(s.thread), text_of(s.what));
        text += line;
        if (s.address != nullptr) {
            text += " " + address_text(s.address, unnamed);
        }
        if (s.what == operation::note) {
            text += std::string(" ") + s.text + " " + value_text(s.after);
        } else if (s.size != 0) {
            text += " " + value_text(s.before);
            if (s.after != s.before) {
                text += " -> " + value_text(s.after);
            }
            if (s.text != nullptr) {
                text += std::string(" ") + s.text;
            }
        }
        text += "\n";
    }
    return text;
}

std::string scheduler::state_text() {
    std::vector<const void*> unnamed;
    std::string text;
    for (unsigned i = 1; i < threads_.size(); ++i) {
        const virtual_thread& t = threads_[i];
        text += "  " + thread_text(i) + ": ";
        switch (t.state) {
        case thread_state::ready:
            text += std::string("before ") + text_of(t.pending);
            if (t.pending_address != nullptr) {
                text += " " + address_text(t.pending_address, unnamed);
            }
            break;
        case thread_state::waiting:
            text += "waits";
            break;
        case thread_state::asleep:
            text += "sleeps on " + address_text(t.pending_address, unnamed);
            break;
        case thread_state::ended:
            text += "has ended";
            break;
        }
        text += t.buffer.empty() ? "\n"
                                 : ", stores buffered: " + std::to_string(t.buffer.count()) + "\n";
    }
    return text;
}

} // namespace

// The interface.

result explore(const exploration& e, const std::function<void()>& body) {
    if (active != nullptr) {
        active->fail("explore inside an exploration");
    }
    if (own_scheduler == nullptr) {
        own_scheduler = new scheduler;
        watch_crashes();
    }
    return own_scheduler->explore(e, body);
}

void spawn(std::function<void()> work) { spawn(std::string(), std::move(work)); }

void spawn(std::string thread_name, std::function<void()> work) {
    running_exploration("spawn").spawn(std::move(thread_name), std::move(work));
}

void run() { running_exploration("run").run(); }

void require(bool condition, const char* what) {
    if (!condition) {
        fail(what);
    }
}

void fail(const std::string& what) { running_exploration(what.c_str()).fail(what); }

unsigned choose(unsigned n) { return running_exploration("choose").choose(n); }

unsigned thread_index() { return active == nullptr ? 0 : active->current(); }

std::uint64_t now() { return running_exploration("now").now(); }

void note(const char* text, std::uint64_t value) {
    if (active != nullptr) {
        active->note(text, value);
    }
}

void name(const void* address, std::size_t size, std::string text) {
    if (active != nullptr) {
        active->name(address, size, std::move(text));
    }
}

namespace detail {

std::uint64_t load(operation o, const void* address, unsigned size) noexcept {
    return active == nullptr ? read_memory(address, size) : active->load(o, address, size);
}

void store(operation o, void* address, unsigned size, std::uint64_t value) noexcept {
    if (active == nullptr) {
        write_memory(address, size, value);
    } else {
        active->store(o, address, size, value);
    }
}

std::uint64_t modify(operation o, arithmetic a, void* address, unsigned size,
                     std::uint64_t operand) noexcept {
    if (active != nullptr) {
        return active->modify(o, a, address, size, operand);
    }
    const std::uint64_t before = read_memory(address, size);
    write_memory(address, size, compute(a, before, operand, size));
    return before;
}

bool compare_exchange(operation o, void* address, unsigned size, std::uint64_t& expected,
                      std::uint64_t desired) noexcept {
    if (active != nullptr) {
        return active->compare_exchange(o, address, size, expected, desired);
    }
    const std::uint64_t before = read_memory(address, size);
    if (before != expected) {
        expected = before;
        return false;
    }
    write_memory(address, size, desired);
    return true;
}

void initialize(void* address, unsigned size, std::uint64_t value) noexcept {
    if (active == nullptr) {
        write_memory(address, size, value);
    } else {
        active->initialize(address, size, value);
    }
}

void destroy(void* address, unsigned size) noexcept {
    if (active != nullptr) {
        active->destroy(address, size);
    }
}

bool membarrier() noexcept { return active == nullptr || active->membarrier(); }

bool has_membarrier() noexcept { return active == nullptr || active->has_membarrier(); }

void wait(operation o) noexcept {
    if (active != nullptr) {
        active->wait(o);
    }
}

void sleep_on(const void* address, std::uint32_t expected) noexcept {
    running_exploration("sleep_on").sleep_on(address, expected);
}

void wake_all(const void* address) noexcept {
    if (active != nullptr) {
        active->wake_all(address);
    }
}

} // namespace detail

tracked_heap::tracked_heap(options o)
    : id_(running_exploration("tracked_heap").new_heap()), options_(o) {}

void* tracked_heap::allocate(std::size_t size, const char* block_name, std::size_t alignment) {
    return running_exploration("allocate")
        .allocate(size, block_name, alignment, id_,
                  options_.reuse == address_reuse::last_freed_first);
}

void tracked_heap::free(void* address) {
    running_exploration("free").free(address, id_, options_.fill_freed);
}

void tracked_heap::unmap(void* address, std::size_t size) {
    running_exploration("unmap").unmap(address, size);
}

bool tracked_heap::live(const void* address) const {
    auto& blocks = running_exploration("live").blocks();
    const block* b = blocks.contains(address) ? blocks.find(address) : nullptr;
    return b != nullptr && b->live;
}

std::size_t tracked_heap::live_blocks() const {
    return running_exploration("live_blocks").blocks().live_blocks(id_);
}

unsigned tracked_heap::generation(const void* address) const {
    auto& blocks = running_exploration("generation").blocks();
    const block* b = blocks.contains(address) ? blocks.find(address) : nullptr;
    return b == nullptr ? 0 : b->generation;
}

void access(const void* address, std::size_t size, bool write) {
    running_exploration("access").access(address, size, write, false);
}

void access_racy(const void* address, std::size_t size, bool write) {
    running_exploration("access_racy").access(address, size, write, true);
}

void racy_copy(void* target, const void* source, std::size_t size) {
    running_exploration("racy_copy").racy_copy(target, source, size);
}

permit_freed::permit_freed() { running_exploration("permit_freed").permit(+1); }

permit_freed::~permit_freed() { running_exploration("permit_freed").permit(-1); }

} // namespace obase::testing
