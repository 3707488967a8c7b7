// SPDX-License-Identifier: MIT
//
// Everything at once, watched from outside: readers without locks, writers that update in place,
// replace, destroy and rebuild, shelves of guides that are unmapped, nested guides, pins, retire,
// threads that come and go, and a collector that never rests, with freed memory poisoned.
//
// The property: for each place, the version a reader finds lies between the last one whose write
// had returned before the read began and the last one whose write had begun when it ended. A stale
// read, a lost write and a copy taken too early all break it. The log is this file's own; nothing
// of it comes from the collector or its counters. The long tier makes 10^9 dereferences.
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>
#include <obase/word/atomic.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t shelf_count = 32;
constexpr std::size_t places = 256; // per shelf
constexpr unsigned writer_count = 2;

// What an object says of itself in one atomic word: place 16, version 32, check 16.
constexpr std::uint64_t describe(std::size_t place, std::uint64_t version) {
    const std::uint64_t body = (static_cast<std::uint64_t>(place) << 32) | (version & 0xffffffffu);
    return (body * 0x9e3779b97f4a7c15u >> 48) | body << 16;
}
constexpr bool is_sound(std::uint64_t word) {
    const std::uint64_t body = word >> 16;
    return (body * 0x9e3779b97f4a7c15u >> 48) == (word & 0xffffu);
}
constexpr std::size_t place_of(std::uint64_t word) { return word >> 48; }
constexpr std::uint64_t version_of(std::uint64_t word) { return word >> 16 & 0xffffffffu; }

struct leaf {
    obase::word::native_atomic<std::uint64_t> word;
    explicit leaf(std::uint64_t w) : word(w) {}
};

template <class Protocol>
struct box {
    obase::word::native_atomic<std::uint64_t> word;
    obase::guide<leaf, Protocol> inner; // same place, any version the writer had begun by then
    std::uint64_t filler[9];            // 88 bytes in all
    box(std::uint64_t w, obase::owner<leaf, Protocol> i) : word(w), inner(std::move(i)), filler{} {}
};

} // namespace

template <>
struct obase::is_relocatable<leaf> : std::true_type {};
template <class Protocol>
struct obase::is_relocatable<box<Protocol>> : std::true_type {};

namespace {

template <class Protocol>
class world {
  public:
    using guide = obase::guide<box<Protocol>, Protocol>;
    using scope = obase::basic_scope<Protocol>;

    // Guides in a mapping of their own, which goes away as a whole.
    struct shelf {
        guide slots[places];
        static shelf* make() {
            void* memory = mmap(nullptr, sizeof(shelf), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED) throw std::bad_alloc();
            return ::new (memory) shelf;
        }
        // Readers may have pinned what was on it: the boxes are retired one by one, because a
        // guide's destructor frees at once. Then the guides end by their destructors ...
        static void destroy(void* memory) noexcept {
            auto* self = static_cast<shelf*>(memory);
            for (guide& g : self->slots) obase::retire(g.release());
            self->~shelf();
            munmap(memory, sizeof(shelf));
        }
        // ... or are forgotten together.
        static void forget(void* memory) noexcept {
            auto* self = static_cast<shelf*>(memory);
            for (guide& g : self->slots) obase::retire(g.release());
            obase::forget_guides<Protocol>(memory, sizeof(shelf));
            munmap(memory, sizeof(shelf));
        }
    };

    world() : log_(std::make_unique<entry[]>(shelf_count * places)) {
        for (std::size_t s = 0; s < shelf_count; ++s) shelves_[s].store_seq_cst(filled(s));
    }
    ~world() {
        for (auto& s : shelves_) shelf::destroy(s.load_seq_cst());
    }

    std::uint64_t dereferences() const { return dereferences_.load_relaxed(); }
    std::uint64_t wrong() const { return wrong_.load_seq_cst(); }

    // One of `writer_count` writers; it owns the shelves that are its number modulo the count.
    void write(unsigned writer, const obase::word::native_atomic<bool>& stop) {
        std::uint64_t x = 99 + writer;
        while (!stop.load_relaxed()) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            const std::size_t s = x % (shelf_count / writer_count) * writer_count + writer;
            // Half of the work on few places, so that there are hot and cold ones.
            const std::size_t p = (x >> 20) % ((x & 64) != 0 ? 16 : places);
            switch (x >> 32 & 31) {
            case 0:
                rebuild(s, (x >> 40 & 1) != 0);
                break;
            case 1:
            case 2:
                replace(s, p);
                break;
            case 3:
                replace_inner(s, p);
                break;
            case 4:
                remove(s, p);
                break;
            default:
                update(s, p);
            }
        }
    }

