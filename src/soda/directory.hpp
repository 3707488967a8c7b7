// SPDX-License-Identifier: MIT
//
// SODA, the sparse object data activity directory (OBASE 4.3): which words of memory are slots.
//
// One bit per 8-byte position of the 47-bit user address space, in two levels. The root has an
// entry for every 16 MiB; a leaf is a 256 KiB bitmap whose pages exist only where slots do (4 KiB
// of bitmap for 256 KiB of memory), and a 64-bit summary with one bit for each bitmap page. Leaves
// are made when the first slot of their 16 MiB appears and unmapped when the last is gone.
//
// Threads: set, clear, clear_range, any_in, test and the traces by any thread, inside a scope; has_leaf_in
// also outside of one. Everything else by the one collector thread.
//
// Traces: slots may end before the memory that they are in is freed, as those of an object with a
// destructor do. A second bitmap says where, for functions that free the memory: operations of
// other threads may be looking at it. The collector takes no notice of traces, but that a leaf with
// traces stays.
//
// The visit handshake (R8, R10), both halves:
//   collector, begin_visit()   publishes the bitmap word it is about to visit in `hazard_`
//                              (exchange, seq_cst), then reads the bits again (seq_cst), then
//                              touches only slots whose bit it saw; end_visit() releases the
//                              hazard.
//   destroyer, clear()         clears the bit (seq_cst RMW), then reads `hazard_` (seq_cst); if it
//                              names this bitmap word, waits until that one visit is over, and only
//                              then reads the slot's word and frees the memory around it.
// In the single order of the four seq_cst operations either the collector sees the bit cleared, or
// the destroyer sees the hazard. The hazard carries a sequence number, so the destroyer waits for
// one visit, not for a series of them. The collector never waits for anything inside a visit.
//
// Retiring an empty leaf, three steps with a wait for all scopes between them:
//   begin_retire()   marks the root entry. A set() that finds the mark removes it; one that loaded
//                    the entry before the mark is inside a scope that the first wait outlasts.
//   finish_retire()  unlinks the leaf if it is still empty and the entry still marked. A
//                    clear_range() or test() that loaded the entry before that is inside a scope
//                    that the second wait outlasts.
//   the next finish_retire() unmaps what the previous one unlinked.
#pragma once

#include <obase/word/atomic.hpp>

#include "os/memory.hpp"
#include "os/platform.hpp"
#include "os/waiting.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace obase::soda {

template <class P>
class directory {
  public:
    template <class T>
    using atomic = typename P::template atomic<T>;
    using word = std::uint64_t;

    static constexpr unsigned address_bits = 47;
    static constexpr unsigned leaf_shift = 24; // one leaf covers 16 MiB
    static constexpr unsigned word_shift = 9;  // one bitmap word covers 512 bytes
    static constexpr std::size_t words_per_leaf = std::size_t{1} << (leaf_shift - word_shift);
    static constexpr std::size_t words_per_page = 4096 / sizeof(word);
    static constexpr unsigned page_shift = word_shift + 9; // one page of the bitmap covers 256 KiB
    static_assert(words_per_page == std::size_t{1} << (page_shift - word_shift));
    static constexpr std::size_t root_entries = std::size_t{1} << (address_bits - leaf_shift);
    static_assert(words_per_leaf / words_per_page == 64, "the summary is one word");

    struct bitmap {
        atomic<word>* words;  // words_per_leaf of them, lazily backed
        atomic<word> summary; // which pages of `words` may have bits
    };
    struct leaf {
        bitmap slots;
        bitmap traces;
        std::uintptr_t base; // first address covered
        leaf* next_fresh;    // from set() to refresh()
    };

    directory() = default;
    directory(const directory&) = delete;
    directory& operator=(const directory&) = delete;
    ~directory() {
        if (root_ == nullptr) return;
        for (leaf* l = fresh_.load_acquire(); l != nullptr;) {
            leaf* next = l->next_fresh;
            release(l);
            l = next;
        }
        for (leaf* l : leaves_) release(l);
        for (leaf* l : unlinked_) release(l);
        os::release(root_, root_bytes);
    }

    // Maps the root (64 MiB of address space, pages on demand). False when there is no room: then
    // no slot is ever registered and nothing moves.
    bool open() noexcept {
        void* memory = map_zeroed(root_bytes);
        if (memory == nullptr) return false;
        root_ = static_cast<atomic<std::uintptr_t>*>(memory);
        return true;
    }

    bool is_open() const noexcept { return root_ != nullptr; }

