// SPDX-License-Identifier: MIT
//
// witness: an independent memory of what a key-value store must contain, kept while threads use it.
//
// For each key one writer, and two counters: the version whose write has begun and the one whose
// write has returned. A reader notes the second before it reads and the first after; the version it
// read must lie between them: an older one is a stale read, which is what a lost write or a copy
// taken too early looks like. Every value names its key, its version and a checksum over all its
// bytes, and its length depends on the version. Shares no code with collector, heaps or telemetry.
//
//     witness w(keys);
//     writer of key k:   auto t = w.begin_write(k); store.put(name(k), t.value()); w.end_write(t);
//     any reader:        auto r = w.begin_read(k); found = store.get(...); w.end_read(r, found,
//     value); at the end:        w.stale() == 0 && w.corrupt() == 0
//
// Precondition: each key has one writer at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace obase::testing {

class witness {
  public:
    // Values carry `smallest`..`largest` bytes of filler behind their 24-byte head. One version in
    // eight is a deletion.
    witness(std::size_t keys, std::size_t smallest, std::size_t largest)
        : keys_(keys), smallest_(smallest), span_(largest - smallest + 1),
          log_(std::make_unique<entry[]>(keys)) {}

    struct write_ticket {
        std::size_t key;
        std::uint64_t version;
        bool erase;
        std::string value; // for a write that is no deletion
    };
    struct read_ticket {
        std::size_t key;
        std::uint64_t returned;
    };

    std::size_t keys() const noexcept { return keys_; }

    // The one writer of the key.
    write_ticket begin_write(std::size_t key) {
        const std::uint64_t version = log_[key].begun.load(std::memory_order_relaxed) + 1;
        log_[key].begun.store(version, std::memory_order_seq_cst);
        write_ticket t{key, version, is_deletion(version), {}};
        if (!t.erase) t.value = value_of(key, version);
        return t;
    }
    void end_write(const write_ticket& t) {
        log_[t.key].returned.store(t.version, std::memory_order_seq_cst);
    }

    // Any thread.
    read_ticket begin_read(std::size_t key) const {
        return {key, log_[key].returned.load(std::memory_order_seq_cst)};
    }
    void end_read(const read_ticket& t, bool found, std::string_view value) {
        const std::uint64_t begun = log_[t.key].begun.load(std::memory_order_seq_cst);
        reads_.fetch_add(1, std::memory_order_relaxed);
        if (!found) {
            if (!may_be_absent(t.returned, begun))
                report(stale_, "missing", t.key, 0, t.returned, begun);
            return;
        }
        std::uint64_t version = 0;
        if (!parse(t.key, value, version)) {
            report(corrupt_, "corrupt", t.key, version, t.returned, begun);
        } else if (version < t.returned || version > begun || is_deletion(version)) {
            report(stale_, "stale", t.key, version, t.returned, begun);
        }
    }

    std::uint64_t reads() const noexcept { return reads_.load(); }
    std::uint64_t stale() const noexcept { return stale_.load(); }
    std::uint64_t corrupt() const noexcept { return corrupt_.load(); }

    // True if the key is present once all writers are done.
    bool present(std::size_t key) const {
        const std::uint64_t version = log_[key].returned.load();
        return version != 0 && !is_deletion(version);
    }

  private:
    struct alignas(16) entry {
        std::atomic<std::uint64_t> begun{0};
        std::atomic<std::uint64_t> returned{0};
    };
    struct head {
        std::uint64_t key;
        std::uint64_t version;
        std::uint64_t checksum;
    };

    static bool is_deletion(std::uint64_t version) noexcept { return version % 8 == 7; }
    // Version 0 is "never written".
    static bool may_be_absent(std::uint64_t first, std::uint64_t last) noexcept {
        for (std::uint64_t v = first; v <= last && v < first + 8; ++v)
            if (v == 0 || is_deletion(v)) return true;
        return false;
    }
    static std::uint64_t mix(std::uint64_t x) noexcept {
        x ^= x >> 33;
        x *= 0xff51afd7ed558ccdu;
        x ^= x >> 33;
        return x;
    }
    std::size_t filler_of(std::size_t key, std::uint64_t version) const noexcept {
        return smallest_ + mix(key * 31 + version) % span_;
    }
    static std::uint64_t checksum_of(std::string_view filler, std::uint64_t key,
                                     std::uint64_t version) noexcept {
        std::uint64_t sum = mix(key ^ mix(version));
        for (const char c : filler) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        return sum;
    }
    std::string value_of(std::size_t key, std::uint64_t version) const {
        std::string value(sizeof(head) + filler_of(key, version), '\0');
        for (std::size_t i = sizeof(head); i < value.size(); ++i)
            value[i] = static_cast<char>(mix(version + i));
        const head h{key, version,
                     checksum_of(std::string_view(value).substr(sizeof(head)), key, version)};
        std::memcpy(value.data(), &h, sizeof h);
        return value;
    }
    bool parse(std::size_t key, std::string_view value, std::uint64_t& version) const {
        if (value.size() < sizeof(head)) return false;
        head h;
        std::memcpy(&h, value.data(), sizeof h);
        version = h.version;
        return h.key == key && value.size() == sizeof(head) + filler_of(key, h.version) &&
               h.checksum == checksum_of(value.substr(sizeof(head)), key, h.version);
    }
    void report(std::atomic<std::uint64_t>& counter, const char* what, std::size_t key,
                std::uint64_t version, std::uint64_t first, std::uint64_t last) {
        if (counter.fetch_add(1) >= 5) return;
        std::fprintf(stderr, "witness: %s: key %zu version %llu, expected %llu..%llu\n", what, key,
                     static_cast<unsigned long long>(version),
                     static_cast<unsigned long long>(first), static_cast<unsigned long long>(last));
    }

    const std::size_t keys_;
    const std::size_t smallest_;
    const std::size_t span_;
    const std::unique_ptr<entry[]> log_;
    std::atomic<std::uint64_t> reads_{0};
    std::atomic<std::uint64_t> stale_{0};
    std::atomic<std::uint64_t> corrupt_{0};
};

} // namespace obase::testing