    // A reader lives for `operations`.
    void read(std::uint64_t seed, std::uint64_t operations) {
        std::uint64_t x = seed * 0x9e3779b97f4a7c15u | 1;
        std::uint64_t done = 0;
        std::vector<pinned_box> pins;
        for (std::uint64_t i = 0; i < operations; ++i) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            const std::size_t s = x % shelf_count;
            const std::size_t p = (x >> 20) % ((x & 64) != 0 ? 16 : places);
            const entry& e = log_[s * places + p];
            const std::uint64_t returned = e.returned.load_seq_cst();
            // In this order: a removal that begins after the second load is counted after the
            // first.
            const std::uint64_t removals = e.removals.load_seq_cst();
            const bool removed = e.removed.load_seq_cst() != 0;
            scope one_operation;
            box<Protocol>* b = shelves_[s].load_acquire()->slots[p].get();
            ++done;
            if (b == nullptr) {
                // Looking at `removed` only now would miss a removal that has been undone since.
                if (!removed && e.removals.load_seq_cst() == removals)
                    fail("missing", s, p, 0, returned);
                continue;
            }
            const std::uint64_t word = b->word.load_relaxed();
            const std::uint64_t begun = e.begun.load_seq_cst();
            check(s, p, word, returned, begun);
            if (leaf* inner = b->inner.get(); inner != nullptr) {
                ++done;
                const std::uint64_t w = inner->word.load_relaxed();
                check(s, p, w, 0, e.begun.load_seq_cst());
            }
            if ((x >> 40 & 255) == 0)
                pins.push_back({obase::pin<box<Protocol>, Protocol>(b), word});
            if (pins.size() > 20) pins.clear();
            for (const pinned_box& held : pins) {
                const std::uint64_t now = held.pin->word.load_relaxed();
                if (!is_sound(now) || place_of(now) != place_of(held.word) ||
                    version_of(now) < version_of(held.word))
                    fail("pinned object changed", s, p, now, version_of(held.word));
            }
        }
        dereferences_.fetch_add_relaxed(done);
    }

    // When no thread writes any more, every place holds its last version.
    void check_end() {
        for (std::size_t s = 0; s < shelf_count; ++s) {
            for (std::size_t p = 0; p < places; ++p) {
                scope one_operation;
                const entry& e = log_[s * places + p];
                const box<Protocol>* b = shelves_[s].load_seq_cst()->slots[p].get();
                if (b != nullptr)
                    check(s, p, b->word.load_seq_cst(), e.returned.load_seq_cst(),
                          e.begun.load_seq_cst());
                else if (e.removed.load_seq_cst() == 0)
                    fail("lost", s, p, 0, e.returned.load_seq_cst());
            }
        }
    }

  private:
    struct entry {
        obase::word::native_atomic<std::uint64_t> begun{0};
        obase::word::native_atomic<std::uint64_t> returned{0};
        obase::word::native_atomic<std::uint64_t> removed{
            0}; // 1 from before a removal to after the next write
        obase::word::native_atomic<std::uint64_t> removals{
            0}; // begun: `removed` is set before it is counted
    };
    struct pinned_box {
        obase::pin<box<Protocol>, Protocol> pin;
        std::uint64_t word;
    };

    static std::size_t id(std::size_t s, std::size_t p) { return s * places + p; }

    std::uint64_t begin(std::size_t s, std::size_t p) {
        entry& e = log_[id(s, p)];
        const std::uint64_t version = e.begun.load_seq_cst() + 1;
        e.begun.store_seq_cst(version);
        return version;
    }
    void end(std::size_t s, std::size_t p, std::uint64_t version) {
        entry& e = log_[id(s, p)];
        e.returned.store_seq_cst(version);
        e.removed.store_seq_cst(0);
    }
    obase::owner<box<Protocol>, Protocol> fresh(std::size_t s, std::size_t p,
                                                std::uint64_t version) {
        const std::uint64_t word = describe(id(s, p), version);
        // Some are large.
        const std::size_t extra = p % 64 == 1 ? 20'000 : p % 256 == 2 ? 150'000 : 0;
        return obase::make_managed_with<box<Protocol>, Protocol>(
            {.extra_bytes = extra}, word, obase::make_managed<leaf, Protocol>(word));
    }
    shelf* filled(std::size_t s) {
        shelf* made = shelf::make();
        for (std::size_t p = 0; p < places; ++p) {
            const std::uint64_t version = begin(s, p);
            made->slots[p] = fresh(s, p, version);
        }
        return made;
    }

    // In place: lost if the object is copied at the wrong moment.
    void update(std::size_t s, std::size_t p) {
        scope one_operation;
        box<Protocol>* b = shelves_[s].load_seq_cst()->slots[p].get();
        if (b == nullptr) return;
        const std::uint64_t version = begin(s, p);
        b->word.store_relaxed(describe(id(s, p), version));
        end(s, p, version);
    }
    void replace(std::size_t s, std::size_t p) {
        const std::uint64_t version = begin(s, p);
        obase::retire(shelves_[s].load_seq_cst()->slots[p].exchange(fresh(s, p, version)));
        end(s, p, version);
    }
    void replace_inner(std::size_t s, std::size_t p) {
        scope one_operation;
        box<Protocol>* b = shelves_[s].load_seq_cst()->slots[p].get();
        if (b == nullptr) return;
        leaf* expected = b->inner.get();
        auto desired = obase::make_managed<leaf, Protocol>(
            describe(id(s, p), log_[id(s, p)].begun.load_seq_cst()));
        if (b->inner.compare_exchange(expected, desired)) obase::retire(std::move(desired));
    }
    void remove(std::size_t s, std::size_t p) {
        log_[id(s, p)].removed.store_seq_cst(1);
        log_[id(s, p)].removals.fetch_add_seq_cst(1);
        obase::retire(shelves_[s].load_seq_cst()->slots[p].release());
    }
    // A new mapping with new objects; the old one goes when no reader can be in it.
    void rebuild(std::size_t s, bool forget) {
        shelf* old = shelves_[s].load_seq_cst();
        shelf* made = filled(s);
        shelves_[s].store_seq_cst(made);
        for (std::size_t p = 0; p < places; ++p) end(s, p, log_[id(s, p)].begun.load_seq_cst());
        Protocol::retire(old, forget ? &shelf::forget : &shelf::destroy, sizeof(shelf));
    }

    void check(std::size_t s, std::size_t p, std::uint64_t word, std::uint64_t returned,
               std::uint64_t begun) {
        if (!is_sound(word) || place_of(word) != id(s, p))
            fail("not this object", s, p, word, returned);
        else if (version_of(word) < returned || version_of(word) > begun)
            fail("stale", s, p, word, returned);
    }
    void fail(const char* what, std::size_t s, std::size_t p, std::uint64_t word,
              std::uint64_t returned) {
        if (wrong_.fetch_add_seq_cst(1) < 10)
            std::fprintf(stderr, "%s: place %zu, found %llx (version %llu), returned %llu\n", what,
                         id(s, p), static_cast<unsigned long long>(word),
                         static_cast<unsigned long long>(version_of(word)),
                         static_cast<unsigned long long>(returned));
    }

    const std::unique_ptr<entry[]> log_;
    obase::word::native_atomic<shelf*> shelves_[shelf_count];
    obase::word::native_atomic<std::uint64_t> dereferences_{0};
    obase::word::native_atomic<std::uint64_t> wrong_{0};
};

