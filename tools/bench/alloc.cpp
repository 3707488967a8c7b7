// SPDX-License-Identifier: MIT
//
// `obase bench alloc`: allocate and free beside jemalloc and mimalloc, in one process, interleaved;
// and the memory that managed objects need beyond their own bytes.
//
// The other allocators are loaded beside the C library's, so none replaces malloc. Each is called
// through a pointer, and so is obase: raw is heap::space::allocate_raw on a space of its own; owner is
// what make_managed() makes, constructor and destructor included, against allocate, construct,
// free. No guide takes such an owner, so no slot is registered: what that costs is measured apart,
// as slot, beside the two atomic read-modify-writes on a bitmap that it cannot do without.
#include "tools/bench/bench.hpp"
#include "tools/bench/child_process.hpp"
#include "tools/bench/interleave.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"

#include "heap/space.hpp"
#include "os/process.hpp"

#include <obase/arming.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/runtime.hpp>
#include <obase/scope.hpp>

#include <fmt/format.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

namespace obase::tools {
namespace {

using nlohmann::json;

struct allocator {
    const char* name;
    void* (*allocate)(std::size_t);
    void (*free)(void*);
};

heap::space* raw_space = nullptr;
[[gnu::noinline]] void* raw_allocate(std::size_t size) { return raw_space->allocate_raw(size); }
[[gnu::noinline]] void raw_free(void* object) { raw_space->free(object); }

// The object of the owner cases: a word, and what is asked for beyond it.
struct header {
    std::uint64_t word = 1;
};
[[gnu::noinline]] void* owner_make(std::size_t size) {
    auto made = make_managed_with<header>({.extra_bytes = size - sizeof(header)});
    void* const object = made.get();
    made.release_word();
    return object;
}
[[gnu::noinline]] void owner_end(void* object) { owner<header>::destroy(object); }

constexpr std::size_t mixed = 0; // stands for a size drawn from the others, each time

class random_source {
  public:
    explicit random_source(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
    std::uint64_t operator()() noexcept {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

  private:
    std::uint64_t state_;
};

// What an allocation asks for, and its first write.
class source {
  public:
    source(const allocator& from, std::size_t size, std::uint64_t seed) : from_(from), size_(size) {
        random_source random(seed + 77);
        for (std::size_t& one : drawn_) one = 16 + random() % 1024;
    }
    void* make() {
        const std::size_t size = size_ != mixed ? size_ : drawn_[at_++ % std::size(drawn_)];
        void* const object = from_.allocate(size);
        if (object == nullptr) throw std::bad_alloc();
        *static_cast<volatile std::uint64_t*>(object) = size;
        return object;
    }
    void drop(void* object) { from_.free(object); }

  private:
    allocator from_;
    std::size_t size_;
    std::size_t at_ = 0;
    std::size_t drawn_[1024];
};

void run_immediate(source& from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) from.drop(from.make());
}

void run_batch(source& from, std::size_t count) {
    void* held[256];
    for (std::size_t done = 0; done < count; done += std::size(held)) {
        for (void*& object : held) object = from.make();
        for (std::size_t i = std::size(held); i-- > 0;) from.drop(held[i]);
    }
}

void run_replace(source& from, std::size_t count, std::uint64_t seed, std::vector<void*>& set) {
    random_source random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        void*& object = set[random() % set.size()];
        from.drop(object);
        object = from.make();
    }
}

struct channel {
    static constexpr std::size_t slots = 1024;
    static constexpr std::size_t step = 32; // positions are told every so many objects
    alignas(64) std::atomic<std::size_t> written{0};
    alignas(64) std::atomic<std::size_t> read{0};
    alignas(64) void* objects[slots];
};

void run_producer(source& from, std::size_t count, channel& to) {
    std::size_t limit = channel::slots;
    for (std::size_t i = 0; i < count; ++i) {
        while (i == limit) {
            limit = to.read.load() + channel::slots;
            if (i == limit) std::this_thread::yield();
        }
        to.objects[i % channel::slots] = from.make();
        if (i % channel::step == channel::step - 1 || i + 1 == count) to.written.store(i + 1);
    }
}

void run_consumer(source& into, std::size_t count, channel& from) {
    std::size_t limit = 0;
    for (std::size_t i = 0; i < count; ++i) {
        while (i == limit) {
            limit = from.written.load();
            if (i == limit) std::this_thread::yield();
        }
        into.drop(from.objects[i % channel::slots]);
        if (i % channel::step == channel::step - 1 || i + 1 == count) from.read.store(i + 1);
    }
}

// Operations (allocate and free) per second. Threads that share nothing are timed by the processor
// time they used, which what else runs on the machine does not lengthen; producer and consumer by
// the clock.
double measure(const allocator& a, const std::string& pattern, std::size_t size, unsigned threads,
               std::size_t count) {
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false}, failed{false};
    const auto shared = std::make_unique<channel>();
    const bool together = pattern == "producer-consumer";
    std::vector<double> spent(threads);
    const auto body = [&](unsigned number) {
        try {
            source from(a, size, number);
            std::vector<void*> set(pattern == "replace" ? 4096 : 0);
            for (void*& object : set) object = from.make();
            ++ready;
            while (!go.load()) std::this_thread::yield();
            const double begin = together ? wall_ns() : cpu_ns();
            if (pattern == "immediate")
                run_immediate(from, count);
            else if (pattern == "lifo")
                run_batch(from, count);
            else if (pattern == "replace")
                run_replace(from, count, number + 1, set);
            else if (number == 0)
                run_producer(from, count, *shared);
            else
                run_consumer(from, count, *shared);
            spent[number] = (together ? wall_ns() : cpu_ns()) - begin;
            for (void* object : set) from.drop(object);
        } catch (const std::exception&) {
            failed = true;
            ++ready;
        }
    };
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back(body, i);
    while (ready.load() != threads) std::this_thread::yield();
    go.store(true);
    for (std::thread& worker : workers) worker.join();
    if (failed) throw std::runtime_error(std::string(a.name) + ": out of memory");
    const double slowest = *std::max_element(spent.begin(), spent.end());
    return static_cast<double>(together ? count : count * threads) / (slowest * 1e-9);
}

void keep_the_collector_out() {
    options quiet = options::from_environment();
    quiet.mode = run_mode::off; // owners are invisible to the collector anyway
    if (const std::string why = runtime::get().configure(quiet); !why.empty())
        throw std::runtime_error(why);
}

bool load(const char* library, const char* allocate, const char* free, allocator* out) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    out->allocate = reinterpret_cast<void* (*)(std::size_t)>(::dlsym(handle, allocate));
    out->free = reinterpret_cast<void (*)(void*)>(::dlsym(handle, free));
    return out->allocate != nullptr && out->free != nullptr;
}

