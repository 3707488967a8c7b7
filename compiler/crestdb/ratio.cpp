// SPDX-License-Identifier: MIT
//
// compiler_crestdb_INDEX.ratio: what marked pointers cost beside guides that were written by hand, in
// one process, on the same keys, both compiled by clang.
//
// Two stores are filled alike. Then rounds of A B B A, each a slice of operations by one thread, timed
// by the thread's own clock, so that other work on the machine matters little. A quarter of the rounds
// each is made with stores of its own, filled in turns first and second, so that it matters little where
// they happen to lie in memory; skip lists have towers of the same heights in both. Prints per mix the
// median over all rounds of the ratio of throughputs (1: as fast as by hand) and the middle half.
//
//     build/test/compiler_crestdb_pugh_hash_table.ratio [--keys N] [--rounds N] [--operations N]
//                                                       [--json FILE]
//
// --smoke is small. The file has {"index", "mixes": [{"writes", "ratio", "quartiles", "ns_marked",
// "ns_by_hand"}]}. Exit status 1: it cannot be written. Exit status 2: usage.
#include "compiler/crestdb/subject.hpp"

#include <obase/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct sizes {
    std::uint64_t keys = 200'000;
    std::uint64_t rounds = 60;
    std::uint64_t operations = 100'000;
};

std::uint64_t next_random(std::uint64_t& x) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

// As YCSB's: 26 bytes, of which the last ones differ.
std::string key_of(std::uint64_t i) {
    const std::string digits = std::to_string(i * 0x9e3779b97f4a7c15u);
    return "user" + std::string(22 - digits.size(), '0') + digits;
}

double seconds_of_thread() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of 100 operations so many write; the others read.
double run(crestdb::store& store, const std::vector<std::string>& keys, std::uint64_t operations,
           unsigned writes, std::uint64_t seed) {
    static const std::string value(100, 'v');
    std::uint64_t x = seed;
    std::uint64_t bytes = 0;
    const double begin = seconds_of_thread();
    for (std::uint64_t i = 0; i < operations; ++i) {
        next_random(x);
        const std::string& key = keys[(x >> 8) % keys.size()];
        if ((x >> 40) % 100 < writes)
            store.put(key, value);
        else
            store.get(key, [&](std::string_view v) { bytes += v.size(); });
    }
    const double took = seconds_of_thread() - begin;
    if (bytes == 0 && writes < 100) {
        std::fputs("ratio: nothing was found\n", stderr);
        std::exit(1);
    }
    return took;
}

constexpr unsigned builds = 4;
constexpr std::array<unsigned, 3> mixes = {0, 5, 50}; // % of the operations write

struct pair {
    std::unique_ptr<crestdb::store> by_hand;
    std::unique_ptr<crestdb::store> by_mark;
};

// In a thread each, one after the other: the heights of a skip list's towers are random numbers from the
// address of a thread-local variable, which is that of the thread before.
pair open_both(const crestdb::store_kind& marked, const std::vector<std::string>& keys,
               bool marked_first) {
    const auto filled = [&](const crestdb::store_kind& kind,
                            std::unique_ptr<crestdb::store>& into) {
        std::thread([&] {
            into = kind.open(keys.size());
            for (const std::string& key : keys) into->put(key, std::string(100, 'v'));
        }).join();
    };
    pair both;
    if (marked_first) filled(marked, both.by_mark);
    filled(crestdb::by_hand(), both.by_hand);
    if (!marked_first) filled(marked, both.by_mark);
    if (both.by_hand->index_bytes() != both.by_mark->index_bytes())
        std::fprintf(stderr, "ratio: the stores differ, %zu bytes by hand, %zu marked\n",
                     both.by_hand->index_bytes(), both.by_mark->index_bytes());
    return both;
}

struct result {
    std::vector<double> ratios;
    double hand = 0; // seconds
    double mark = 0;
};

void measure(const pair& stores, const std::vector<std::string>& keys, std::uint64_t operations,
             unsigned writes, std::uint64_t round, result& into) {
    const std::uint64_t seed = 88172645463325252u + round;
    double hand = run(*stores.by_hand, keys, operations, writes, seed);
    double mark = run(*stores.by_mark, keys, operations, writes, seed);
    mark += run(*stores.by_mark, keys, operations, writes, ~seed);
    hand += run(*stores.by_hand, keys, operations, writes, ~seed);
    into.ratios.push_back(hand / mark);
    into.hand += hand;
    into.mark += mark;
}