    // Registers the slot. Its word must have been written before. Precondition: inside a scope.
    // False when no memory could be had: the slot then works as ever and its object stays where it
    // is.
    bool set(const void* slot) noexcept {
        leaf* l = leaf_for_set(address_of(slot));
        if (l == nullptr) return false;
        const std::size_t index = word_index(address_of(slot));
        note_page(l->slots, address_of(slot));
        // seq_cst: a collector that sees the bit sees the slot's word.
        l->slots.words[index].fetch_or_seq_cst(bit_of(address_of(slot)));
        return true;
    }

    // Unregisters the slot and waits out a visit under way. Precondition: inside a scope. After it
    // the collector does not touch the slot's memory any more (O3).
    void clear(const void* slot) noexcept {
        leaf* l = find(address_of(slot));
        if (l == nullptr) return;
        l->slots.words[word_index(address_of(slot))].fetch_and_seq_cst(~bit_of(address_of(slot)));
        wait_for_visit_of(address_of(slot));
    }

    // The same without waiting, for a directory that no collector visits. True if it was registered.
    bool take(const void* slot) noexcept {
        leaf* l = find(address_of(slot));
        if (l == nullptr) return false;
        const word bit = bit_of(address_of(slot));
        return (l->slots.words[word_index(address_of(slot))].fetch_and_seq_cst(~bit) & bit) != 0;
    }

    // Unregisters every slot in [begin, end): for arenas, unmapped containers, bulk frees. In a
    // scope. Cost: one test per 16 MiB, one per 256 KiB in use, one RMW per bitmap word with a
    // slot.
    void clear_range(const void* begin, const void* end) noexcept {
        for_each_nonempty(&leaf::slots, address_of(begin), address_of(end),
                          [this](atomic<word>& bits, std::uintptr_t base, word mask) {
                              bits.fetch_and_seq_cst(~mask);
                              wait_for_visit_of(base);
                          });
    }

    // Says of the word that memory around it, which will be freed, has had slots. Precondition:
    // inside a scope. False when no memory could be had. Relaxed: the program itself sees to it
    // that memory is freed after what is in it has ended.
    bool leave_trace(const void* at) noexcept {
        leaf* l = leaf_for_set(address_of(at));
        if (l == nullptr) return false;
        note_page(l->traces, address_of(at));
        atomic<word>& bits = l->traces.words[word_index(address_of(at))];
        if ((bits.load_relaxed() & bit_of(address_of(at))) == 0)
            bits.fetch_or_relaxed(bit_of(address_of(at)));
        return true;
    }
    // Precondition: inside a scope.
    bool any_trace_in(const void* begin, const void* end) noexcept {
        return any_bit(&leaf::traces, address_of(begin), address_of(end));
    }
    // Precondition: inside a scope.
    void remove_traces(const void* begin, const void* end) noexcept {
        for_each_nonempty(
            &leaf::traces, address_of(begin), address_of(end),
            [](atomic<word>& bits, std::uintptr_t, word mask) { bits.fetch_and_relaxed(~mask); });
    }

    // True if there may be slots or traces in [begin, end). In a scope or not. Cost: one load, and
    // one more for each border of 16 MiB between them.
    bool has_leaf_in(const void* begin, const void* end) const noexcept {
        if (root_ == nullptr || begin >= end || address_of(end) > std::uintptr_t{1} << address_bits)
            return false;
        const std::uintptr_t first = address_of(begin) >> leaf_shift;
        const std::uintptr_t last = (address_of(end) - 1) >> leaf_shift;
        return root_[first].load_acquire() != 0 || (first < last && any_leaf(first + 1, last));
    }

