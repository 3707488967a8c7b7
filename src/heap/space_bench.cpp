// SPDX-License-Identifier: MIT
//
// Raw allocate + free of NEW beside jemalloc and mimalloc, in one process, interleaved.
//
// The peers are loaded with dlopen, so no other allocator replaces malloc; each is called through a
// pointer, and so is obase (a function compiled here), which costs all three the same.
// Patterns: pair (allocate, free at once), lifo (256 allocated, freed in reverse), replace (a
// random one of a working set of 4096 freed and allocated again), remote (one thread allocates, its
// neighbour frees, through a ring; needs two threads). Every pattern writes one word of each
// object.
//
// Output: one line per case, with million operations (allocate + free) per second and the ratio to
// the better peer: median of the rounds and a 95 % interval of the median by order statistics.
//
//   space_bench [--smoke] [--rounds N]
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "heap/space.hpp"

namespace {

using obase::heap::space;

space* the_space = nullptr;

[[gnu::noinline]] void* obase_allocate(std::size_t size) { return the_space->allocate_raw(size); }
[[gnu::noinline]] void obase_free(void* object) { the_space->free(object); }

struct allocator {
    const char* name;
    void* (*allocate)(std::size_t);
    void (*free)(void*);
};

enum class pattern { pair, lifo, replace, remote };
constexpr const char* pattern_names[] = {"pair", "lifo", "replace", "remote"};

class random_source {
  public:
    explicit random_source(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
    std::uint64_t operator()() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

  private:
    std::uint64_t state_;
};

void* make(const allocator& a, std::size_t size) {
    void* const object = a.allocate(size);
    if (object == nullptr) std::abort();
    *static_cast<volatile std::uint64_t*>(object) = size;
    return object;
}

void run_pair(const allocator& a, std::size_t size, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a.free(make(a, size));
}

void run_lifo(const allocator& a, std::size_t size, std::size_t count) {
    void* held[256];
    for (std::size_t done = 0; done < count; done += std::size(held)) {
        for (void*& object : held) object = make(a, size);
        for (std::size_t i = std::size(held); i-- > 0;) a.free(held[i]);
    }
}

void run_replace(const allocator& a, std::size_t size, std::size_t count, std::uint64_t seed) {
    std::vector<void*> set(4096);
    random_source random(seed);
    for (void*& object : set) object = make(a, size);
    for (std::size_t i = 0; i < count; ++i) {
        void*& object = set[random() % set.size()];
        a.free(object);
        object = make(a, size);
    }
    for (void* object : set) a.free(object);
}

struct ring {
    static constexpr std::size_t slots = 1024;
    alignas(64) std::atomic<std::size_t> written{0};
    alignas(64) std::atomic<std::size_t> read{0};
    alignas(64) void* objects[slots];
};

void run_producer(const allocator& a, std::size_t size, std::size_t count, ring& to) {
    std::size_t limit = ring::slots;
    for (std::size_t i = 0; i < count; ++i) {
        while (i == limit) {
            limit = to.read.load() + ring::slots;
            if (i == limit) std::this_thread::yield();
        }
        to.objects[i % ring::slots] = make(a, size);
        if (i % 32 == 31 || i + 1 == count) to.written.store(i + 1);
    }
}

void run_consumer(const allocator& a, std::size_t count, ring& from) {
    std::size_t limit = 0;
    for (std::size_t i = 0; i < count; ++i) {
        while (i == limit) {
            limit = from.written.load();
            if (i == limit) std::this_thread::yield();
        }
        a.free(from.objects[i % ring::slots]);
        if (i % 32 == 31 || i + 1 == count) from.read.store(i + 1);
    }
}

// Seconds for `count` operations per thread.
double measure(const allocator& a, pattern p, std::size_t size, unsigned threads,
               std::size_t count) {
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    auto shared = std::make_unique<ring>();
    std::vector<double> seconds(threads);
    const auto body = [&](unsigned number) {
        ++ready;
        while (!go.load()) std::this_thread::yield();
        const auto start = std::chrono::steady_clock::now();
        switch (p) {
        case pattern::pair:
            run_pair(a, size, count);
            break;
        case pattern::lifo:
            run_lifo(a, size, count);
            break;
        case pattern::replace:
            run_replace(a, size, count, number + 1);
            break;
        case pattern::remote:
            number == 0 ? run_producer(a, size, count, *shared) : run_consumer(a, count, *shared);
            break;
        }
        seconds[number] =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back(body, i);
    while (ready.load() != threads) std::this_thread::yield();
    go.store(true);
    for (std::thread& worker : workers) worker.join();
    return *std::max_element(seconds.begin(), seconds.end());
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

bool load(const char* library, const char* allocate, const char* free, allocator* out) {
    void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    out->allocate = reinterpret_cast<void* (*)(std::size_t)>(dlsym(handle, allocate));
    out->free = reinterpret_cast<void (*)(void*)>(dlsym(handle, free));
    return out->allocate != nullptr && out->free != nullptr;
}

} // namespace

int main(int argc, char** argv) {
    bool smoke = false;
    std::size_t rounds = 15;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--smoke") == 0) {
            smoke = true;
        } else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = std::max<std::size_t>(3, std::strtoul(argv[++i], nullptr, 10));
        } else {
            std::fprintf(stderr, "usage: %s [--smoke] [--rounds N]\n", argv[0]);
            return 2;
        }
    }
    // jemalloc's thread-local storage does not fit what the loader keeps for late libraries unless
    // asked.
    if (std::getenv("GLIBC_TUNABLES") == nullptr) {
        setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", 1);
        execv("/proc/self/exe", argv);
    }
    std::string why;
    the_space = space::create({}, &why);
    if (the_space == nullptr) {
        std::fprintf(stderr, "no space: %s\n", why.c_str());
        return 1;
    }
    std::vector<allocator> all{{"obase", obase_allocate, obase_free}};
    allocator peer{"jemalloc", nullptr, nullptr};
    if (load("libjemalloc.so.2", "malloc", "free", &peer)) all.push_back(peer);
    peer.name = "mimalloc";
    if (load("libmimalloc.so.2", "mi_malloc", "mi_free", &peer)) all.push_back(peer);
    if (all.size() == 1) {
        std::puts("neither libjemalloc.so.2 nor libmimalloc.so.2 is installed: nothing to compare");
        if (!smoke) return 1;
    }
    if (smoke) rounds = 3;
    const std::size_t count = smoke ? 20'480 : 1'024'000;
    std::printf("%-8s %7s %5s", "pattern", "threads", "bytes");
    for (const allocator& a : all) std::printf(" %10s", a.name);
    std::printf("  ratio to best [95 %%]\n");
    double log_sum = 0;
    unsigned cases = 0;
    for (const pattern p : {pattern::pair, pattern::lifo, pattern::replace, pattern::remote}) {
        for (const unsigned threads : {1U, 2U}) {
            if (p == pattern::remote && threads == 1) continue;
            for (const std::size_t size : {16UL, 64UL, 256UL, 1024UL, 4096UL}) {
                std::vector<std::vector<double>> rates(all.size());
                std::vector<double> ratios;
                for (std::size_t round = 0; round < rounds; ++round) {
                    double best = 0;
                    for (std::size_t i = 0; i < all.size(); ++i) {
                        // A different one goes first each round.
                        const std::size_t which = (i + round) % all.size();
                        const double mops = static_cast<double>(count) * threads / 1e6 /
                                            measure(all[which], p, size, threads, count) /
                                            (p == pattern::remote ? 2 : 1);
                        rates[which].push_back(mops);
                        if (which != 0) best = std::max(best, mops);
                    }
                    if (best > 0) ratios.push_back(rates[0].back() / best);
                }
                std::printf("%-8s %7u %5zu", pattern_names[static_cast<int>(p)], threads, size);
                for (const auto& of_one : rates) std::printf(" %10.2f", median(of_one));
                if (!ratios.empty()) {
                    std::sort(ratios.begin(), ratios.end());
                    const double n = static_cast<double>(ratios.size());
                    const double half = 0.98 * std::sqrt(n);
                    const auto low = static_cast<std::size_t>(std::max(0.0, n / 2 - half));
                    const auto high = static_cast<std::size_t>(std::min(n - 1, n / 2 + half));
                    std::printf("  %.2f [%.2f, %.2f]", median(ratios), ratios[low], ratios[high]);
                    log_sum += std::log(median(ratios));
                    ++cases;
                }
                std::printf("\n");
                std::fflush(stdout);
            }
        }
    }
    if (cases > 0)
        std::printf("geomean of ratios: %.3f over %u cases\n", std::exp(log_sum / cases), cases);
    space::destroy(the_space);
    return 0;
}