// What is told of a mix.
struct summary {
    unsigned writes = 0; // % of the operations
    double ratio = 0;    // median over the rounds
    double low = 0;      // the middle half of them
    double high = 0;
    double marked_ns = 0; // an operation
    double by_hand_ns = 0;
};

summary summary_of(result& measured, unsigned writes, const sizes& chosen) {
    std::vector<double>& ratios = measured.ratios;
    std::sort(ratios.begin(), ratios.end());
    const double operations = 2.0 * static_cast<double>(chosen.rounds * chosen.operations);
    return {writes,
            ratios[ratios.size() / 2],
            ratios[ratios.size() / 4],
            ratios[ratios.size() * 3 / 4],
            1e9 * measured.mark / operations,
            1e9 * measured.hand / operations};
}

bool write_json(const char* path, const char* index, const std::vector<summary>& told) {
    std::FILE* file = std::fopen(path, "w");
    if (file == nullptr) return false;
    std::fprintf(file, "{\"index\": \"%s\", \"mixes\": [", index);
    for (const summary& m : told)
        std::fprintf(file,
                     "%s\n  {\"writes\": %u, \"ratio\": %.6f, \"quartiles\": [%.6f, %.6f], "
                     "\"ns_marked\": %.3f, \"ns_by_hand\": %.3f}",
                     &m == &told.front() ? "" : ",", m.writes, m.ratio, m.low, m.high, m.marked_ns,
                     m.by_hand_ns);
    std::fputs("]}\n", file);
    const bool written = std::ferror(file) == 0;
    return std::fclose(file) == 0 && written;
}

[[noreturn]] void usage() {
    std::fputs("usage: ratio [--smoke] [--keys N] [--rounds N] [--operations N] [--json FILE]\n",
               stderr);
    std::exit(2);
}

} // namespace

int main(int argc, char** argv) {
    sizes chosen;
    const char* json_path = nullptr;
    for (int i = 1; i < argc; ++i) {
        const auto number = [&](std::uint64_t& into) {
            char* end = nullptr;
            if (++i == argc || (into = std::strtoull(argv[i], &end, 10)) == 0 || *end != '\0')
                usage();
        };
        if (std::strcmp(argv[i], "--smoke") == 0)
            chosen = {2'000, 3, 2'000};
        else if (std::strcmp(argv[i], "--keys") == 0)
            number(chosen.keys);
        else if (std::strcmp(argv[i], "--rounds") == 0)
            number(chosen.rounds);
        else if (std::strcmp(argv[i], "--operations") == 0)
            number(chosen.operations);
        else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            json_path = argv[++i];
        else
            usage();
    }
    const crestdb::store_kind marked = crestdb::subject_of_index_test().front();
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < chosen.keys; ++i) keys.push_back(key_of(i));
    std::array<result, mixes.size()> results;
    for (unsigned build = 0; build < builds; ++build) {
        const pair stores = open_both(marked, keys, build % 2 == 1);
        // What is used has been moved, so that both are as they are after a while.
        for (int i = 0; i < 3; ++i) {
            run(*stores.by_hand, keys, chosen.operations, 0, 1);
            run(*stores.by_mark, keys, chosen.operations, 0, 1);
            (void)obase::runtime::get().collect_now();
        }
        for (std::size_t mix = 0; mix < mixes.size(); ++mix)
            for (std::uint64_t round = build; round < chosen.rounds; round += builds)
                measure(stores, keys, chosen.operations, mixes[mix], round, results[mix]);
    }
    std::vector<summary> told;
    for (std::size_t mix = 0; mix < mixes.size(); ++mix) {
        told.push_back(summary_of(results[mix], mixes[mix], chosen));
        const summary& m = told.back();
        std::printf("%s, %u %% writes: %.3f [%.3f, %.3f] of by hand; %.0f and %.0f ns\n",
                    marked.index, m.writes, m.ratio, m.low, m.high, m.marked_ns, m.by_hand_ns);
    }
    if (json_path != nullptr && !write_json(json_path, marked.index, told)) {
        std::perror(json_path);
        return 1;
    }
}