// All cases of one `what`, in this process. A row per case, with the rates of each allocator per
// round.
json measure_rates(const bench_settings& settings, const std::string& what,
                   const std::vector<std::string>& sizes,
                   const std::vector<unsigned>& thread_counts,
                   const std::vector<std::string>& patterns) {
    std::vector<allocator> all;
    if (what == "raw") {
        std::string why;
        raw_space = heap::space::create({}, &why);
        if (raw_space == nullptr) throw std::runtime_error("no heaps: " + why);
        all.push_back({"obase", raw_allocate, raw_free});
    } else {
        keep_the_collector_out();
        all.push_back({"obase", owner_make, owner_end});
    }
    allocator peer{"jemalloc", nullptr, nullptr};
    if (load("libjemalloc.so.2", "malloc", "free", &peer)) all.push_back(peer);
    peer.name = "mimalloc";
    if (load("libmimalloc.so.2", "mi_malloc", "mi_free", &peer)) all.push_back(peer);
    if (all.size() == 1 && !settings.quick)
        throw std::runtime_error("nothing to compare with: neither libjemalloc.so.2 nor "
                                 "libmimalloc.so.2 can be loaded");
    json cases = json::array();
    for (const std::string& pattern : patterns)
        for (const unsigned threads : thread_counts)
            for (const std::string& size_name : sizes) {
                if (pattern == "producer-consumer" && threads != 2) continue;
                if (interrupted()) return cases;
                const std::size_t size = size_name == "mixed" ? mixed : std::stoul(size_name);
                const std::size_t count = settings.quick ? 20'480
                                          : size >= 4096 ? 204'800
                                                         : 409'600;
                json row = {{"size", size_name}, {"threads", threads}, {"pattern", pattern}};
                for (const allocator& a : all) row[a.name] = json::array();
                for (std::size_t round = 0; round < settings.pairs && !interrupted(); ++round)
                    for (std::size_t i = 0; i < all.size(); ++i) {
                        const allocator& a = all[(i + round) % all.size()];
                        row[a.name].push_back(measure(a, pattern, size, threads, count));
                    }
                cases.push_back(row);
            }
    return cases;
}

