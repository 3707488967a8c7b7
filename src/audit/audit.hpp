// SPDX-License-Identifier: MIT
//
// The audit of a program with marked pointers (OBASE_AUDIT=1): it shows, while the program's own tests run, what no
// compiler can see of a program, an address that is used after its operation, an object with two owners.
//
// How: every managed object lives in arenas (arenas.hpp). When an operation ends and no other is open, no thread has
// a right to any address. At such moments, and at no others,
//   1. up to `batch` slots are visited, further on each time. An object that two of them hold, or that was
//      freed, is a finding;
//   2. the objects in them move, those inside of others first, by the mover of arming, as it stands: with
//      its waits, its exact words, its vetoes. So a race with a thread that enters is as safe as ever;
//   3. an arena that is empty by then becomes inaccessible. Whoever uses an address from before faults there,
//      and the handler says who let it out;
//   4. now and then memory outside of slots is searched for addresses of objects; a word that still has one
//      when the object has moved twice is suspected.
//
// For the arming protocol. In a program that is audited the collector moves nothing.
//
// Invariant of 1: a finding counts only if no operation began and none was open from before the visit to after
// it. `began_` counts operations, and every record's epoch is read on both sides.
//
// Threads: any; one audits at a time, the others go on without waiting.
// Cost: where it is off, a load and a test where a thread's first operation begins and where an object is freed. Where it is on, two
// calls per operation, and at an end up to `batch` copies; beyond `free_ns` of time it takes no
// more than the program.
#pragma once

#include "audit/arenas.hpp"
#include "audit/findings.hpp"
#include "audit/slot_places.hpp"
#include "mobility/arming_mover.hpp"
#include "mobility/scope_registry.hpp"
#include "os/own_memory.hpp"
#include "soda/directory.hpp"

#include <obase/export.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace obase::audit {

// True from before main() on, or never. Written before there is a second thread.
extern constinit bool active;
inline bool on() noexcept { return active; }

// The operation that the calling thread is in: where it was entered.
extern OBASE_TLS constinit thread_local place current_operation;
extern OBASE_TLS constinit thread_local bool operation_ends; // began, and was not looked at since

struct settings {
    const char* report = ""; // a file; "": standard error
    const char* known = "";
    bool strict = false;
};

// What the mover knows as its heap.
class moving_heap {
  public:
    explicit moving_heap(arenas& all) noexcept : all_(all) {}
    struct object_info {
        std::size_t size;
        heap::attributes attr;
    };
    bool contains(const void* address) const noexcept { return all_.contains(address); }
    object_info info(const void* object) const noexcept {
        const record& r = all_.at(object);
        if (r.state != life::live) return {0, {}};
        return {r.size(), {r.log2_alignment, false}};
    }
    void* allocate_dense(unsigned, std::size_t size, heap::attributes attr) noexcept {
        target_ = all_.allocate(size, std::size_t{1} << attr.log2_alignment, nullptr);
        return target_;
    }
    void undo_allocate_dense(void* object) noexcept { all_.undo(object); }
    void free(void* object) noexcept { all_.moved_away(object, target_); }

  private:
    arenas& all_;
    void* target_ = nullptr;
};

class auditor {
  public:
    using platform = os::native_platform;
    using registry = mobility::scope_registry<platform>;
    using thread_record = mobility::thread_record<platform>;
    using directory = soda::directory<platform>;
    using mover = mobility::arming_mover<platform, moving_heap>;
    using slot = mover::slot_atomic;

    static constexpr std::size_t batch = 512;                          // slots at one end
    static constexpr std::size_t batch_bytes = std::size_t{256} << 10; // of objects, about
    static constexpr std::uint64_t free_ns =
        std::uint64_t{3} * 1000000000; // taken whatever the program takes
    static constexpr std::uint64_t search_every = 64;

    // One per process, never destroyed. Null: no memory; *why says so.
    static auditor* start(registry& threads, directory& slots, char* base, std::size_t bytes,
                          const settings& asked, const char** why) noexcept;
    static auditor* running() noexcept { return running_; }

    arenas& memory() noexcept { return arenas_; }

