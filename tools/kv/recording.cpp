// SPDX-License-Identifier: MIT
#include "tools/kv/recording.hpp"

#include "tools/kv/kv.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
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

// Of line 1.
template <class Integer>
Integer whole_number(const json& header, const char* name) {
    const json& found = header.at(name);
    constexpr Integer most = std::numeric_limits<Integer>::max();
    if (!found.is_number_unsigned() || found.get<std::uint64_t>() > most)
        throw std::invalid_argument(fmt::format(
            "expected a whole number from 0 to {} as {}; found {}", most, name, found.dump()));
    return found.get<Integer>();
}

std::string printable_text(const json& header, const char* name) {
    auto text = header.at(name).get<std::string>();
    if (std::any_of(text.begin(), text.end(),
                    [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }))
        throw std::invalid_argument(fmt::format(
            "expected a {} without control characters; found {}", name, header.at(name).dump()));
    return text;
}

// The settings with what line 1 says. Throws json::exception for what is not such a line.
kv_settings settings_of_header(const std::string& text, kv_settings s) {
    const json header = json::parse(text);
    s.workload = printable_text(header, "workload");
    s.store.records = whole_number<std::uint64_t>(header, "records");
    s.store.threads = whole_number<unsigned>(header, "clients");
    s.store.key_size = whole_number<std::size_t>(header, "key_size");
    s.store.value_size = whole_number<std::size_t>(header, "value_size");
    s.store.seed = whole_number<std::uint64_t>(header, "seed");
    s.rate = header.at("rate").get<double>();
    return s;
}

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
    const auto refuse = [&](const std::string& why) {
        throw std::runtime_error(fmt::format("{}, line 1: {}", settings.replay, why));
    };
    kv_settings as_recorded; // with its rate, which the load's times in seconds are of
    try {
        as_recorded = settings_of_header(run->header, settings);
    } catch (const std::invalid_argument& error) {
        refuse(error.what());
    } catch (const json::exception& error) {
        refuse(fmt::format("expected JSON with workload, records, clients, key_size, value_size, "
                           "seed and rate; found {}",
                           run->header.substr(0, 60)));
    }
    if (as_recorded.store.threads != run->clients.size())
        refuse(fmt::format("expected {} clients; found {}", run->clients.size(),
                           as_recorded.store.threads));
    if (const std::string why = why_not(as_recorded); !why.empty()) refuse(why);
    replayed made{as_recorded, {}};
    made.settings.rate = settings.rate;
    try {
        made.load = make_kv_load(as_recorded);
    } catch (const std::invalid_argument& error) {
        refuse(error.what());
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
