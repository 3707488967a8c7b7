// SPDX-License-Identifier: MIT
#include "tools/kv/recording.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace obase::tools {
namespace {

using nlohmann::json;

class recording_source final : public request_source {
  public:
    recording_source(std::unique_ptr<request_source> from,
                     std::shared_ptr<workload::operation_recorder> file, unsigned client)
        : from_(std::move(from)), file_(std::move(file)), client_(client) {}
    request next() override {
        const request r = from_->next();
        file_->add(client_, {r.record, r.value_size, r.scan_length, r.what});
        return r;
    }
    bool ended() const override { return from_->ended(); }
    void inserted(std::uint64_t record) override { from_->inserted(record); }

  private:
    std::unique_ptr<request_source> from_;
    std::shared_ptr<workload::operation_recorder> file_;
    unsigned client_;
};

class replay_source final : public request_source {
  public:
    replay_source(std::shared_ptr<const workload::recorded_operations> run, unsigned client)
        : run_(std::move(run)), operations_(run_->clients[client]) {}
    request next() override {
        const workload::recorded_operation& o = operations_[at_++];
        return {o.what, o.scan_length, o.value_size, o.record};
    }
    bool ended() const override { return at_ == operations_.size(); }

  private:
    std::shared_ptr<const workload::recorded_operations> run_;
    const std::vector<workload::recorded_operation>& operations_;
    std::size_t at_ = 0;
};

} // namespace

void record(session_load& load, std::shared_ptr<workload::operation_recorder> file) {
    load.source = [source = std::move(load.source), file = std::move(file)](unsigned client) {
        return std::make_unique<recording_source>(source(client), file, client);
    };
}

std::string recording_header(const kv_settings& s) {
    return json{{"workload", s.workload},
                {"records", s.store.records},
                {"clients", s.store.threads},
                {"key_size", s.store.key_size},
                {"value_size", s.store.value_size},
                {"seed", s.store.seed},
                {"rate", s.rate}}
        .dump();
}

replayed load_of_recording(const kv_settings& settings) {
    auto run = std::make_shared<workload::recorded_operations>(
        workload::read_recorded_operations(settings.replay));
    replayed made{settings, {}};
    kv_settings& s = made.settings;
    double recorded_rate = 0; // the load's times in seconds are of this one
    try {
        const json header = json::parse(run->header);
        s.workload = header.at("workload").get<std::string>();
        s.store.records = header.at("records").get<std::uint64_t>();
        s.store.threads = header.at("clients").get<unsigned>();
        s.store.key_size = header.at("key_size").get<std::size_t>();
        s.store.value_size = header.at("value_size").get<std::size_t>();
        s.store.seed = header.at("seed").get<std::uint64_t>();
        recorded_rate = header.at("rate").get<double>();
    } catch (const json::exception& error) {
        throw std::runtime_error(fmt::format("{}, line 1: expected JSON with workload, records, "
                                             "clients, key_size, value_size, seed and rate; found "
                                             "{}",
                                             settings.replay, run->header.substr(0, 60)));
    }
    if (s.store.threads != run->clients.size())
        throw std::runtime_error(fmt::format("{}, line 1: expected {} clients; found {}",
                                             settings.replay, run->clients.size(),
                                             s.store.threads));
    kv_settings as_recorded = s;
    as_recorded.rate = recorded_rate;
    try {
        made.load = make_kv_load(as_recorded);
    } catch (const std::invalid_argument& error) {
        throw std::runtime_error(fmt::format("{}, line 1: {}", settings.replay, error.what()));
    }
    session_load& load = made.load.session;
    const std::uint64_t room = load.records->count() + load.room_for_inserts;
    std::uint64_t end = load.records->count();
    for (std::size_t c = 0; c < run->clients.size(); ++c)
        for (std::size_t i = 0; i < run->clients[c].size(); ++i) {
            const workload::recorded_operation& o = run->clients[c][i];
            if (o.record >= room || o.value_size > load.records->largest_value())
                throw std::runtime_error(fmt::format(
                    "{}, operation {} of client {}: expected a record below {} and a value of at "
                    "most {} bytes; found record {}, {} bytes",
                    settings.replay, i + 1, c, room, load.records->largest_value(), o.record,
                    o.value_size));
            if (o.what == operation::insert) end = std::max(end, o.record + 1);
        }
    load.source = [run](unsigned client) { return std::make_unique<replay_source>(run, client); };
    load.records_now = [end] { return end; };
    load.period = 0;
    return made;
}

} // namespace obase::tools
