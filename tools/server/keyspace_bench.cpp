// SPDX-License-Identifier: MIT
//
// The server's keyspace in process, beside libcuckoo's map and oneTBB's concurrent_hash_map of std::string: what
// a request costs without its socket.
//
//     build/bin/keyspace_bench [--threads 2] [--records 1000000] [--operations 200000] [--turns 9]
//
// Zipf .99 (scattered), keys of 30 bytes, values of 100 B and 1 KiB, 0 and 5 % writes. The systems take
// turns, and who begins changes; what is printed is the median of the ratios within a turn. A read copies the
// value out and compares its first bytes, which name the record.
#include "crestdb/server/keyspace.hpp"
#include "tools/workload/power_law.hpp"
#include "tools/workload/random.hpp"
#include "tools/workload/scattered_ids.hpp"

#include <obase/options.hpp>
#include <obase/runtime.hpp>

#include <CLI/CLI.hpp>
#include <libcuckoo/cuckoohash_map.hh>
#include <tbb/concurrent_hash_map.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace crestdb::server {
namespace {

struct hasher {
    std::size_t operator()(const std::string& key) const noexcept { return key_hash(key); }
    static std::size_t hash(const std::string& key) noexcept { return key_hash(key); }
    static bool equal(const std::string& a, const std::string& b) noexcept { return a == b; }
};

class of_server {
  public:
    void put(const std::string& key, const std::string& value) {
        const keyspace::key_id id = keyspace::id_of(0, key);
        const std::lock_guard hold(keys_.lock_of(id.part));
        const managed_scope scope;
        record* old = keys_.find(id);
        if (old != nullptr && old->value_size() == value.size())
            std::memcpy(old->value_data(), value.data(), value.size());
        else
            keys_.put(id, record::make(record_kind::string, key, value));
    }
    bool get(const std::string& key, std::string& into) {
        const keyspace::key_id id = keyspace::id_of(0, key);
        const std::lock_guard hold(keys_.lock_of(id.part));
        const managed_scope scope;
        record* found = keys_.find(id);
        if (found == nullptr) return false;
        into.assign(found->value());
        return true;
    }

  private:
    keyspace keys_;
};

class of_cuckoo {
  public:
    void put(const std::string& key, const std::string& value) {
        map_.insert_or_assign(key, value);
    }
    bool get(const std::string& key, std::string& into) {
        return map_.find_fn(key, [&](const std::string& value) { into.assign(value); });
    }

  private:
    libcuckoo::cuckoohash_map<std::string, std::string, hasher> map_;
};

class of_tbb {
  public:
    void put(const std::string& key, const std::string& value) {
        map::accessor at;
        map_.insert(at, key);
        at->second.assign(value);
    }
    bool get(const std::string& key, std::string& into) {
        map::const_accessor at;
        if (!map_.find(at, key)) return false;
        into.assign(at->second);
        return true;
    }

  private:
    using map = tbb::concurrent_hash_map<std::string, std::string, hasher>;
    map map_;
};

std::string key_of(std::uint64_t record) {
    char key[32];
    std::snprintf(key, sizeof key, "key:%026llu", static_cast<unsigned long long>(record));
    return key;
}

template <class Map>
void fill(Map& map, std::uint64_t records, std::size_t value_bytes) {
    std::string value(value_bytes, 'v');
    for (std::uint64_t i = 0; i < records; ++i) {
        std::memcpy(value.data(), &i, sizeof i);
        map.put(key_of(i), value);
    }
}

// Operations per second.
template <class Map>
double turn(Map& map, std::uint64_t records, std::size_t value_bytes, double writes,
            std::uint64_t operations, unsigned threads, std::uint64_t seed) {
    const workload::scattered_ids zipf(workload::power_law_ids(records, .99), records);
    const auto work = [&](std::uint64_t thread) {
        workload::random_stream random(seed * threads + thread);
        std::string value(value_bytes, 'v'), got;
        for (std::uint64_t n = 0; n < operations; ++n) {
            const std::uint64_t record = zipf.next(random);
            const std::string key = key_of(record);
            if (random.unit() < writes) {
                std::memcpy(value.data(), &record, sizeof record);
                map.put(key, value);
            } else if (!map.get(key, got) || got.size() != value_bytes ||
                       std::memcmp(got.data(), &record, sizeof record) != 0) {
                std::fprintf(stderr, "keyspace_bench: record %llu is wrong\n",
                             static_cast<unsigned long long>(record));
                std::exit(1);
            }
        }
    };
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
    for (std::thread& other : others) other.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return threads * static_cast<double>(operations) / took.count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

int run(int argc, char** argv) {
    CLI::App app("the server's keyspace in process, beside libcuckoo and oneTBB", "keyspace_bench");
    std::uint64_t records = 1'000'000, operations = 200'000, turns = 9;
    unsigned threads = 2;
    app.add_option("--threads", threads, "that send operations")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    app.add_option("--records", records, "keys")
        ->check(CLI::Range(1, 100'000'000))
        ->capture_default_str();
    app.add_option("--operations", operations, "of a thread in a turn")
        ->check(CLI::Range(1, 1'000'000'000))
        ->capture_default_str();
    app.add_option("--turns", turns, "of each system")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    app.add_flag_callback(
        "--smoke",
        [&] {
            records = operations = 2000;
            turns = 1;
        },
        "a size that ends at once and decides nothing");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    obase::options library = obase::options::from_environment();
    if (std::string why = managing_runtime().configure(library); !why.empty()) {
        std::fprintf(stderr, "keyspace_bench: %s\n", why.c_str());
        return 1;
    }
    if (std::string why = managing_runtime().start(); !why.empty()) {
        std::fprintf(stderr, "keyspace_bench: %s\n", why.c_str());
        return 1;
    }
    update_now();
    std::printf("%-10s %-8s %14s %14s %14s %18s\n", "value", "writes", "keyspace Mop/s",
                "libcuckoo", "oneTBB", "keyspace / best");
    for (const std::size_t value_bytes : {std::size_t{100}, std::size_t{1024}}) {
        auto ours = std::make_unique<of_server>();
        auto cuckoo = std::make_unique<of_cuckoo>();
        auto tbb_map = std::make_unique<of_tbb>();
        fill(*ours, records, value_bytes);
        fill(*cuckoo, records, value_bytes);
        fill(*tbb_map, records, value_bytes);
        for (const double writes : {0.0, .05}) {
            const auto measured = [&](auto& map, std::uint64_t seed) {
                return turn(map, records, value_bytes, writes, operations, threads, seed);
            };
            std::vector<double> rates[3], ratios;
            for (std::uint64_t t = 0; t < turns; ++t) {
                for (std::uint64_t i = 0; i < 3; ++i) {
                    const std::uint64_t which = (t + i) % 3;
                    const std::uint64_t seed = t + 1;
                    rates[which].push_back(which == 0   ? measured(*ours, seed)
                                           : which == 1 ? measured(*cuckoo, seed)
                                                        : measured(*tbb_map, seed));
                }
                ratios.push_back(rates[0].back() / std::max(rates[1].back(), rates[2].back()));
            }
            std::sort(ratios.begin(), ratios.end());
            std::printf("%-10zu %-8.2f %14.2f %14.2f %14.2f %6.2f (%.2f to %.2f)\n", value_bytes,
                        writes, median(rates[0]) / 1e6, median(rates[1]) / 1e6,
                        median(rates[2]) / 1e6, median(ratios), ratios.front(), ratios.back());
        }
    }
    return 0;
}

} // namespace
} // namespace crestdb::server

int main(int argc, char** argv) { return crestdb::server::run(argc, argv); }