// Nanoseconds per slot, pair by pair: of a row of slots that begin and then end; and of setting and
// clearing as many bits, one by one, in a bitmap like SODA's. All in L1.
json measure_slots(const bench_settings& settings) {
    keep_the_collector_out();
    constexpr std::size_t count = 1024, word_bits = 64;
    const auto passes = static_cast<std::size_t>(settings.quick ? 4 : 64);
    const std::unique_ptr<arming::slot[]> row(new arming::slot[count]);
    const std::unique_ptr<word::native_atomic<std::uint64_t>[]> bitmap(
        new word::native_atomic<std::uint64_t>[count / word_bits]);
    owner<header> object = make_managed<header>();
    const word::bits word = object.release_word();
    const auto timed = [&](const auto& pass) {
        return [&pass, passes] {
            const double begin = cpu_ns();
            for (std::size_t i = 0; i < passes; ++i) pass();
            return (cpu_ns() - begin) / static_cast<double>(passes * count);
        };
    };
    const auto slots = [&] {
        for (std::size_t i = 0; i < count; ++i) arming::construct(row[i], word);
        for (std::size_t i = 0; i < count; ++i) arming::destroy(row[i]);
    };
    const auto bits = [&] {
        const auto bit = [](std::size_t i) { return std::uint64_t{1} << (i % word_bits); };
        for (std::size_t i = 0; i < count; ++i) bitmap[i / word_bits].fetch_or_seq_cst(bit(i));
        for (std::size_t i = 0; i < count; ++i) bitmap[i / word_bits].fetch_and_seq_cst(~bit(i));
    };
    const interleaved times = interleave({{"slots", timed(slots)}, {"bits", timed(bits)}},
                                         settings.pairs, settings.quick ? 4 : 64);
    object = owner<header>::restore(word);
    return {{"slot_ns", times.ns[0]}, {"bits_ns", times.ns[1]}};
}

struct object_64 {
    std::uint64_t identity;
    unsigned char rest[56];
};

} // namespace

void restart_with_room_for_allocators(char** argv) {
    // The dynamic linker keeps little static thread-local storage for libraries that are loaded
    // late; jemalloc wants more. It reads the wish for more only when a program begins.
    constexpr const char* name = "GLIBC_TUNABLES";
    constexpr const char* wish = "glibc.rtld.optional_static_tls=";
    const char* const set = std::getenv(name);
    if (set != nullptr && std::strstr(set, wish) != nullptr) return;
    std::string value = std::string(wish) + "16384";
    if (set != nullptr && *set != '\0') value = std::string(set) + ":" + value;
    ::setenv(name, value.c_str(), 1);
    ::execv("/proc/self/exe", argv);
    // Without /proc: the comparison will do without jemalloc.
}