    // True if any slot in [begin, end) is registered. Precondition: inside a scope. Cost: as
    // clear_range(); one load of the summary for an object among others that hold no slots.
    bool any_in(const void* begin, const void* end) noexcept {
        const std::uintptr_t first = address_of(begin);
        const std::uintptr_t last = address_of(end) - 1;
        if (first >> page_shift == last >> page_shift && !any_near(begin)) return false;
        return any_bit(&leaf::slots, first, last + 1);
    }
    // True if a slot is registered in [begin, end), or a trace is there. Precondition: inside a scope. Cost: for a
    // block of up to 512 bytes four loads, for others as any_in().
    bool any_slot_or_trace_in(const void* begin, const void* end) noexcept {
        const std::uintptr_t first = address_of(begin);
        const std::uintptr_t last = address_of(end) - 1;
        if (first >> page_shift == last >> page_shift) [[likely]] {
            leaf* const l = find(first);
            if (l == nullptr) return false;
            if (((l->slots.summary.load_seq_cst() | l->traces.summary.load_seq_cst()) &
                 page_bit(first)) == 0)
                return false;
            if ((last >> word_shift) - (first >> word_shift) <= 1)
                return ((bits_at(*l, first) & mask_of(floor_of(first), first, last + 1)) |
                        (bits_at(*l, last) & mask_of(floor_of(last), first, last + 1))) != 0;
        }
        return any_bit(&leaf::slots, first, last + 1) || any_bit(&leaf::traces, first, last + 1);
    }
    // True if a slot may be registered in the 256 KiB, a multiple of that on, in which the address
    // lies. Precondition: inside a scope. Cost: two dependent loads.
    bool any_near(const void* address) const noexcept {
        const leaf* l = find(address_of(address));
        return l != nullptr &&
               (l->slots.summary.load_seq_cst() & page_bit(address_of(address))) != 0;
    }

    bool test(const void* slot) const noexcept {
        leaf* l = find(address_of(slot));
        return l != nullptr && (l->slots.words[word_index(address_of(slot))].load_seq_cst() &
                                bit_of(address_of(slot))) != 0;
    }

    // Collector: takes in leaves made since the last call; leaves() is then sorted by address.
    // Those for which there is no room in the list stay where they are until the next call.
    void refresh() noexcept {
        leaf* fresh = fresh_.exchange_acq_rel(nullptr);
        if (fresh == nullptr) return;
        try {
            for (; fresh != nullptr; fresh = fresh->next_fresh) leaves_.push_back(fresh);
        } catch (const std::bad_alloc&) {
            leaf* last = fresh;
            while (last->next_fresh != nullptr) last = last->next_fresh;
            push_fresh(fresh, last);
        }
        std::sort(leaves_.begin(), leaves_.end(),
                  [](const leaf* a, const leaf* b) { return a->base < b->base; });
    }
    const std::vector<leaf*>& leaves() const noexcept { return leaves_; }
    leaf* leaf_of(const void* address) const noexcept { return find(address_of(address)); }

    // Collector: visits every bitmap word of the leaf within [begin, end) that has bits:
    // visit(slots_base, bits) with the hazard held; bit i stands for the slot at slots_base + 8 i.
    // Inside, the slots whose bit is in `bits` may be read and compare-exchanged, and nothing may
    // wait. after() follows each visit, without the hazard: it may do what takes longer. Returns true
    // if any word had bits.
    template <class Visit, class After>
    bool scan(leaf& l, std::uintptr_t begin, std::uintptr_t end, Visit&& visit, After&& after) {
        bool any = false;
        begin = std::max(begin, l.base);
        end = std::min(end, l.base + (std::uintptr_t{1} << leaf_shift));
        if (begin >= end) return false;
        const std::size_t first = word_index(begin);
        const std::size_t last = word_index(end - 1);
        word summary = l.slots.summary.load_seq_cst();
        summary &= ~word{0} << first / words_per_page;
        summary &= ~word{0} >> (63 - last / words_per_page);
        while (summary != 0) {
            const auto page = static_cast<std::size_t>(std::countr_zero(summary));
            summary &= summary - 1;
            const std::size_t page_first = std::max(first, page * words_per_page);
            const std::size_t page_last = std::min(last, (page + 1) * words_per_page - 1);
            for (std::size_t i = page_first; i <= page_last; ++i) {
                prefetch_slots(l, i + prefetch_distance, page_last);
                if (l.slots.words[i].load_relaxed() == 0) continue;
                const std::uintptr_t base = l.base + (i << word_shift);
                hold(base);
                const word bits = l.slots.words[i].load_seq_cst() & mask_of(base, begin, end);
                if (bits != 0) visit(base, bits);
                end_visit();
                if (bits == 0) continue;
                any = true;
                after();
            }
        }
        return any;
    }
    template <class Visit>
    bool scan(leaf& l, std::uintptr_t begin, std::uintptr_t end, Visit&& visit) {
        return scan(l, begin, end, visit, [] {});
    }

    // The same of all leaves in [begin, end), which has as many as its length says: for single objects.
    template <class Visit>
    void scan_range(std::uintptr_t begin, std::uintptr_t end, Visit&& visit) {
        for (std::uintptr_t at = begin; at < end; at = ((at >> leaf_shift) + 1) << leaf_shift)
            if (leaf* l = find(at); l != nullptr) scan(*l, at, end, visit);
    }

