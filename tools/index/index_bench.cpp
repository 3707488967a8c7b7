// SPDX-License-Identifier: MIT
#include "tools/index/index_bench.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/index/crew.hpp"
#include "tools/ycsb/in_parallel.hpp"

#include "crestdb/store.hpp"

#include <obase/options.hpp>
#include <obase/runtime.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr double never = 1e6; // seconds: windows are asked for
constexpr unsigned windows_before = 3;
constexpr unsigned preparing_threads = 2;
constexpr std::uint64_t most_keys = std::uint64_t{1} << 30;

struct publication {
    std::string_view index;
    unsigned updates;
    double mops;
};
// ASCYLIB's, run on two cores of an AMD Zen 4 (a million keys, two threads), and of an adaptive
// radix tree and a B-link tree with optimistic concurrency control there.
constexpr publication published[] = {
    {"harris-hash-table", 20, 2.0},    {"pugh-hash-table", 20, 2.1},
    {"segmented-hash-table", 20, 3.2}, {"fraser-skip-list", 20, 0.17},
    {"herlihy-skip-list", 20, 0.2},    {"occ-btree", 20, 2.4},
    {"adaptive-radix-tree", 0, 38},
};
constexpr std::uint64_t published_keys = 1'000'000;
constexpr unsigned published_threads = 2;