// N objects of 64 bytes, all in HOT, filled there by the collector; all that the process has grown
// by since before the first of them, over the N x 72 bytes of objects and guides.
json measure_overhead(const bench_settings& settings) {
    const std::size_t count = settings.quick ? 200'000 : 10'000'000;
    runtime& r = runtime::get();
    options asked = r.settings();
    asked.mode = run_mode::move;
    asked.window_seconds = 1e6;
    asked.controller = controller_kind::fixed;
    asked.cold_threshold = 32;
    if (const std::string why = r.configure(asked); !why.empty()) throw std::runtime_error(why);
    if (const std::string why = r.start(); !why.empty()) throw std::runtime_error(why);
    const std::uint64_t before = os::resident_bytes();
    const std::unique_ptr<guide<object_64>[]> guides(new guide<object_64>[count]);
    for (std::size_t i = 0; i < count; ++i) {
        auto made = make_managed<object_64>();
        made->identity = i;
        std::memset(made->rest, 1, sizeof made->rest);
        guides[i] = std::move(made);
    }
    const auto touch_all = [&] {
        const scope s;
        for (std::size_t i = 0; i < count; ++i)
            if (guides[i]->identity != i) throw std::runtime_error("wrong object");
    };
    touch_all();
    for (int window = 0; window < 3; ++window)
        if (r.collect_now() != collect_result::done)
            throw std::runtime_error("the collector does not run");
    const statistics now = r.statistics();
    std::uint64_t promoted = 0;
    for (unsigned cls = 0; cls < now.heap_count; ++cls)
        if (now.heap_name(cls) == "hot") promoted = now.heaps[cls].live_objects;
    if (promoted != count)
        throw std::runtime_error(fmt::format("{} of {} objects are in HOT", promoted, count));
    const std::uint64_t after = os::resident_bytes();
    const double ideal = static_cast<double>(count) * 72;
    json result = {{"objects", count},
                   {"resident", after - before},
                   {"overhead", static_cast<double>(after - before) / ideal - 1},
                   {"soda_bytes", now.soda_bytes},
                   {"heap_metadata_bytes", now.heap_metadata_bytes}};
    for (unsigned cls = 0; cls < now.heap_count; ++cls)
        result["extent_bytes"][std::string(now.heap_name(cls))] = now.heaps[cls].extent_bytes;
    return result;
}

namespace {

// What the target for owners is about: 16 to 256 bytes.
bool is_small(const std::string& size) { return size != "mixed" && std::stoul(size) <= 256; }

void add_slot_figure(bench_result& result, const json& measured) {
    interleaved times;
    times.ns = {numbers_of(measured.at("slot_ns")), numbers_of(measured.at("bits_ns"))};
    figure f;
    f.name = "registering a slot and ending it / two atomic read-modify-writes";
    f.value = spread_of(times.ratios(0, 1));
    f.kind = bound::at_most;
    f.target = 2;
    f.command = "obase bench alloc --what slot";
    result.figures.push_back(f);
    result.json["slot_ns"] = spread_of(times.ns[0]).median;
    result.json["slot_ratio"] = f.value.median;
}

} // namespace