    // An operation of the calling thread has ended; its record shows so.
    void operation_ended(thread_record& own) noexcept;
    // A slot was touched for the first time since it was armed.
    void touched(const slot& s) noexcept;
    void slot_made(const void* s, place caller) noexcept;
    void slot_moved(const void* from, const void* to) noexcept;
    void retired(const void* object, place caller) noexcept;
    void note(kind what, const void* object, place caller) noexcept;

    // At exit: the last search, and all that was found. True if there are errors.
    bool finish() noexcept;
    // In the handler of a fault at `address`. True if it was the audit's, and all has been told.
    bool explain_fault(const void* address, const void* instruction, const std::uint64_t* registers,
                       std::size_t count, const void* stack) noexcept;

    void fork_prepare() noexcept;
    void fork_parent() noexcept;
    void fork_child() noexcept;

  private:
    auditor(registry& threads, directory& slots) noexcept;
    ~auditor() = default;

    struct entry { // a slot of the batch
        slot* at;
        std::uint64_t object;
        std::size_t candidate; // or `none`
        std::uint32_t round;   // in which it was met
        bool expanded;
    };
    struct word_entry { // outside of slots
        std::uint64_t at;
        std::uint64_t value;
        std::uint64_t object; // where it is now
        unsigned moves;
    };

    bool batch_is_full() const noexcept { return count_ == batch || bytes_ >= batch_bytes; }
    bool quiet(const thread_record* self) const noexcept;
    void collect() noexcept;
    void visit(slot& s) noexcept;
    void check(const thread_record* self, std::uint64_t began) noexcept;
    void suspect(kind what, const slot& s, std::uint64_t object, std::uint64_t other) noexcept;
    bool holds(std::uint64_t s, std::uint64_t object) const noexcept;
    void move_all(const thread_record* self) noexcept;
    void move_with_inner(std::size_t first) noexcept;
    void move_one(std::size_t number) noexcept;
    void after_move(const mobility::moved_object& moved, std::uint32_t round) noexcept;
    void keeps_old(const mobility::moved_object& in, std::size_t word, std::uint64_t value,
                   const record& old) noexcept;
    place made_of(const void* s) const noexcept;

    // search.cpp
    struct searched;
    void search() noexcept;
    void follow_words() noexcept;
    static void search_mapping(void* searched, const os::own_mapping& mapping);
    std::uintptr_t own_end(std::uintptr_t at) noexcept;
    void find_holders(const char* begin, std::size_t bytes, const void* stack, char* text,
                      std::size_t room) noexcept;
    void watch_faults() noexcept;

    static constexpr std::size_t none = ~std::size_t{0};
    static constexpr std::size_t most_words = 4096;
    static inline auditor* running_ = nullptr;

    registry& registry_;
    directory& slots_;
    arenas arenas_;
    moving_heap heap_;
    mover mover_;
    findings findings_;
    findings::totals totals_;
    std::mutex one_at_a_time_;
    std::uintptr_t cursor_ = 0; // where the next batch begins
    std::uint64_t window_ = 1;
    std::uint32_t round_ = 1;    // of the cursor through all slots
    std::uint64_t audit_ns_ = 0; // of processors
    entry entries_[batch];
    std::size_t count_ = 0;
    std::size_t bytes_ = 0; // of the objects of the batch
    struct suspicion {
        finding told;
        std::uint64_t slot;
        std::uint64_t other;
        bool holds = false;
    };
    suspicion suspects_[16]; // of this end, until it is known that it was quiet
    std::size_t suspect_count_ = 0;
    std::size_t stack_[batch];

    slot_places places_; // of slots outside of arenas

    alignas(16) char fault_stack_[64 << 10]; // of explain_fault()

    word_entry words_[most_words];
    std::size_t word_count_ = 0;
    std::uintptr_t search_from_ = 0; // where the next search of memory begins

  public:
    platform::atomic<std::uint64_t> began_; // operations
};

// Where an operation begins, outermost.
inline void operation_begins(place caller) noexcept {
    current_operation = caller;
    operation_ends = true;
    if (auditor* a = auditor::running(); a != nullptr) a->began_.fetch_add_acq_rel(1);
}

} // namespace obase::audit