std::string threads_text(unsigned threads) {
    return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

const char* name_of(key_kind kind) { return kind == key_kind::integer ? "integer" : "string"; }

// The numbers below 2 * keys in an order that has nothing to do with theirs. The first half is in
// the sets when the traffic begins.
std::vector<std::uint32_t> shuffled(std::uint64_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    workload::random_stream random(1);
    for (std::uint64_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
    return numbers;
}

// The sets of an index, one per protocol, and the slices that they take in turns.
class race {
  public:
    race(const index_bench_settings& settings, const std::string& index, key_kind kind,
         const std::vector<std::string>& protocols)
        : settings_(settings), kind_(kind), numbers_(shuffled(2 * settings.keys)) {
        const key_set_entry* entry = key_set_entry_named(index);
        if (entry == nullptr) throw std::runtime_error("no conformance suite runs for this index");
        for (const std::string& protocol : protocols) {
            options o;
            o.mode = run_mode::move;
            o.window_seconds = never;
            if (const std::string why = crestdb::store::runtime_of(protocol).configure(o);
                !why.empty())
                throw std::runtime_error(why);
            sets_.push_back(entry->open(protocol, static_cast<std::size_t>(settings.keys)));
            sizes_.push_back(settings.keys);
            in_pieces(
                std::span(numbers_).first(settings.keys),
                [&](std::span<const std::uint32_t> some) { sets_.back()->insert(kind_, some); });
        }
        if (interrupted()) return;
        for (std::size_t k = 0; k < sets_.size(); ++k) check_size(k);
        for (unsigned i = 0; i < windows_before; ++i) new_window();
    }

    // Operations per second, [pair][protocol]; the same per second of the threads' processor time.
    struct rates_of_slices {
        json by_clock = json::array();
        json by_processor_time = json::array();
    };
    rates_of_slices run(unsigned threads, unsigned updates) {
        if (std::exchange(changed_, updates != 0)) new_window();
        crew workers(threads);
        std::vector<set_requests> requests;
        for (unsigned t = 0; t < threads; ++t)
            requests.push_back(
                {kind_, 2 * settings_.keys, updates, workload::random_stream(1000 * threads + t)});
        const double seconds = settings_.duration_s / static_cast<double>(settings_.pairs);
        const std::size_t count = sets_.size();
        for (std::size_t k = 0; k < count; ++k) slice(k, workers, requests, seconds);
        rates_of_slices rates;
        for (std::size_t pair = 0; pair < settings_.pairs && !interrupted(); ++pair) {
            std::vector<double> by_clock(count), by_processor_time(count);
            for (std::size_t k = 0; k < count; ++k) {
                const std::size_t which = (k + pair) % count;
                std::tie(by_clock[which], by_processor_time[which]) =
                    slice(which, workers, requests, seconds);
            }
            rates.by_clock.push_back(by_clock);
            rates.by_processor_time.push_back(by_processor_time);
        }
        for (std::size_t k = 0; k < count; ++k) check_size(k);
        return rates;
    }

    json index_bytes() const {
        json all = json::array();
        for (const auto& s : sets_) all.push_back(s->index_bytes());
        return all;
    }

  private:
    template <class Work>
    static void in_pieces(std::span<const std::uint32_t> numbers, const Work& work) {
        in_parallel(preparing_threads, numbers.size(),
                    [&](std::uint64_t first, std::uint64_t last) {
                        work(numbers.subspan(first, last - first));
                    });
    }

    // A window has passed, and everything has been touched since.
    void new_window() {
        for (const auto& s : sets_) {
            if (interrupted()) return;
            touch(*s);
            if (s->mover() == nullptr) continue;
            (void)s->mover()->collect_now();
            touch(*s);
        }
    }
    void touch(const key_set& s) {
        std::atomic<std::uint64_t> there{0};
        in_pieces(numbers_,
                  [&](std::span<const std::uint32_t> some) { there += s.touch(kind_, some); });
        if (there != s.size() && !interrupted())
            throw std::runtime_error(
                fmt::format("{} of {} keys are found with their values", there.load(), s.size()));
    }

    std::pair<double, double> slice(std::size_t which, crew& workers,
                                    std::vector<set_requests>& requests, double seconds) {
        std::atomic<bool> stop{false};
        std::vector<set_counts> counts(requests.size());
        std::vector<double> rates(requests.size());
        const double begin = wall_ns();
        workers.begin([&](unsigned t) {
            // The states of threads beside each other in memory would share cache lines.
            set_requests own = requests[t];
            const double cpu = cpu_ns();
            counts[t] = sets_[which]->run(own, stop);
            rates[t] = static_cast<double>(counts[t].operations) / ((cpu_ns() - cpu) * 1e-9);
            requests[t] = own;
        });
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        stop = true;
        workers.wait();
        const double passed = (wall_ns() - begin) * 1e-9;
        set_counts sum;
        for (const set_counts& c : counts) sum.add(c);
        sizes_[which] += sum.inserted - sum.erased;
        return {static_cast<double>(sum.operations) / passed,
                std::accumulate(rates.begin(), rates.end(), 0.0)};
    }

    void check_size(std::size_t which) const {
        if (sets_[which]->size() != sizes_[which])
            throw std::runtime_error(fmt::format("the set has {} keys, and should have {}",
                                                 sets_[which]->size(), sizes_[which]));
    }

    const index_bench_settings& settings_;
    const key_kind kind_;
    const std::vector<std::uint32_t> numbers_;
    std::vector<std::unique_ptr<key_set>> sets_;
    std::vector<std::uint64_t> sizes_; // as the counts of the operations have it
    bool changed_ = false;             // since the last window
};

// {"groups": [{"threads", "updates", "rates"}], "index_bytes"}, what there is when interrupted.
json measure(const index_bench_settings& settings, const std::string& index, key_kind kind,
             const std::vector<std::string>& protocols) {
    race all(settings, index, kind, protocols);
    json result = {{"groups", json::array()}, {"index_bytes", all.index_bytes()}};
    for (const unsigned updates : settings.updates)
        for (const unsigned threads : settings.threads)
            if (!interrupted()) {
                const auto rates = all.run(threads, updates);
                result["groups"].push_back({{"threads", threads},
                                            {"updates", updates},
                                            {"rates", rates.by_clock},
                                            {"cpu_rates", rates.by_processor_time}});
            }
    return result;
}

std::string why_not(const index_bench_settings& s) {
    if (s.keys == 0 || s.keys > most_keys)
        return fmt::format("--keys {}: 1 to {}", s.keys, most_keys);
    if (!std::isfinite(s.duration_s) || s.duration_s <= 0 || s.duration_s > 1e6)
        return fmt::format("--duration {}: more than 0 and at most 1000000 seconds", s.duration_s);
    const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<double>(::sysconf(_SC_PAGESIZE));
    const double protocols = s.protocols.empty() ? 3 : static_cast<double>(s.protocols.size());
    const double needed = static_cast<double>(s.keys) * (protocols * 250 + 8);
    if (needed > 0.9 * memory)
        return fmt::format("--keys {} in {} sets: about {:.1f} GiB, and this machine has {:.1f} "
                           "GiB of memory",
                           s.keys, protocols, needed / 0x1p30, memory / 0x1p30);
    return "";
}

template <class T>
std::vector<T> or_all(const std::vector<T>& asked, std::vector<T> all) {
    return asked.empty() ? std::move(all) : asked;
}

std::string command_of(const std::string& index, const char* kind, unsigned threads,
                       unsigned updates) {
    return fmt::format("obase bench index --index {} --key-kind {} --threads {} --updates {}",
                       index, kind, threads, updates);
}

// The command line that asks for what the settings say.
std::string command_of(const index_bench_settings& s) {
    const index_bench_settings usual;
    std::string text = "obase bench index";
    const auto add = [&](const char* option, const auto& values) {
        if (!values.empty()) text += fmt::format(" {} {}", option, fmt::join(values, ","));
    };
    add("--index", s.indexes);
    add("--protocol", s.protocols);
    add("--key-kind", s.key_kinds);
    add("--threads", s.threads);
    add("--updates", s.updates);
    if (s.keys != usual.keys) text += fmt::format(" --keys {}", s.keys);
    if (s.duration_s != usual.duration_s) text += fmt::format(" --duration {}", s.duration_s);
    if (s.pairs != usual.pairs) text += fmt::format(" --pairs {}", s.pairs);
    return text;
}

// Ratios to plain pointers: [cell][pair], of a protocol under a number of threads.
using ratios = std::vector<std::vector<double>>;

// Pair by pair, the geometric mean over the cells.
std::vector<double> means_of(const ratios& cells) {
    std::size_t pairs = std::numeric_limits<std::size_t>::max();
    for (const auto& cell : cells) pairs = std::min(pairs, cell.size());
    std::vector<double> means;
    for (std::size_t i = 0; i < pairs && !cells.empty(); ++i) {
        std::vector<double> row;
        for (const auto& cell : cells) row.push_back(cell[i]);
        means.push_back(geometric_mean(row));
    }
    return means;
}

void add_scaling(const index_bench_settings& settings, const std::string& protocol,
                 const std::vector<ratios>& by_threads, bench_result& result) {
    const std::size_t fewest = static_cast<std::size_t>(
        std::min_element(settings.threads.begin(), settings.threads.end()) -
        settings.threads.begin());
    const std::vector<double> base = means_of(by_threads[fewest]);
    for (std::size_t n = 0; n < settings.threads.size(); ++n) {
        const std::vector<double> means = means_of(by_threads[n]);
        if (means.empty()) continue;
        const bool ours = protocol == "arming";
        const std::string command =
            fmt::format("obase bench index --threads {}", fmt::join(settings.threads, ","));
        figure f;
        f.name = fmt::format("{} / none, {}, geometric mean", protocol,
                             threads_text(settings.threads[n]));
        f.value = spread_of(means);
        if (ours) f.kind = bound::at_least, f.target = 0.99;
        f.command = command;
        json row = {{"protocol", protocol},
                    {"threads", settings.threads[n]},
                    {"ratio", f.value.median},
                    {"ci95", {f.value.low, f.value.high}},
                    {"verdict", verdict(f)}};
        result.figures.push_back(f);
        if (n != fewest) {
            std::vector<double> growth;
            for (std::size_t i = 0; i < std::min(means.size(), base.size()); ++i)
                growth.push_back(means[i] / base[i]);
            f.name = fmt::format("{} / none, {} / {}", protocol, threads_text(settings.threads[n]),
                                 threads_text(settings.threads[fewest]));
            f.value = spread_of(growth);
            row["to_fewest_threads"] = f.value.median;
            row["to_fewest_threads_ci95"] = {f.value.low, f.value.high};
            result.figures.push_back(f);
        }
        result.json["scaling"].push_back(std::move(row));
    }
}

} // namespace

std::optional<double> published_mops(std::string_view index, unsigned updates) {
    for (const publication& p : published)
        if (p.index == index && p.updates == updates) return p.mops;
    return std::nullopt;
}

bench_result bench_index(const index_bench_settings& settings) {
    if (const std::string why = why_not(settings); !why.empty()) throw std::invalid_argument(why);
    const auto indexes = or_all(settings.indexes, crestdb::store::indexes());
    const auto protocols = or_all(settings.protocols, crestdb::store::protocols());
    const auto kinds = or_all(settings.key_kinds, {"integer", "string"});
    const auto none = static_cast<std::size_t>(
        std::find(protocols.begin(), protocols.end(), "none") - protocols.begin());
    const bool with_plain = none < protocols.size();

    bench_result result;
    result.json = {{"cells", json::array()},
                   {"scaling", json::array()},
                   {"command", command_of(settings)},
                   {"keys", settings.keys},
                   {"range", 2 * settings.keys},
                   {"value_size", 8},
                   {"duration_s", settings.duration_s},
                   {"pairs", settings.pairs}};
    // [protocol][number of threads]
    std::vector<std::vector<ratios>> to_plain(protocols.size(),
                                              std::vector<ratios>(settings.threads.size()));
    std::size_t case_number = 0;
    for (const std::string& index : indexes)
        for (const std::string& kind_name : kinds) {
            if (interrupted()) break;
            const key_kind kind = kind_name == "integer" ? key_kind::integer : key_kind::string;
            tell(fmt::format("{} of {}: {}, {} keys", ++case_number, indexes.size() * kinds.size(),
                             index, kind_name));
            const json measured =
                in_child_process(fmt::format("{}, {} keys", index, kind_name),
                                 [&] { return measure(settings, index, kind, protocols); });
            for (const json& group : measured["groups"]) {
                const unsigned threads = group["threads"];
                const unsigned updates = group["updates"];
                const std::size_t which_threads = static_cast<std::size_t>(
                    std::find(settings.threads.begin(), settings.threads.end(), threads) -
                    settings.threads.begin());
                if (group["rates"].empty()) continue;
                for (std::size_t p = 0; p < protocols.size(); ++p) {
                    std::vector<double> rates, cpu_rates, to_none, cpu_to_none;
                    for (const json& pair : group["cpu_rates"]) {
                        cpu_rates.push_back(pair[p].get<double>() * 1e-6);
                        if (with_plain && p != none)
                            cpu_to_none.push_back(pair[p].get<double>() / pair[none].get<double>());
                    }
                    for (const json& pair : group["rates"]) {
                        rates.push_back(pair[p].get<double>() * 1e-6);
                        if (with_plain && p != none)
                            to_none.push_back(pair[p].get<double>() / pair[none].get<double>());
                    }
                    figure f;
                    f.name = fmt::format("{} {}, {} keys, {}, {} % updates", index, protocols[p],
                                         kind_name, threads_text(threads), updates);
                    f.unit = "Mop/s";
                    f.value = spread_of(rates);
                    f.command = command_of(index, name_of(kind), threads, updates);
                    json cell = {{"index", index},
                                 {"protocol", protocols[p]},
                                 {"key_kind", kind_name},
                                 {"threads", threads},
                                 {"mix", fmt::format("{}% updates", updates)},
                                 {"updates", updates},
                                 {"mops", f.value.median},
                                 {"mops_ci95", {f.value.low, f.value.high}},
                                 {"mops_cpu", spread_of(cpu_rates).median},
                                 {"ratio", nullptr},
                                 {"index_bytes", measured["index_bytes"][p]},
                                 {"published_mops", nullptr},
                                 {"verdict", nullptr}};
                    const auto figure_of_literature = published_mops(index, updates);
                    if (figure_of_literature && settings.keys == published_keys &&
                        threads == published_threads && kind == key_kind::integer &&
                        protocols[p] != "atc") {
                        f.kind = bound::at_least;
                        f.target = *figure_of_literature;
                        cell["published_mops"] = f.target;
                        cell["verdict"] = verdict(f);
                    }
                    result.figures.push_back(f);
                    if (!to_none.empty()) {
                        const spread s = spread_of(to_none);
                        cell["ratio"] = s.median;
                        cell["ratio_ci95"] = {s.low, s.high};
                        cell["ratio_cpu"] = spread_of(cpu_to_none).median;
                        to_plain[p][which_threads].push_back(std::move(to_none));
                    }
                    result.json["cells"].push_back(std::move(cell));
                }
            }
        }
    for (std::size_t p = 0; p < protocols.size(); ++p)
        if (with_plain && p != none) add_scaling(settings, protocols[p], to_plain[p], result);
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
