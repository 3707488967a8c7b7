// SPDX-License-Identifier: MIT
#include "audit/audit.hpp"

#include "audit/plain_units.hpp"
#include "os/own_memory.hpp"
#include "os/segment_fault.hpp"
#include "os/thread.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <new>

namespace obase::audit {

constinit bool active = false;
constinit thread_local place current_operation = nullptr;
constinit thread_local bool operation_ends = false;

namespace {

std::uint64_t number_of(const void* address) noexcept {
    return reinterpret_cast<std::uint64_t>(address);
}
void* address_of(std::uint64_t number) noexcept { return reinterpret_cast<void*>(number); }

bool on_fault(const void* address, const void* instruction, const std::uint64_t* registers,
              std::size_t count, const void* stack) noexcept {
    auditor* a = auditor::running();
    return a != nullptr && a->explain_fault(address, instruction, registers, count, stack);
}

} // namespace

auditor::auditor(registry& threads, directory& slots) noexcept
    : registry_(threads), slots_(slots), heap_(arenas_), mover_(threads, slots, heap_) {}

auditor* auditor::start(registry& threads, directory& slots, char* base, std::size_t bytes,
                        const settings& asked, const char** why) noexcept {
    const std::size_t own = heap::round_up(sizeof(auditor), os::page_size);
    void* const memory = os::reserve(own, os::page_size);
    if (memory == nullptr || os::commit(memory, own) != 0) {
        *why = "no memory for it";
        return nullptr;
    }
    auto* made = new (memory) auditor(threads, slots);
    if (!made->arenas_.create(base, bytes)) {
        *why = "no address space for what it knows of objects";
        return nullptr;
    }
    if (!made->mover_.reserve(batch)) {
        *why = "no memory for it";
        return nullptr;
    }
    made->findings_.open(asked.report, asked.known, asked.strict);
    running_ = made;
    made->watch_faults();
    return made;
}

void auditor::watch_faults() noexcept {
    os::watch_segment_faults(&on_fault, fault_stack_ + sizeof fault_stack_);
}

// True if no operation is open.
bool auditor::quiet(const thread_record* self) const noexcept {
    bool all = true;
    registry_.for_each_record(
        [&](const thread_record& r) { all = all && (&r == self || r.epoch.load_acquire() == 0); });
    return all;
}

void auditor::operation_ended(thread_record& own) noexcept {
    const thread_record* const self = &own;
    ++totals_.ends; // racy, and only told
    const std::unique_lock hold(one_at_a_time_, std::try_to_lock);
    if (!hold.owns_lock()) {
        ++totals_.busy;
        return;
    }
    const std::uint64_t now = os::thread_cpu_ns();
    if (audit_ns_ > free_ns && 2 * audit_ns_ > os::process_cpu_ns()) {
        ++totals_.late;
        return;
    }
    const std::uint64_t began = began_.load_acquire();
    if (!quiet(self)) {
        ++totals_.open;
        return;
    }
    watch_faults(); // the program may have put a handler of its own in the place
    // Objects that other threads retire from here on keep their memory: the mover copies from them, and what is noted
    // of their copies is read after those are published. The wait leaves out this thread.
    const struct inside {
        thread_record& own;
        inside(thread_record& r, const registry& all) noexcept : own(r) {
            mobility::enter_scope(own, all.epoch());
        }
        ~inside() { mobility::exit_scope(own, 0); }
        inside(const inside&) = delete;
        inside& operator=(const inside&) = delete;
    } stay(own, registry_);
    ++totals_.audited;
    ++window_;
    arenas_.close();
    collect();
    check(self, began);
    move_all(self);
    if (totals_.audited % search_every == 0) search();
    totals_.arenas = arenas_.dead();
    totals_.unprotected = arenas_.unprotected();
    audit_ns_ += os::thread_cpu_ns() - now;
}

// The slots behind the last batch, in the order of their addresses, and round.
void auditor::collect() noexcept {
    count_ = 0;
    bytes_ = 0;
    suspect_count_ = 0;
    mover_.forget();
    slots_.refresh();
    constexpr std::uintptr_t step = std::uintptr_t{1} << directory::page_shift;
    const auto from = [this](std::uintptr_t begin, std::uintptr_t end) {
        for (directory::leaf* l : slots_.leaves()) {
            const std::uintptr_t last = l->base + (std::uintptr_t{1} << directory::leaf_shift);
            if (last <= begin || l->base >= end) continue;
            for (std::uintptr_t at = std::max(l->base, begin); at < std::min(last, end);
                 at = (at / step + 1) * step) {
                slots_.scan(*l, at, std::min({last, end, (at / step + 1) * step}),
                            [&](std::uintptr_t base, directory::word bits) {
                                for (; bits != 0 && !batch_is_full(); bits &= bits - 1) {
                                    const std::uintptr_t s =
                                        base + 8u * static_cast<unsigned>(std::countr_zero(bits));
                                    visit(*static_cast<slot*>(address_of(s)));
                                    cursor_ = s + 8;
                                }
                            });
                if (batch_is_full()) return true;
            }
        }
        return false;
    };
    // What has moved lies behind the others, and would be met again and again; so each once in a round.
    const std::uintptr_t begin = cursor_;
    if (!from(begin, ~std::uintptr_t{0})) {
        ++round_;
        if (!from(0, begin)) cursor_ = 0;
    }
    std::sort(entries_, entries_ + count_,
              [](const entry& a, const entry& b) { return a.at < b.at; });
}

// Inside a visit of the directory: no allocation, no wait.
void auditor::visit(slot& s) noexcept {
    const std::uint64_t object = word::arming::address(s.load_acquire());
    // An address inside of an object is nobody's to move.
    if (!arenas_.contains(address_of(object)) || object % arenas::grain != 0) return;
    record& r = arenas_.at(address_of(object));
    const auto window = static_cast<std::uint32_t>(window_);
    if (r.seen != window) r.stays = false;
    r.seen = window;
    if (r.state == life::retired || r.state == life::freed) {
        suspect(kind::freed_in_slot, s, object, 0);
    } else if (r.state == life::moved) { // the other field took it along
        if (const void* now = arenas_.moved_to(r); now != nullptr)
            suspect(kind::two_slots, s, object, arenas_.at(now).slot);
    } else if (r.state == life::live) {
        if (r.slot != 0 && r.slot != number_of(&s) && holds(r.slot, object)) {
            suspect(kind::two_slots, s, object, r.slot);
            r.stays = true;
        }
        r.slot = number_of(&s);
        r.stored = made_of(&s);
        if (r.round == round_) return;
        const mobility::observation seen = mover_.visit(s, {window_, true});
        entry& e = entries_[count_++];
        e = {&s, object, none, round_, false};
        bytes_ += r.size();
        if (seen.movable && mover_.add_candidate(s, seen, 1))
            e.candidate = mover_.candidates().size() - 1;
    }
}

// Nothing keeps its memory there between the test and the read: it may be a stack.
bool auditor::holds(std::uint64_t s, std::uint64_t object) const noexcept {
    std::uint64_t word = 0;
    return slots_.test(address_of(s)) &&
           os::read_own_memory(s, &word, sizeof word) == sizeof word &&
           word::arming::address(word) == object;
}

void auditor::suspect(kind what, const slot& s, std::uint64_t object,
                      std::uint64_t other) noexcept {
    if (suspect_count_ == std::size(suspects_)) return;
    suspicion& one = suspects_[suspect_count_++];
    one = suspicion{{}, number_of(&s), other, false};
    one.told.what = what;
    one.told.object = object;
    one.told.known = arenas_.at(address_of(object));
    one.told.known.stored = made_of(&s);
    if (one.told.known.operation == nullptr) one.told.known.operation = current_operation;
    if (other != 0) one.told.second = made_of(address_of(other));
}

// What was seen while no operation was open, and is still so.
void auditor::check(const thread_record* self, std::uint64_t began) noexcept {
    if (suspect_count_ == 0) return;
    for (std::size_t i = 0; i < suspect_count_; ++i)
        suspects_[i].holds = holds(suspects_[i].slot, suspects_[i].told.object);
    if (!quiet(self) || began_.load_acquire() != began) return;
    for (std::size_t i = 0; i < suspect_count_; ++i)
        if (suspects_[i].holds) findings_.add(suspects_[i].told);
}

void auditor::move_all(const thread_record* self) noexcept {
    unsigned patience = 10000;
    const auto give_up = [&patience](const thread_record&) { return --patience == 0; };
    if (mover_.wait_for_grace_period(self, give_up) == mobility::wait_result::given_up) return;
    arenas_.keep_dead();
    for (std::size_t i = 0; i < count_; ++i)
        if (!entries_[i].expanded) move_with_inner(i);
    arenas_.bury_dead();
    mover_.finish();
}

// An object that moves takes its slots along, and the entries that name them would name nothing. So what
// they hold moves before. An entry is expanded once, so a ring ends.
void auditor::move_with_inner(std::size_t first) noexcept {
    std::size_t depth = 0;
    const auto push = [&](std::size_t number) {
        entries_[number].expanded = true;
        stack_[depth++] = number;
    };
    push(first);
    while (depth != 0) {
        const entry& e = entries_[stack_[depth - 1]];
        const std::uint64_t end = e.object + arenas_.at(address_of(e.object)).size();
        const entry* inner =
            std::lower_bound(entries_, entries_ + count_, e.object,
                             [](const entry& a, std::uint64_t at) { return number_of(a.at) < at; });
        while (inner != entries_ + count_ && number_of(inner->at) < end && inner->expanded) ++inner;
        if (inner != entries_ + count_ && number_of(inner->at) < end)
            push(static_cast<std::size_t>(inner - entries_));
        else
            move_one(stack_[--depth]);
    }
}

void auditor::move_one(std::size_t number) noexcept {
    const entry& e = entries_[number];
    const record& known = arenas_.at(address_of(e.object));
    if (e.candidate == none || known.stays) return;
    // Freed by an operation that has ended while this waited: its slot may keep it until the object around the slot is
    // gone. Who frees it from here on has touched the slot since the wait.
    if (known.state != life::live) return;
    mobility::moved_object moved;
    if (mover_.move(mover_.candidates()[e.candidate], window_, moved) !=
        mobility::move_result::moved)
        return;
    ++totals_.moved;
    after_move(moved, e.round);
}

void auditor::after_move(const mobility::moved_object& moved, std::uint32_t round) noexcept {
    const record& old = arenas_.at(address_of(moved.from));
    record& fresh = arenas_.at(address_of(moved.to));
    fresh.allocated = old.allocated;
    fresh.stored = old.stored;
    fresh.slot = old.slot;
    fresh.seen = static_cast<std::uint32_t>(window_);
    fresh.round = round;
    fresh.moves = static_cast<std::uint8_t>(std::min(old.moves + 1, 255));
    if (old.moves == 0) ++totals_.objects;
    const std::size_t words = old.size() / 8;
    for (std::size_t i = 0; i < words; ++i) {
        const std::uint64_t at = moved.to + 8 * i;
        place* const made = arenas_.slot_place(address_of(moved.from + 8 * i));
        // Published by now: who has made a slot of it since knows better.
        if (place& now = *arenas_.slot_place(address_of(at)); now == nullptr) now = *made;
        const std::uint64_t word = static_cast<const slot*>(address_of(at))->load_relaxed();
        const std::uint64_t object = word::arming::address(word);
        if (!arenas_.contains(address_of(object))) continue;
        record& held = arenas_.at(address_of(object & ~std::uint64_t{arenas::grain - 1}));
        if (moved.nested_slots != 0 && slots_.test(address_of(at)))
            held.slot = at;
        else if (word == object && held.state == life::moved)
            keeps_old(moved, i, word, held);
    }
}

// A word of an object, no slot, has an address from before. It is garbage of no one: memory of managed objects is zero
// at first.
void auditor::keeps_old(const mobility::moved_object& in, std::size_t word, std::uint64_t value,
                        const record& old) noexcept {
    const void* now = arenas_.moved_to(old);
    if (now == nullptr || arenas_.at(now).state != life::moved) return;
    finding f;
    f.what = kind::kept_address;
    f.object = value;
    f.known = old;
    std::snprintf(f.where, sizeof f.where, "the object's own memory, at offset %zu of %zu bytes",
                  8 * word, in.bytes);
    f.second = arenas_.at(address_of(in.to)).stored;
    findings_.add(f);
}

void auditor::touched(const slot& s) noexcept {
    const std::uint64_t object = word::arming::address(s.load_relaxed());
    if (arenas_.contains(address_of(object)))
        arenas_.at(address_of(object)).operation = current_operation;
}

void auditor::retired(const void* object, place caller) noexcept {
    if (!arenas_.contains(object)) return;
    record& r = arenas_.at(object);
    r.freed = caller;
    if (r.operation == nullptr) r.operation = current_operation;
    r.state = life::retired;
}

void auditor::note(kind what, const void* object, place caller) noexcept {
    finding f;
    f.what = what;
    f.at = caller;
    f.at_is_return = true;
    f.object = number_of(object);
    if (object != nullptr && arenas_.contains(object)) f.known = arenas_.at(object);
    findings_.add(f);
}

place auditor::made_of(const void* s) const noexcept {
    const place* const made = arenas_.slot_place(s);
    return made != nullptr ? *made : places_.find(s);
}

void auditor::slot_made(const void* s, place caller) noexcept {
    if (place* made = arenas_.slot_place(s); made != nullptr)
        *made = caller;
    else
        places_.put(s, caller);
}

void auditor::slot_moved(const void* from, const void* to) noexcept {
    if (const place made = made_of(from); made != nullptr) slot_made(to, made);
}

bool auditor::explain_fault(const void* address, const void* instruction,
                            const std::uint64_t* registers, std::size_t count,
                            const void* stack) noexcept {
    finding f;
    f.at = instruction;
    if (arenas_.contains(address)) {
        f.what = kind::stale_use;
        f.object = number_of(address);
        const char* begin = static_cast<const char*>(address);
        if (const record* r = arenas_.find(address, &begin); r != nullptr) {
            f.known = *r;
            find_holders(begin, r->size(), stack, f.where, sizeof f.where);
        }
    } else if (address == nullptr) {
        // The word of a slot that was taken for an address: one of the registers has it.
        for (std::size_t i = 0; i < count && f.object == 0; ++i) {
            const std::uint64_t object = word::arming::address(registers[i]);
            if (word::arming::is_plain(registers[i]) || !arenas_.contains(address_of(object)))
                continue;
            f.what = kind::raw_word;
            f.object = object;
            f.known = arenas_.at(address_of(object));
        }
        if (f.object == 0) return false;
    } else {
        return false;
    }
    findings_.add(f);
    findings_.tell(totals_, true);
    return true;
}

bool auditor::finish() noexcept {
    if (one_at_a_time_.try_lock()) {
        follow_words();
        one_at_a_time_.unlock();
    }
    try {
        for_each_call_from_plain_units(
            [](void* self, const void* at, const char* function) noexcept {
                finding f;
                f.what = kind::plain_unit;
                f.at = at;
                f.at_is_return = true;
                std::snprintf(f.where, sizeof f.where, "%s", function);
                static_cast<auditor*>(self)->findings_.add(f);
            },
            this);
    } catch (const std::bad_alloc&) {
    }
    return findings_.tell(totals_, false);
}

void auditor::fork_prepare() noexcept {
    one_at_a_time_.lock();
    places_.fork_prepare();
    arenas_.fork_prepare();
}
void auditor::fork_parent() noexcept {
    arenas_.fork_parent();
    places_.fork_parent();
    one_at_a_time_.unlock();
}
void auditor::fork_child() noexcept {
    arenas_.fork_child();
    places_.fork_child();
    ::new (&one_at_a_time_) std::mutex;
    findings_.forget();
    totals_ = {};
}

} // namespace obase::audit
