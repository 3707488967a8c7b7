// SPDX-License-Identifier: MIT
//
// server::scan_table: a hash table that grows and shrinks a little at a time and can be scanned by a
// number, as the cursor of SCAN is.
//
// Extendible hashing (Fagin and others, 1979): a directory of segments, indexed by the first bits of
// a 32-bit hash; a segment that is full splits in two. A segment has up to 64 buckets of a
// cache line each, with five entries, their hashes, and how many entries were pushed past the
// bucket. The bucket is the rest of the hash as a fraction of 2^32, times the number of buckets, which
// grows by a fourth or less at a time, so that segments stay well filled. So entries lie in the order of their
// hashes, bucket by bucket, whatever the table's size: a cursor is the hash from which to go on,
// and stays right when segments split or merge between two calls. Whatever is in the table during
// a whole scan is visited at least once, and no more than once unless a hash is in both.
//
// Work per insertion or removal is bounded by a segment (320 entries), but for the directory, whose
// doubling copies 8 bytes per segment.
//
// An entry is 8 bytes and has begin_from(entry&), which takes over another one that ends. Hashes are
// compared before entries are: with the whole hash there, an entry that is not sought is hardly
// ever looked at. That keeps objects cold that nobody asks for.
//
// The caller may note three bits of an entry, which are 0 at first and go where the entry goes: what is to be known of it
// without looking at what it leads to.
//
// The hash must be seeded, so that a client cannot choose keys that collide. 320 keys of one hash of 32
// bits are refused by std::bad_alloc.
//
// Threads: none of its own; the caller's lock.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace crestdb::server {

template <class Entry>
class scan_table {
    static_assert(sizeof(Entry) == 8);

    static constexpr unsigned width = 5;
    static constexpr unsigned note_bits = 3;
    struct alignas(64) bucket {
        std::array<std::uint64_t, width> entries; // memory of Entry
        std::array<std::uint32_t, width> hashes;
        std::uint32_t used : width;             // bit i: entries[i] is there
        std::uint32_t notes : width* note_bits; // entries[i]'s at i * note_bits
        std::uint32_t overflow : 12; // entries that were put behind this bucket because it was full

        Entry& entry(unsigned i) noexcept { return reinterpret_cast<Entry&>(entries[i]); }
        unsigned note(unsigned i) const noexcept {
            return notes >> i * note_bits & ((1u << note_bits) - 1);
        }
        void set_note(unsigned i, unsigned note) noexcept {
            const unsigned others = notes & ~(((1u << note_bits) - 1) << i * note_bits);
            notes = (others | note << i * note_bits) & ((1u << width * note_bits) - 1);
        }
    };
    static_assert(sizeof(bucket) == 64);

    static constexpr unsigned most_buckets = 64;
    static constexpr unsigned most_depth = 26; // of a segment: 2^26 of them are enough
    static constexpr unsigned usual_reach =
        6; // buckets an entry may be pushed before the segment grows

    struct segment {
        bucket* buckets = nullptr;
        std::uint16_t count = 0;
        std::uint8_t depth = 0; // bits of the hash that all entries share
        std::uint8_t size = 0;  // buckets

        unsigned home(std::uint32_t hash) const noexcept {
            return static_cast<unsigned>((std::uint64_t{hash << depth} * size) >> 32);
        }
        unsigned behind(unsigned b) const noexcept { return b + 1 == size ? 0 : b + 1; }
    };

    // Four sizes per doubling, as usual allocators have them.
    static constexpr unsigned next_size(unsigned size) noexcept {
        if (size < 8) return size + 1;
        return size + std::bit_floor(size) / 4;
    }
    // Buckets for that many entries, with room for some more.
    static constexpr unsigned size_for(unsigned entries) noexcept {
        unsigned size = 1;
        while (size < most_buckets && size * width * 7 < entries * 8) size = next_size(size);
        return size;
    }

  public:
    scan_table() = default;
    scan_table(const scan_table&) = delete;
    scan_table& operator=(const scan_table&) = delete;
    // Entries that are left are not ended: see clear().
    ~scan_table() { release(); }

    std::size_t size() const noexcept { return size_; }
    // Bytes of the table itself.
    std::size_t bytes() const noexcept { return bytes_; }

    // The entry with that hash for which is(entry) holds; null if there is none.
    template <class Is>
    Entry* find(std::uint32_t hash, Is&& is) noexcept {
        const position at = locate(hash, is);
        return at.where == nullptr ? nullptr : &at.where->entry(at.index);
    }