    // Collector: begins a visit of one slot. False, and no visit, if it is not registered any more.
    bool begin_visit(const void* slot) noexcept {
        hold(address_of(slot));
        if (test(slot)) return true;
        end_visit();
        return false;
    }
    void end_visit() noexcept {
        hazard_.store_release(0); // pairs with wait_for_visit_of()
        visit_ended_.notify();
    }

    // Collector: registers at `to + k` every slot registered at `from + k`, k < size (R11). Returns
    // how many. The destination must hold the copied words already. -1: no memory, nothing was set.
    std::ptrdiff_t copy_slots(const void* from, const void* to, std::size_t size) noexcept {
        std::ptrdiff_t count = 0;
        bool failed = false;
        const std::uintptr_t source = address_of(from);
        const std::uintptr_t target = address_of(to);
        for_each_nonempty(&leaf::slots, source, source + size,
                          [&](atomic<word>& bits, std::uintptr_t base, word mask) {
                              for (word left = bits.load_seq_cst() & mask; left != 0;
                                   left &= left - 1) {
                                  const std::uintptr_t slot = base + 8u * bit_number(left);
                                  if (failed) return;
                                  if (!set(pointer_to(target + (slot - source)))) failed = true;
                                  ++count;
                              }
                          });
        if (!failed) return count;
        clear_unvisited(to, size);
        return -1;
    }

    // Collector: unregisters all slots of an object that no other thread can reach: no handshake
    // needed.
    void clear_unvisited(const void* object, std::size_t size) noexcept {
        const std::uintptr_t begin = address_of(object);
        for_each_nonempty(
            &leaf::slots, begin, begin + size,
            [](atomic<word>& bits, std::uintptr_t, word mask) { bits.fetch_and_seq_cst(~mask); });
    }

    // Collector: no bit is set now, of a slot or a trace. Reads the bitmaps only, not the memory they cover.
    bool looks_empty(const leaf& l) const noexcept {
        return looks_empty(l.slots) && looks_empty(l.traces);
    }
    bool has_unlinked() const noexcept { return !unlinked_.empty(); }

    // Collector: marks a leaf that looks empty, before a wait.
    void begin_retire(leaf& l) noexcept {
        std::uintptr_t entry = reinterpret_cast<std::uintptr_t>(&l);
        root_[l.base >> leaf_shift].cas_seq_cst(entry, entry | retiring_mark);
    }

    // Collector: after the wait that followed begin_retire(); unlinks the leaves that stayed empty
    // and unmaps those that the call before unlinked. Returns how many it unlinked: none where
    // there is no memory to note them.
    std::size_t finish_retire() noexcept {
        for (leaf* l : unlinked_) release(l);
        unlinked_.clear();
        try {
            unlinked_.reserve(leaves_.size());
        } catch (const std::bad_alloc&) {
            cancel_retire();
            return 0;
        }
        std::erase_if(leaves_, [&](leaf* l) {
            const std::uintptr_t plain = reinterpret_cast<std::uintptr_t>(l);
            atomic<std::uintptr_t>& place = root_[l->base >> leaf_shift];
            if (place.load_seq_cst() != (plain | retiring_mark)) return false;
            std::uintptr_t entry = plain | retiring_mark;
            if (!looks_empty(*l)) {
                place.cas_seq_cst(entry, plain);
                return false;
            }
            if (!place.cas_seq_cst(entry, 0)) return false;
            unlinked_.push_back(l);
            return true;
        });
        return unlinked_.size();
    }

    // Collector: gives up a retirement whose wait was given up.
    void cancel_retire() noexcept {
        for (leaf* l : leaves_) {
            std::uintptr_t entry = reinterpret_cast<std::uintptr_t>(l) | retiring_mark;
            root_[l->base >> leaf_shift].cas_seq_cst(entry, entry & ~retiring_mark);
        }
    }

    // Bitmap bytes in use (pages named by the summaries, and the leaf headers). Collector.
    std::size_t bytes() const noexcept {
        std::size_t total = 0;
        for (const leaf* l : leaves_)
            total += sizeof(leaf) + 4096 * static_cast<std::size_t>(
                                               std::popcount(l->slots.summary.load_relaxed()) +
                                               std::popcount(l->traces.summary.load_relaxed()));
        return total;
    }

    // Child of a fork: the collector that may have held the hazard does not exist (R14).
    void forget_visit() noexcept {
        hazard_.store_relaxed(0);
        visit_ended_.forget_waiters();
    }

