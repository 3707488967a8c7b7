// SPDX-License-Identifier: MIT
//
// `obase bench guide`: what a dereference, a scope, a first touch and a TAG cost.
#include "tools/bench/bench.hpp"
#include "tools/bench/child_process.hpp"
#include "tools/bench/dereference_loops.hpp"
#include "tools/bench/interleave.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/stopwatch.hpp"

#include <obase/arming.hpp>
#include <obase/runtime.hpp>

#if __has_include(<obase/atc.hpp>)
#include <obase/atc.hpp>
#define OBASE_BENCH_ATC 1
#endif
#if __has_include("mobility/atc_thread.hpp")
#include "mobility/atc_thread.hpp"
#include "os/platform.hpp"
#define OBASE_BENCH_TAG 1
#endif

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr const char* command = "obase bench guide";

// Nothing may be armed while dereferences are timed.
template <class Protocol>
void keep_the_collector_out() {
    runtime& r = runtime::of<Protocol>();
    options settings = r.settings();
    settings.mode = run_mode::off;
    if (const std::string why = r.configure(settings); !why.empty()) throw std::runtime_error(why);
}

void expect(bool right, const char* what) {
    if (!right) throw std::runtime_error(std::string("the loop read wrong data: ") + what);
}

std::vector<std::uint32_t> random_order(std::size_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(42));
    return order;
}

// A cycle through `count` objects in random order. Each owns the next, so it has no root.
template <class Node>
class ring {
  public:
    explicit ring(std::size_t count) {
        using owner_type = typename decltype(Node::next)::owner_type;
        std::vector<owner_type> owners(count);
        for (auto& o : owners) o = make_managed<Node, typename owner_type::protocol>();
        const auto order = random_order(count);
        at = owners[order[0]].get();
        Node* last = owners[order[0]].get();
        for (std::size_t i = 1; i <= count; ++i) {
            owner_type next = std::move(owners[order[i % count]]);
            Node* const target = next.get();
            last->next = std::move(next);
            last = target;
        }
        const typename owner_type::protocol::scope all;
        expect(chase<through_guide>(at, count) == at, "ring");
    }
    const Node* at; // where the walk has got to
};

// Guides side by side, their objects in random order.
template <class Node, class Protocol>
class row {
  public:
    explicit row(std::size_t count) : guides_(new guide<Node, Protocol>[count]), count_(count) {
        std::vector<owner<Node, Protocol>> owners(count);
        for (auto& o : owners) o = make_managed<Node, Protocol>();
        const auto order = random_order(count);
        for (std::size_t i = 0; i < count; ++i) {
            owners[order[i]]->value = i;
            guides_[i] = std::move(owners[order[i]]);
        }
        touch();
    }
    std::uint64_t touch() const {
        const typename Protocol::scope all;
        const std::uint64_t total = sum<through_guide>(guides_.get(), count_);
        expect(total == count_ * (count_ - 1) / 2, "row");
        return total;
    }
    guide<Node, Protocol>* guides() const noexcept { return guides_.get(); }
    std::size_t size() const noexcept { return count_; }

  private:
    std::unique_ptr<guide<Node, Protocol>[]> guides_;
    std::size_t count_;
};

volatile std::uint64_t sum_sink;

// One slice: `steps` steps of a chase under one scope. Returns ns per step. Every slice goes on
// from where the one before it, of whatever variant, ended: none follows in another's footsteps.
template <class Way, class Node, class Scope, class Outer>
std::function<double()> chase_slice(ring<Node>& r, std::size_t steps) {
    return [&r, steps] {
        const Outer around;
        const double begin = cpu_ns();
        const Node* const at = chase<Way, Node, Scope>(r.at, steps);
        const double end = cpu_ns();
        r.at = at;
        return (end - begin) / static_cast<double>(steps);
    };
}