template <class Protocol>
void run_stress() {
    auto& runtime = obase::testing::quiet_runtime<Protocol>();
    std::uint64_t wanted =
        obase::testing::scaled_for_build(10'000'000, 1'000'000'000, 100'000'000'000);
    // That mode ends every scope with the collector's lock.
    if (runtime.settings().debug_rearm) wanted /= 10;
    const std::uint64_t lifetime = std::min<std::uint64_t>(wanted / 20, 100'000);
    const auto before = runtime.statistics();
    std::uint64_t seen = 0;
    {
        world<Protocol> w;
        obase::word::native_atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < writer_count; ++t)
            threads.emplace_back([&, t] { w.write(t, stop); });
        threads.emplace_back([&] {
            while (!stop.load_relaxed()) runtime.collect_now();
        });
        std::vector<std::thread> readers;
        for (std::uint64_t life = 1; w.dereferences() < wanted && w.wrong() == 0; ++life) {
            // Readers come and go; two at a time.
            if (readers.size() == 2) {
                readers.front().join();
                readers.erase(readers.begin());
            }
            readers.emplace_back([&w, life, lifetime] { w.read(life, lifetime); });
        }
        for (auto& r : readers) r.join();
        stop.store_seq_cst(true);
        for (auto& t : threads) t.join();
        w.check_end();
        seen = w.dereferences();
        EXPECT_EQ(w.wrong(), 0u) << "stale reads or lost writes";
    }
    const auto now = runtime.statistics();
    std::printf("%s: %llu dereferences witnessed, %llu windows, %llu moves, %llu vetoed\n",
                Protocol::name, static_cast<unsigned long long>(seen),
                static_cast<unsigned long long>(now.windows - before.windows),
                static_cast<unsigned long long>(obase::testing::moves_of(now) -
                                                obase::testing::moves_of(before)),
                static_cast<unsigned long long>(now.vetoed_moves - before.vetoed_moves));
    EXPECT_GT(obase::testing::moves_of(now), obase::testing::moves_of(before))
        << "a stress test in which nothing moves proves nothing";
}

TEST(stress, arming) { run_stress<obase::arming>(); }
TEST(stress, atc) { run_stress<obase::atc>(); }

} // namespace