bench_result bench_alloc(const bench_settings& settings) {
    const auto or_else = [](const auto& asked, auto usual) {
        return asked.empty() ? usual : asked;
    };
    const auto sizes = or_else(
        settings.sizes, std::vector<std::string>{"16", "64", "256", "1024", "4096", "mixed"});
    const auto threads = or_else(settings.threads, std::vector<unsigned>{1, 2});
    const auto patterns =
        or_else(settings.patterns,
                std::vector<std::string>{"immediate", "lifo", "replace", "producer-consumer"});
    bench_result result;
    result.json = {
        {"runs", json::array()}, {"geomean_ratio_best", nullptr}, {"overhead_64B", nullptr}};

    tell("alloc: overhead");
    const json overhead =
        in_child_process("alloc, overhead", [&] { return measure_overhead(settings); });
    result.json["overhead_64B"] = overhead.at("overhead");
    result.json["overhead_details"] = overhead;

    const auto whats = or_else(settings.what, std::vector<std::string>{"raw", "owner", "slot"});
    for (const std::string& what : whats) {
        if (interrupted()) break;
        tell("alloc: " + what);
        if (what == "slot") {
            add_slot_figure(
                result, in_child_process("alloc, slot", [&] { return measure_slots(settings); }));
            continue;
        }
        const auto in_target = [&](const json& row) {
            return what == "raw" || is_small(row.at("size").get<std::string>());
        };
        const json cases = in_child_process("alloc, " + what, [&] {
            return measure_rates(settings, what, sizes, threads, patterns);
        });
        std::vector<std::vector<double>> ratios_of_round(settings.pairs);
        for (const json& row : cases) {
            const auto obase_rates = numbers_of(row.at("obase"));
            json run = {{"what", what},
                        {"size", row.at("size") == "mixed"
                                     ? row.at("size")
                                     : json(std::stoul(row.at("size").get<std::string>()))},
                        {"threads", row.at("threads")},
                        {"pattern", row.at("pattern")},
                        {"obase_ops", spread_of(obase_rates).median}};
            std::vector<double> best(obase_rates.size(), 0);
            for (const char* name : {"jemalloc", "mimalloc"}) {
                const std::string key = std::string(name) + "_ops";
                run[key] = nullptr;
                if (!row.contains(name)) continue;
                const auto rates = numbers_of(row.at(name));
                run[key] = spread_of(rates).median;
                for (std::size_t i = 0; i < std::min(best.size(), rates.size()); ++i)
                    best[i] = std::max(best[i], rates[i]);
            }
            std::vector<double> ratios;
            for (std::size_t i = 0; i < best.size(); ++i) {
                if (best[i] <= 0) continue;
                ratios.push_back(obase_rates[i] / best[i]);
                if (in_target(row)) ratios_of_round[i].push_back(ratios.back());
            }
            run["ratio_best"] = nullptr;
            if (!ratios.empty()) {
                figure f;
                f.value = spread_of(ratios);
                f.name = fmt::format(
                    "{}, {}, {} thread{}, {}", what, row.at("size").get<std::string>(),
                    row.at("threads").get<unsigned>(), row.at("threads") == 1 ? "" : "s",
                    row.at("pattern").get<std::string>());
                f.command = fmt::format(
                    "obase bench alloc --what {} --size {} --threads {} --pattern {}", what,
                    row.at("size").get<std::string>(), row.at("threads").get<unsigned>(),
                    row.at("pattern").get<std::string>());
                run["ratio_best"] = f.value.median;
                run["ratio_best_low"] = f.value.low;
                run["ratio_best_high"] = f.value.high;
                result.figures.push_back(f);
            }
            result.json["runs"].push_back(run);
        }
        // The geometric mean over the cases, round by round.
        std::vector<double> means;
        for (const auto& round : ratios_of_round)
            if (!round.empty() && round.size() == static_cast<std::size_t>(std::count_if(
                                                      cases.begin(), cases.end(), in_target)))
                means.push_back(geometric_mean(round));
        if (means.empty()) continue;
        figure f;
        f.name = what == "raw"
                     ? "raw NEW alloc+free / best of jemalloc, mimalloc"
                     : "making an owner of 16 to 256 B and ending it / best of jemalloc, mimalloc";
        f.value = spread_of(means);
        f.command = "obase bench alloc --what " + what;
        f.kind = bound::at_least;
        f.target = 0.9;
        result.json[what == "raw" ? "geomean_ratio_best" : "geomean_ratio_best_owner"] =
            f.value.median;
        result.figures.push_back(f);
    }

    figure f;
    f.name = "memory overhead, 64 B objects";
    // Counted, not timed: the same in every run, so one sample is its own interval.
    const double value = overhead.at("overhead");
    f.value = {value, value, value, 1, !settings.quick};
    f.kind = bound::at_most;
    f.target = 0.06;
    f.command = "obase bench alloc";
    result.figures.push_back(f);
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