template <class Way, class Node, class Protocol, class Outer, class Scope = no_scope>
std::function<double()> sum_slice(const row<Node, Protocol>& r, std::size_t passes) {
    return [guides = r.guides(), count = r.size(), passes] {
        const Outer around;
        std::uint64_t total = 0;
        const double begin = cpu_ns();
        for (std::size_t i = 0; i < passes; ++i) {
            total += sum<Way, Node, Protocol, Scope>(guides, count);
            asm volatile("" ::: "memory");
        }
        const double end = cpu_ns();
        sum_sink = total;
        return (end - begin) / static_cast<double>(passes * count);
    };
}

struct size_of_case {
    std::size_t nodes;
    std::size_t chase_steps;
    std::size_t passes;
};

json to_json(const interleaved& times, const std::vector<variant>& variants) {
    json result;
    for (std::size_t i = 0; i < variants.size(); ++i) result[variants[i].name] = times.ns[i];
    return result;
}

// Times of each variant in ns, for one working set. Bytes: of an object.
template <std::size_t Bytes>
json measure_dereference(const bench_settings& settings, const size_of_case& size,
                         std::size_t slices) {
    keep_the_collector_out<arming>();
    using node = link_node<arming, Bytes>;
    using none = no_scope;
    json result;
#if OBASE_BENCH_ATC
    keep_the_collector_out<atc>();
    using atc_node = link_node<atc, Bytes>;
#endif
    {
        ring<node> chain(size.nodes);
        std::vector<variant> variants{
            {"plain",
             chase_slice<through_pointer, node, none, arming::scope>(chain, size.chase_steps)},
            {"arming",
             chase_slice<through_guide, node, none, arming::scope>(chain, size.chase_steps)},
            {"mask",
             chase_slice<through_mask, node, none, arming::scope>(chain, size.chase_steps)}};
#if OBASE_BENCH_ATC
        ring<atc_node> counted(size.nodes);
        variants.push_back({"atc", chase_slice<through_guide, atc_node, none, atc::scope>(
                                       counted, size.chase_steps)});
#endif
        result["latency"] = to_json(interleave(variants, settings.pairs, slices), variants);
    }
    {
        const row<node, arming> array(size.nodes);
        std::vector<variant> variants{
            {"plain", sum_slice<through_pointer, node, arming, arming::scope>(array, size.passes)},
            {"arming", sum_slice<through_guide, node, arming, arming::scope>(array, size.passes)},
            {"mask", sum_slice<through_mask, node, arming, arming::scope>(array, size.passes)}};
#if OBASE_BENCH_ATC
        const row<atc_node, atc> counted(size.nodes);
        variants.push_back(
            {"atc", sum_slice<through_guide, atc_node, atc, atc::scope>(counted, size.passes)});
#endif
        result["throughput"] = to_json(interleave(variants, settings.pairs, slices), variants);
    }
    return result;
}

// With a scope around each step and with one around all; both ways to be L1-bound.
json measure_scope(const bench_settings& settings, const size_of_case& size, std::size_t slices) {
    keep_the_collector_out<arming>();
    using node = link_node<arming, 24>;
    ring<node> chain(size.nodes);
    const row<node, arming> array(size.nodes);
    const std::vector<variant> variants{
        {"chase",
         chase_slice<through_guide, node, no_scope, arming::scope>(chain, size.chase_steps)},
        {"chase_scope",
         chase_slice<through_guide, node, arming::scope, no_scope>(chain, size.chase_steps)},
        {"sum", sum_slice<through_guide, node, arming, arming::scope>(array, size.passes)},
        {"sum_scope",
         sum_slice<through_guide, node, arming, no_scope, arming::scope>(array, size.passes)}};
    return to_json(interleave(variants, settings.pairs, slices), variants);
}