    // The entry with that hash if there is no other with it, else null.
    Entry* find_only(std::uint32_t hash) noexcept {
        Entry* found = nullptr;
        unsigned count = 0;
        find(hash, [&](Entry& e) {
            found = &e;
            return ++count > 1;
        });
        return count == 1 ? found : nullptr;
    }

    // Of an entry in a table.
    static unsigned note_of(const Entry& e) noexcept { return bucket_of(e)->note(index_of(e)); }
    // `note`: 0 to 7.
    static void note(Entry& e, unsigned note) noexcept {
        bucket_of(e)->set_note(index_of(e), note);
    }

    // A new place for an entry with that hash, which the caller must begin before the next call. The
    // address is good until the next change of the table. Throws std::bad_alloc; no entry was added, bytes()
    // may have changed.
    Entry* insert(std::uint32_t hash) {
        for (;;) {
            segment* s = segment_of(hash);
            if (s == nullptr) {
                directory_.push_back(nullptr);
                try {
                    directory_.back() = make_segment(0, 1);
                } catch (...) {
                    directory_.clear();
                    throw;
                }
                continue;
            }
            const bool can_grow = s->size < most_buckets || can_split(*s);
            if (Entry* place = put(*s, hash, can_grow ? usual_reach : s->size); place != nullptr) {
                ++size_;
                return place;
            }
            if (s->size < most_buckets)
                resize(*s, next_size(s->size));
            else if (can_grow)
                split(hash);
            else
                throw std::bad_alloc();
        }
    }

    // Removes the entry, which end(entry) ends, if there is one. True: there was.
    template <class Is, class End>
    bool erase(std::uint32_t hash, Is&& is, End&& end) noexcept {
        const position at = locate(hash, is);
        if (at.where == nullptr) return false;
        end(at.where->entry(at.index));
        remove(hash, at);
        return true;
    }

    // Ends all entries and frees the memory.
    template <class End>
    void clear(End&& end) noexcept {
        each_bucket([&](bucket& b) {
            for (unsigned i = 0; i < width; ++i)
                if ((b.used >> i & 1) != 0) end(b.entry(i));
        });
        release();
    }

    // Visits the entries whose hash is at or after `cursor`, up to the end of one bucket's range.
    // Returns where to go on, 0 at the end. visit(entry) must not change the table.
    template <class Visit>
    std::uint32_t scan(std::uint32_t cursor, Visit&& visit) {
        segment* s = segment_of(cursor);
        if (s == nullptr) return 0;
        const unsigned home = s->home(cursor);
        for (unsigned i = 0, b = home; i < s->size; ++i, b = s->behind(b)) {
            bucket& in = s->buckets[b];
            for (unsigned e = 0; e < width; ++e)
                if ((in.used >> e & 1) != 0 && s->home(in.hashes[e]) == home &&
                    in.hashes[e] >= cursor)
                    visit(in.entry(e), in.hashes[e]);
            if (in.overflow == 0) break;
        }
        // The first hash of the next bucket; its 32 bits wrap to 0 behind the last one.
        const std::uint64_t fraction = ((std::uint64_t{home + 1} << 32) + s->size - 1) / s->size;
        const std::uint64_t in_segment = (fraction + (1u << s->depth) - 1) >> s->depth;
        const std::uint64_t first = s->depth == 0 ? 0 : cursor & ~(~std::uint32_t{0} >> s->depth);
        return static_cast<std::uint32_t>(first + in_segment);
    }

    // Visits some entries beside each other, from a place chosen by `random`: at least `wanted` of
    // them, or all. For samples.
    template <class Visit>
    void sample(std::uint32_t random, std::size_t wanted, Visit&& visit) {
        if (size_ == 0) return;
        std::size_t seen = 0;
        std::uint32_t cursor = random;
        bool wrapped = false;
        while (seen < wanted) {
            cursor = scan(cursor, [&](Entry& e, std::uint32_t hash) {
                ++seen;
                visit(e, hash);
            });
            if (cursor == 0) {
                if (wrapped) return;
                wrapped = true;
            } else if (wrapped && cursor > random) {
                return;
            }
        }
    }

  private:
    struct position {
        segment* in = nullptr;
        bucket* where = nullptr;
        unsigned index = 0;
    };