  private:
    static constexpr std::uintptr_t retiring_mark = 1;
    static constexpr std::size_t root_bytes = root_entries * sizeof(std::uintptr_t);
    static constexpr std::size_t prefetch_distance = 8;
    // hazard_: bitmap word number in the low bits, visit sequence number in the others; 0 = none.
    static constexpr unsigned key_bits = address_bits - word_shift;
    static constexpr std::uint64_t key_mask = (std::uint64_t{1} << key_bits) - 1;

    static std::uintptr_t address_of(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }
    static void* pointer_to(std::uintptr_t a) noexcept { return reinterpret_cast<void*>(a); }
    static std::size_t word_index(std::uintptr_t a) noexcept {
        return (a >> word_shift) & (words_per_leaf - 1);
    }
    // Of the summary.
    static word page_bit(std::uintptr_t a) noexcept {
        return word{1} << (word_index(a) / words_per_page);
    }
    static word bit_of(std::uintptr_t a) noexcept { return word{1} << ((a >> 3) & 63); }
    static unsigned bit_number(word bits) noexcept {
        return static_cast<unsigned>(std::countr_zero(bits));
    }

    // Bits of the bitmap word at `base` that lie in [begin, end).
    static word mask_of(std::uintptr_t base, std::uintptr_t begin, std::uintptr_t end) noexcept {
        word mask = ~word{0};
        if (begin > base) {
            const std::uintptr_t skip = (begin - base + 7) / 8;
            mask = skip >= 64 ? 0 : mask << skip;
        }
        if (end < base + (std::uintptr_t{1} << word_shift)) {
            const std::uintptr_t keep = (end - base + 7) / 8;
            mask &= keep >= 64 ? ~word{0} : (word{1} << keep) - 1;
        }
        return mask;
    }

    static std::uintptr_t floor_of(std::uintptr_t a) noexcept {
        return (a >> word_shift) << word_shift;
    }
    // Of slots and traces. A page of a bitmap without bits is read as the zero page.
    static word bits_at(const leaf& l, std::uintptr_t a) noexcept {
        return l.slots.words[word_index(a)].load_seq_cst() |
               l.traces.words[word_index(a)].load_seq_cst();
    }

    leaf* find(std::uintptr_t a) const noexcept {
        if (root_ == nullptr || (a >> address_bits) != 0) return nullptr;
        return reinterpret_cast<leaf*>(root_[a >> leaf_shift].load_acquire() & ~retiring_mark);
    }

    leaf* leaf_for_set(std::uintptr_t a) noexcept {
        if (root_ == nullptr || (a >> address_bits) != 0) return nullptr;
        atomic<std::uintptr_t>& place = root_[a >> leaf_shift];
        std::uintptr_t entry = place.load_acquire();
        for (;;) {
            if (entry == 0) {
                leaf* fresh = make_leaf(a);
                if (fresh == nullptr) return nullptr;
                if (place.cas_seq_cst(entry, reinterpret_cast<std::uintptr_t>(fresh))) {
                    push_fresh(fresh, fresh);
                    return fresh;
                }
                release(fresh);
            } else if ((entry & retiring_mark) != 0) {
                if (place.cas_seq_cst(entry, entry & ~retiring_mark))
                    return reinterpret_cast<leaf*>(entry & ~retiring_mark);
            } else {
                return reinterpret_cast<leaf*>(entry);
            }
        }
    }

    void push_fresh(leaf* first, leaf* last) noexcept {
        leaf* head = fresh_.load_relaxed();
        do {
            last->next_fresh = head;
        } while (!fresh_.cas_acq_rel(head, first));
    }

    // Header and bitmaps in one mapping; the header has a page of its own.
    static constexpr std::size_t leaf_header = 4096;
    static constexpr std::size_t bitmap_bytes = words_per_leaf * sizeof(word);
    static constexpr std::size_t leaf_bytes = leaf_header + 2 * bitmap_bytes;

    static void* map_zeroed(std::size_t bytes) noexcept {
        void* memory = os::reserve(bytes, 4096);
        if (memory != nullptr && os::commit(memory, bytes) != 0) {
            os::release(memory, bytes);
            memory = nullptr;
        }
        return memory;
    }