// Passes over guides that no thread has touched since they were born, and over the same guides
// touched. Before either pass every word is exchanged, so the caches are in the same state.
json measure_first_touch(const bench_settings& settings, const size_of_case& size,
                         std::size_t slices) {
    keep_the_collector_out<arming>();
    using node = link_node<arming, 24>;
    using node_owner = owner<node, arming>;
    const row<node, arming> array(size.nodes);
    const auto slice = [&](bool born) {
        return [&array, &size, born] {
            const arming::scope around;
            double spent = 0;
            for (std::size_t pass = 0; pass < size.passes; ++pass) {
                for (std::size_t i = 0; i < array.size(); ++i) {
                    node_owner taken = array.guides()[i].release();
                    node* const object = taken.get();
                    taken.release_word();
                    array.guides()[i] =
                        born ? node_owner::adopt_newborn(object) : node_owner::adopt(object);
                }
                const double begin = cpu_ns();
                sum_sink = sum<through_guide, node, arming>(array.guides(), array.size());
                spent += cpu_ns() - begin;
            }
            return spent / static_cast<double>(size.passes * array.size());
        };
    };
    const std::vector<variant> variants{{"touched", slice(false)}, {"born", slice(true)}};
    return to_json(interleave(variants, settings.pairs, slices), variants);
}

#if OBASE_BENCH_TAG
constexpr std::size_t guides_per_operation = 4; // a lookup that follows four guides

// Operations of the ATC protocol on its threads' half alone, so that the phase can be chosen:
// silent scopes (INACTIVE) set an access bit at most; counting ones (ACTIVE) keep a TAG.
json measure_tag(const bench_settings& settings, const size_of_case& size, std::size_t slices) {
    using platform = os::native_platform;
    using threads = mobility::atc_threads<platform>;
    mobility::scope_registry<platform> registry;
    registry.set_fenced(!platform::has_membarrier());
    const auto directory = std::make_unique<soda::directory<platform>>();
    if (!directory->open()) throw std::runtime_error("no address space for the map of guides");
    mobility::atc_state<platform> state{};
    threads protocol(registry, *directory, state);
    const auto entry = std::make_unique<mobility::atc_entry<platform>>();
    entry->bind();
    registry.add(entry->record, 1);

    std::vector<std::uint64_t> objects(size.nodes);
    const std::unique_ptr<threads::slot_atomic[]> slots(new threads::slot_atomic[size.nodes]);
    state.phase.store_seq_cst(mobility::atc_phase::inactive);
    {
        const auto outer = protocol.enter(entry->record, entry->context);
        for (std::size_t i = 0; i < size.nodes; ++i)
            protocol.construct(slots[i], reinterpret_cast<std::uint64_t>(&objects[i]));
        protocol.leave(entry->record, entry->context, outer);
    }
    const std::size_t operations = std::max<std::size_t>(size.chase_steps / 32, 64);
    const auto slice = [&](mobility::atc_phase phase) {
        return [&, phase] {
            state.phase.store_seq_cst(phase);
            std::uint64_t total = 0;
            std::size_t at = 0;
            const double begin = cpu_ns();
            for (std::size_t i = 0; i < operations; ++i) {
                const auto outer = protocol.enter(entry->record, entry->context);
                for (std::size_t k = 0; k < guides_per_operation; ++k) {
                    total += protocol.dereference(entry->context, slots[at]);
                    at = (at + 97) % size.nodes;
                }
                protocol.leave(entry->record, entry->context, outer);
            }
            const double end = cpu_ns();
            sum_sink = total;
            return (end - begin) / static_cast<double>(operations);
        };
    };
    const std::vector<variant> variants{{"silent", slice(mobility::atc_phase::inactive)},
                                        {"counting", slice(mobility::atc_phase::active)}};
    json result = to_json(interleave(variants, settings.pairs, slices), variants);
    state.phase.store_seq_cst(mobility::atc_phase::inactive);
    return result;
}
#endif

interleaved times_of(const json& j, std::initializer_list<const char*> names) {
    interleaved result;
    for (const char* name : names) result.ns.push_back(numbers_of(j.at(name)));
    return result;
}