    // A bucket begins with its entries, at a multiple of its size.
    static bucket* bucket_of(const Entry& e) noexcept {
        return reinterpret_cast<bucket*>(reinterpret_cast<std::uintptr_t>(&e) &
                                         ~std::uintptr_t{sizeof(bucket) - 1});
    }
    static unsigned index_of(const Entry& e) noexcept {
        return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(&e) % sizeof(bucket) /
                                     sizeof(Entry));
    }

    segment* segment_of(std::uint32_t hash) const noexcept {
        if (directory_.empty()) return nullptr;
        return directory_[depth_ == 0 ? 0 : hash >> (32 - depth_)];
    }

    segment* make_segment(unsigned depth, unsigned size) {
        auto* made = new segment;
        made->depth = static_cast<std::uint8_t>(depth);
        made->size = static_cast<std::uint8_t>(size);
        made->buckets = make_buckets(size);
        if (made->buckets == nullptr) {
            delete made;
            throw std::bad_alloc();
        }
        bytes_ += sizeof(segment) + 8;
        return made;
    }
    bucket* make_buckets(unsigned count) noexcept {
        auto* made = static_cast<bucket*>(std::aligned_alloc(64, count * sizeof(bucket)));
        if (made == nullptr) return nullptr;
        for (unsigned i = 0; i < count; ++i) {
            made[i].used = 0;
            made[i].notes = 0;
            made[i].overflow = 0;
        }
        bytes_ += count * sizeof(bucket);
        return made;
    }
    void free_buckets(bucket* buckets, unsigned count) noexcept {
        std::free(buckets);
        bytes_ -= count * sizeof(bucket);
    }
    void free_segment(segment* s) noexcept {
        free_buckets(s->buckets, s->size);
        delete s;
        bytes_ -= sizeof(segment) + 8;
    }

    template <class Is>
    position locate(std::uint32_t hash, Is&& is) noexcept {
        segment* s = segment_of(hash);
        if (s == nullptr) return {};
        unsigned b = s->home(hash);
        for (unsigned i = 0; i < s->size; ++i, b = s->behind(b)) {
            bucket& in = s->buckets[b];
            for (unsigned e = 0; e < width; ++e)
                if (in.hashes[e] == hash && (in.used >> e & 1) != 0 && is(in.entry(e)))
                    return {s, &in, e};
            if (in.overflow == 0) break;
        }
        return {};
    }

    // A place in the segment at most `reach` buckets behind the home; null if all are taken.
    static Entry* put(segment& s, std::uint32_t hash, unsigned reach) noexcept {
        const unsigned home = s.home(hash);
        unsigned b = home;
        for (unsigned i = 0; i < reach && i < s.size; ++i, b = s.behind(b)) {
            bucket& in = s.buckets[b];
            if (in.used == (1u << width) - 1) continue;
            const auto free = static_cast<unsigned>(std::countr_one(in.used));
            in.used = (in.used | 1u << free) & ((1u << width) - 1);
            in.set_note(free, 0);
            in.hashes[free] = hash;
            for (unsigned passed = home; passed != b; passed = s.behind(passed))
                ++s.buckets[passed].overflow;
            ++s.count;
            return &in.entry(free);
        }
        return nullptr;
    }

    // Moves all of `from` into other segments, which to(hash) names.
    template <class To>
    static void pour(segment& from, To&& to) noexcept {
        for (unsigned b = 0; b < from.size; ++b) {
            bucket& in = from.buckets[b];
            for (unsigned e = 0; e < width; ++e) {
                if ((in.used >> e & 1) == 0) continue;
                segment& target = to(in.hashes[e]);
                // There is room: whole segments are poured into no fewer places than they had entries.
                Entry* place = put(target, in.hashes[e], target.size);
                place->begin_from(in.entry(e));
                note(*place, in.note(e));
            }
        }
    }

    void resize(segment& s, unsigned size) {
        segment other;
        other.depth = s.depth;
        other.size = static_cast<std::uint8_t>(size);
        other.buckets = make_buckets(size);
        if (other.buckets == nullptr) throw std::bad_alloc();
        pour(s, [&](std::uint32_t) -> segment& { return other; });
        free_buckets(s.buckets, s.size);
        s = other;
    }

    // False where a split would double a directory that is far larger than the entries need: hashes
    // are alike then, which are drawn at random otherwise, and the segment is filled to its end.
    bool can_split(const segment& s) const noexcept {
        if (s.depth >= most_depth) return false;
        return s.depth < depth_ || directory_.size() <= 64 + size_ / 8;
    }

    void split(std::uint32_t hash) {
        segment* old = segment_of(hash);
        if (old->depth == depth_) {
            std::vector<segment*> doubled;
            doubled.reserve(directory_.size() * 2);
            for (segment* s : directory_) {
                doubled.push_back(s);
                doubled.push_back(s);
            }
            directory_.swap(doubled);
            ++depth_;
        }
        const unsigned deeper = old->depth + 1u;
        const std::uint32_t upper = std::uint32_t{1} << (32 - deeper);
        unsigned above = 0;
        for (unsigned b = 0; b < old->size; ++b)
            for (unsigned e = 0; e < width; ++e)
                above += (old->buckets[b].used >> e & 1) != 0 &&
                         (old->buckets[b].hashes[e] & upper) != 0;
        segment* low = make_segment(deeper, size_for(old->count - above));
        segment* high = nullptr;
        try {
            high = make_segment(deeper, size_for(above));
        } catch (...) {
            free_segment(low);
            throw;
        }
        pour(*old, [&](std::uint32_t h) -> segment& { return (h & upper) != 0 ? *high : *low; });
        const std::size_t span = std::size_t{1} << (depth_ - old->depth); // entries that name it
        const std::size_t first = depth_ == 0 ? 0 : (hash >> (32 - depth_)) & ~(span - 1);
        for (std::size_t i = 0; i < span / 2; ++i) directory_[first + i] = low;
        for (std::size_t i = span / 2; i < span; ++i) directory_[first + i] = high;
        free_segment(old);
    }

    void remove(std::uint32_t hash, const position& at) noexcept {
        segment& s = *at.in;
        const auto b = static_cast<unsigned>(at.where - s.buckets);
        at.where->used = at.where->used & ~(1u << at.index) & ((1u << width) - 1);
        for (unsigned passed = s.home(hash); passed != b; passed = s.behind(passed))
            --s.buckets[passed].overflow;
        --s.count;
        --size_;
        shrink(s, hash);
    }

    // Gives memory back where entries have become few. Without memory for that it does nothing.
    void shrink(segment& s, std::uint32_t hash) noexcept {
        try {
            const std::uint32_t bit = s.depth == 0 ? 0 : std::uint32_t{1} << (32 - s.depth);
            segment* other = s.depth == 0 ? nullptr : segment_of(hash ^ bit);
            if (other == nullptr || other->depth != s.depth ||
                (s.count + other->count) * 4u > most_buckets * width) {
                // Late, so that a table that grows and shrinks a little does not copy itself each time.
                if (s.size > 1 && s.count * 5u <= s.size * width) resize(s, size_for(s.count));
                return;
            }
            segment* merged = make_segment(s.depth - 1u, size_for(s.count + other->count + 0u));
            pour(s, [&](std::uint32_t) -> segment& { return *merged; });
            pour(*other, [&](std::uint32_t) -> segment& { return *merged; });
            const std::size_t span = std::size_t{1} << (depth_ - merged->depth);
            const std::size_t first = (hash >> (32 - depth_)) & ~(span - 1);
            free_segment(&s);
            free_segment(other);
            for (std::size_t i = 0; i < span; ++i) directory_[first + i] = merged;
            if (span == directory_.size()) {
                depth_ = 0;
                directory_.assign(1, merged);
                directory_.shrink_to_fit();
            }
        } catch (const std::bad_alloc&) {
        }
    }

    // Calls f for every bucket, segments once each.
    template <class Function>
    void each_bucket(Function&& f) noexcept {
        each_segment([&](segment* s) {
            for (unsigned b = 0; b < s->size; ++b) f(s->buckets[b]);
        });
    }
    template <class Function>
    void each_segment(Function&& f) noexcept {
        for (std::size_t i = 0; i < directory_.size();) {
            segment* s = directory_[i];
            i += std::size_t{1} << (depth_ - s->depth);
            f(s);
        }
    }
    void release() noexcept {
        each_segment([this](segment* s) { free_segment(s); });
        directory_.clear();
        directory_.shrink_to_fit();
        depth_ = 0;
        size_ = 0;
    }

    std::vector<segment*> directory_;
    std::size_t size_ = 0;
    std::size_t bytes_ = 0;
    unsigned depth_ = 0;
};

} // namespace crestdb::server