    static leaf* make_leaf(std::uintptr_t a) noexcept {
        void* memory = map_zeroed(leaf_bytes);
        if (memory == nullptr) return nullptr;
        leaf* l = new (memory) leaf{};
        char* words = static_cast<char*>(memory) + leaf_header;
        l->slots.words = reinterpret_cast<atomic<word>*>(words);
        l->traces.words = reinterpret_cast<atomic<word>*>(words + bitmap_bytes);
        l->base = (a >> leaf_shift) << leaf_shift;
        return l;
    }
    static void release(leaf* l) noexcept { os::release(l, leaf_bytes); }

    static bool looks_empty(const bitmap& bits) noexcept {
        for (word summary = bits.summary.load_seq_cst(); summary != 0; summary &= summary - 1) {
            const std::size_t first = bit_number(summary) * words_per_page;
            for (std::size_t i = first; i < first + words_per_page; ++i)
                if (bits.words[i].load_seq_cst() != 0) return false;
        }
        return true;
    }

    static void note_page(bitmap& bits, std::uintptr_t a) noexcept {
        if ((bits.summary.load_relaxed() & page_bit(a)) == 0)
            bits.summary.fetch_or_seq_cst(page_bit(a));
    }

    // use(bits, base, mask) for each word in [begin, end) of that bitmap that has bits under `mask`.
    template <class Use>
    void for_each_nonempty(bitmap leaf::* which, std::uintptr_t begin, std::uintptr_t end,
                           Use&& use) noexcept {
        constexpr std::uintptr_t page_span = std::uintptr_t{1} << page_shift;
        for (std::uintptr_t at = begin; at < end;) {
            leaf* l = find(at);
            if (l == nullptr) {
                at = ((at >> leaf_shift) + 1) << leaf_shift;
                continue;
            }
            const std::uintptr_t page_end = (at / page_span + 1) * page_span;
            bitmap& map = l->*which;
            if ((map.summary.load_seq_cst() & page_bit(at)) == 0) {
                at = page_end;
                continue;
            }
            for (; at < end && at < page_end; at = ((at >> word_shift) + 1) << word_shift) {
                const std::uintptr_t base = (at >> word_shift) << word_shift;
                atomic<word>& bits = map.words[word_index(at)];
                const word mask = mask_of(base, begin, end);
                if ((bits.load_seq_cst() & mask) != 0) use(bits, base, mask);
            }
        }
    }

    // Not inline, as any_bit(): most objects are small.
    [[gnu::noinline]] bool any_leaf(std::uintptr_t first, std::uintptr_t last) const noexcept {
        for (std::uintptr_t i = first; i <= last; ++i)
            if (root_[i].load_acquire() != 0) return true;
        return false;
    }

    // Not inline: callers mostly get by with the summary.
    [[gnu::noinline]] bool any_bit(bitmap leaf::* which, std::uintptr_t begin,
                                   std::uintptr_t end) noexcept {
        bool any = false;
        for_each_nonempty(which, begin, end,
                          [&any](atomic<word>&, std::uintptr_t, word) { any = true; });
        return any;
    }

    // Prefetching an address that is no longer mapped is harmless.
    void prefetch_slots(const leaf& l, std::size_t index, std::size_t last) const noexcept {
        if (index > last) return;
        word bits = l.slots.words[index].load_relaxed();
        const char* base = static_cast<const char*>(pointer_to(l.base + (index << word_shift)));
        for (unsigned line = 0; bits != 0; bits >>= 8, ++line)
            if ((bits & 0xff) != 0) __builtin_prefetch(base + 64 * line, 1);
    }

    void hold(std::uintptr_t a) noexcept {
        ++sequence_;
        hazard_.exchange_seq_cst((sequence_ << key_bits) | ((a >> word_shift) & key_mask));
    }

    void wait_for_visit_of(std::uintptr_t a) noexcept {
        const std::uint64_t seen = hazard_.load_seq_cst();
        if (seen == 0 || (seen & key_mask) != ((a >> word_shift) & key_mask)) return;
        // The visit takes some hundred nanoseconds, unless the collector lost its processor in it,
        // perhaps to this very thread: then sleep, or a real-time thread would wait for ever.
        visit_ended_.wait([&] { return hazard_.load_acquire() != seen; }); // pairs with end_visit()
    }

    atomic<std::uintptr_t>* root_ = nullptr;
    atomic<leaf*> fresh_;
    std::vector<leaf*> leaves_;   // collector: linked
    std::vector<leaf*> unlinked_; // collector: to be unmapped after one more wait
    std::uint64_t sequence_ = 0;  // collector
    alignas(64) atomic<std::uint64_t> hazard_;
    os::wait_point<P> visit_ended_; // on the hazard's line, which the collector owns
};

} // namespace obase::soda