void add_ratios(bench_result& result, const std::string& where, const json& measured) {
    for (const char* way : {"arming", "atc", "mask"}) {
        json& shape = result.json[where == "L1" ? "l1" : "dram"][way];
        for (const char* kind : {"latency", "throughput"}) {
            json& cell = shape[std::string(kind) + "_time_ratio"];
            if (!measured.at(kind).contains(way)) {
                cell = nullptr; // not built
                continue;
            }
            const interleaved times = times_of(measured.at(kind), {way, "plain"});
            figure f;
            f.name = std::string("dereference / plain, ") + way + ", " + where + ": " + kind;
            f.value = spread_of(times.ratios(0, 1));
            f.command = command;
            if (where == "L1" && std::string(way) == "arming") {
                f.kind = bound::at_most;
                f.target = std::string(kind) == "latency" ? 1.05 : 1.15;
            }
            cell = f.value.median;
            result.figures.push_back(f);
        }
    }
    for (const char* kind : {"latency", "throughput"})
        result.json["plain_ns"][where == "L1" ? "l1" : "dram"][kind] =
            spread_of(numbers_of(measured.at(kind).at("plain"))).median;
}

figure in_ns(std::string name, const std::vector<double>& values) {
    figure f;
    f.name = std::move(name);
    f.unit = "ns";
    f.value = spread_of(values);
    f.command = command;
    return f;
}

} // namespace

bench_result bench_guide(const bench_settings& settings) {
    bench_result result;
    const bool quick = settings.quick;
    const std::size_t slices = quick ? 2 : 12;
    const size_of_case l1 = {512, quick ? 100'000U : 1'000'000U, quick ? 200U : 4000U};
    // Beyond twice the last-level cache: half of what is looked for is not there.
    const std::size_t dram_bytes =
        quick ? std::size_t{4} << 20
              : std::max(std::size_t{64} << 20, 2 * last_level_cache_bytes());
    const size_of_case dram = {dram_bytes / 64, quick ? 10'000U : 100'000U, 1};

    tell("guide: L1");
    const json in_l1 = in_child_process(
        "guide, L1", [&] { return measure_dereference<24>(settings, l1, slices); });
    tell("guide: DRAM, " + std::to_string(dram_bytes >> 20) + " MiB");
    const json in_dram = in_child_process(
        "guide, DRAM", [&] { return measure_dereference<64>(settings, dram, quick ? 1 : 3); });
    tell("guide: scope");
    const json scopes =
        in_child_process("guide, scope", [&] { return measure_scope(settings, l1, slices); });
    tell("guide: first touch");
    const json first = in_child_process("guide, first touch", [&] {
        return measure_first_touch(settings, {l1.nodes, 0, quick ? 20U : 200U}, slices);
    });
    add_ratios(result, "L1", in_l1);
    add_ratios(result, "DRAM", in_dram);
    result.json["dram_bytes"] = dram_bytes;

    // What a scope adds depends on what it overlaps with; the figure is the dearer of the two.
    const interleaved with = times_of(scopes, {"chase_scope", "chase", "sum_scope", "sum"});
    figure latency =
        in_ns("scope enter+exit, added to a dependent dereference", with.differences(0, 1));
    figure throughput =
        in_ns("scope enter+exit, added to an independent dereference", with.differences(2, 3));
    for (figure* f : {&latency, &throughput}) {
        f->kind = bound::at_most;
        f->target = 1;
        result.figures.push_back(*f);
    }
    result.json["scope_ns"] = std::max(latency.value.median, throughput.value.median);

    const interleaved touches = times_of(first, {"born", "touched"});
    figure touch = in_ns("first touch in a window, added", touches.differences(0, 1));
    result.json["first_touch_ns"] = touch.value.median;
    result.figures.push_back(touch);

    result.json["tag_ns"] = nullptr;
#if OBASE_BENCH_TAG
    tell("guide: TAG");
    const json tags =
        in_child_process("guide, TAG", [&] { return measure_tag(settings, l1, slices); });
    const interleaved operations = times_of(tags, {"counting", "silent"});
    figure tag = in_ns("TAG (atc), per operation of four guides", operations.differences(0, 1));
    tag.kind = bound::at_most;
    tag.target = 100;
    result.json["tag_ns"] = tag.value.median;
    result.figures.push_back(tag);
#endif
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
