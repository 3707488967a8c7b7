// SPDX-License-Identifier: MIT
#include "tools/kv/changing_load.hpp"

#include "tools/kv/sized_records.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>

namespace obase::tools {
namespace {

// Ids behind the records: first those of lone reads, which are never there, then those of churn.
constexpr std::uint64_t lone_ids = std::uint64_t{1} << 20;
constexpr std::uint64_t most_inserts = std::uint64_t{1} << 26;

struct shared_plan {
    explicit shared_plan(changing_load what)
        : load(std::move(what)), churn(load.records, load.churn_share), records_end(load.records) {}

    changing_load load;
    workload::churn churn;
    std::atomic<std::uint64_t> records_end; // behind the highest id that was inserted

    // Churn's ids, moved behind those of lone reads.
    std::uint64_t record_of(std::uint64_t id) const noexcept {
        return id < load.records || load.lone_reads == 0 ? id : id + lone_ids;
    }
    void was_inserted(std::uint64_t record) {
        std::uint64_t end = records_end.load();
        while (end <= record && !records_end.compare_exchange_weak(end, record + 1)) {
        }
    }
};

class changing_source final : public request_source {
  public:
    changing_source(std::shared_ptr<shared_plan> plan, unsigned client)
        : plan_(std::move(plan)), load_(plan_->load),
          random_(load_.seed ^ workload::mix64(client + std::uint64_t{1})), next_(client),
          lone_(client) {
        const workload::operation_mix& mix = load_.operations;
        below_lone_ = load_.lone_reads;
        below_update_ = below_lone_ + mix.update;
        below_rmw_ = below_update_ + mix.read_modify_write;
        below_erase_ = below_rmw_ + mix.erase;
    }

    request next() override {
        if (to_insert_) {
            const std::uint64_t id = *to_insert_;
            to_insert_.reset();
            return write(operation::insert, id);
        }
        now_ = next_;
        next_ += load_.clients;
        const std::uint64_t k = now_;
        if (load_.pass)
            if (const auto position = load_.pass->record_of(k); position && !gone(*position))
                return {operation::read, 0, 0, id_at(*position)};
        if (load_.deletion && load_.deletion->erases(k))
            return {operation::erase, 0, 0, id_at(load_.deletion->victim(k))};
        if (plan_->churn.replaces(k) && !gone(plan_->churn.position_of(plan_->churn.oldest(k)))) {
            to_insert_ = plan_->churn.newest(k);
            if (*to_insert_ >= load_.records + most_inserts)
                throw std::runtime_error(fmt::format("more than {} inserts", most_inserts));
            return {operation::erase, 0, 0, plan_->record_of(plan_->churn.oldest(k))};
        }
        const double draw = random_.unit();
        if (draw < below_lone_) {
            lone_ += load_.clients;
            return {operation::read, 0, 0, load_.records + lone_ % lone_ids};
        }
        std::uint64_t position = load_.position(k, random_);
        // A share of less than 1 is gone, but perhaps all that the distribution can draw.
        for (int tries = 0; gone(position) && tries < 1000; ++tries)
            position = load_.position(k, random_);
        if (draw >= below_erase_) return {operation::read, 0, 0, id_at(position)};
        if (draw >= below_rmw_) return {operation::erase, 0, 0, id_at(position)};
        return write(draw < below_update_ ? operation::update : operation::read_modify_write,
                     plan_->churn.id_at(position, k));
    }
    void inserted(std::uint64_t record) override { plan_->was_inserted(record); }

  private:
    bool gone(std::uint64_t position) const noexcept {
        return load_.deletion && load_.deletion->gone(position, now_);
    }
    std::uint64_t id_at(std::uint64_t position) const noexcept {
        return plan_->record_of(plan_->churn.id_at(position, now_));
    }
    request write(operation what, std::uint64_t id) const noexcept {
        return {what, 0, load_.values.at(id, now_), plan_->record_of(id)};
    }

    std::shared_ptr<shared_plan> plan_;
    const changing_load& load_;
    workload::random_stream random_;
    std::uint64_t next_;    // number of the operation
    std::uint64_t now_ = 0; // of the one that is being made
    std::uint64_t lone_;
    std::optional<std::uint64_t> to_insert_;
    double below_lone_, below_update_, below_rmw_, below_erase_;
};

} // namespace

session_load session_load_of(changing_load load, const std::string& name) {
    const workload::operation_mix& mix = load.operations;
    const double shares = mix.update + mix.read_modify_write + mix.erase + load.lone_reads;
    if (shares > 1 + 1e-9)
        throw std::invalid_argument(fmt::format(
            "--workload {}: the shares of the operations sum up to {}, more than 1", name, shares));
    const std::uint64_t room =
        (load.lone_reads > 0 ? lone_ids : 0) + (load.churn_share > 0 ? most_inserts : 0);
    const auto plan = std::make_shared<shared_plan>(std::move(load));

    session_load made;
    made.records = std::make_unique<sized_records>(
        sized_records_options{plan->load.records, plan->load.records + room, plan->load.keys,
                              plan->load.values, plan->load.seed, workload::key_order::hashed});
    made.source = [plan](unsigned client) {
        return std::make_unique<changing_source>(plan, client);
    };
    made.distribution = name;
    made.room_for_inserts = room;
    made.records_now = [plan] { return plan->records_end.load(); };
    return made;
}

} // namespace obase::tools
