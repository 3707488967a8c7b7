// SPDX-License-Identifier: MIT
#include "tools/kv/mixgraph_load.hpp"

#include "tools/kv/sized_records.hpp"

#include "tools/workload/mixgraph.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace obase::tools {
namespace {

class mixgraph_source final : public request_source {
  public:
    mixgraph_source(std::shared_ptr<const workload::mixgraph> model, std::uint64_t seed)
        : model_(std::move(model)), random_(seed) {}
    request next() override {
        const workload::mixgraph_request r = model_->next(random_);
        return {r.what, r.scan_length, r.value_size, r.key};
    }

  private:
    std::shared_ptr<const workload::mixgraph> model_;
    workload::random_stream random_;
};

} // namespace

session_load mixgraph_load(load_spec& spec, const ycsb_settings& s) {
    constexpr double any = 1e12;
    workload::mixgraph_options o;
    o.records = s.records;
    for (const auto& [name, value] : {std::pair<const char*, double*>{"key-a", &o.key_a},
                                      {"key-b", &o.key_b},
                                      {"range-a", &o.range_a},
                                      {"range-b", &o.range_b},
                                      {"range-c", &o.range_c},
                                      {"range-d", &o.range_d},
                                      {"value-theta", &o.value_theta},
                                      {"value-k", &o.value_k},
                                      {"value-sigma", &o.value_sigma},
                                      {"scan-theta", &o.scan_theta},
                                      {"scan-k", &o.scan_k},
                                      {"scan-sigma", &o.scan_sigma}})
        *value = spec.number(name, *value, -any, any);
    for (const auto& [name, value] :
         {std::pair<const char*, double*>{"get", &o.get}, {"put", &o.put}, {"seek", &o.seek}})
        *value = spec.number(name, *value, 0, 1);
    o.ranges = static_cast<std::uint32_t>(spec.whole("ranges", o.ranges, 1, 1'000'000));
    o.longest_scan =
        static_cast<std::uint32_t>(spec.whole("longest-scan", o.longest_scan, 1, 1'000'000));
    const auto model = std::make_shared<const workload::mixgraph>(o);

    session_load made;
    made.records = std::make_unique<sized_records>(sized_records_options{
        s.records, s.records, workload::size_distribution::fixed(s.key_size),
        workload::value_sizes(workload::size_distribution::pareto(o.value_theta, o.value_k,
                                                                  o.value_sigma,
                                                                  workload::mixgraph::value_limit),
                              s.seed),
        s.seed, workload::key_order::by_id});
    made.source = [model, seed = s.seed](unsigned client) {
        return std::make_unique<mixgraph_source>(model,
                                                 seed ^ workload::mix64(client + std::uint64_t{1}));
    };
    made.distribution = "mixgraph";
    made.scans = o.seek > 0;
    return made;
}

} // namespace obase::tools
