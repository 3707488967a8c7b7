// SPDX-License-Identifier: MIT
#include "tools/ycsb/trace_load.hpp"

#include "tools/ycsb/generated_records.hpp"

#include "tools/workload/key_format.hpp"
#include "tools/workload/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace obase::tools {
namespace {

constexpr std::size_t largest_value_taken = std::size_t{64} << 20;

class trace_records final : public generated_records {
  public:
    trace_records(std::shared_ptr<const workload::trace> recorded, std::size_t key_size,
                  std::size_t value_size)
        : trace_(std::move(recorded)), key_size_(key_size), value_size_(value_size) {
        for (const workload::trace_record& r : trace_->records()) {
            largest_key_ = std::max(largest_key_, key_bytes(r));
            largest_value_ = std::max(largest_value_, value_bytes(r));
        }
        for (const workload::trace_entry& e : trace_->entries())
            largest_value_ = std::max<std::size_t>(largest_value_, e.value_length);
    }
    std::uint64_t count() const noexcept override { return trace_->keys(); }
    std::size_t largest_key() const noexcept override { return largest_key_; }
    std::size_t largest_value() const noexcept override { return largest_value_; }

    std::string_view key(std::uint64_t record, std::span<char> buffer) const override {
        // Keys of one size differ because ids do; keys of two sizes differ anyway.
        const std::size_t size = key_bytes(trace_->records()[record]);
        workload::write_key(buffer.first(size), record);
        return {buffer.data(), size};
    }

  private:
    std::size_t usual_size(std::uint64_t record) const override {
        return value_bytes(trace_->records()[record]);
    }
    std::size_t key_bytes(const workload::trace_record& r) const noexcept {
        return r.key_length == 0 ? key_size_
                                 : std::max<std::size_t>(r.key_length, workload::min_key_size);
    }
    std::size_t value_bytes(const workload::trace_record& r) const noexcept {
        return r.value_length == 0 ? value_size_ : r.value_length;
    }

    std::shared_ptr<const workload::trace> trace_;
    std::size_t key_size_;
    std::size_t value_size_;
    std::size_t largest_key_ = 0;
    std::size_t largest_value_ = 0;
};

// Takes every `clients`-th operation, so that together they are the trace.
class trace_source final : public request_source {
  public:
    trace_source(std::shared_ptr<const workload::trace> recorded, unsigned client, unsigned clients)
        : trace_(std::move(recorded)), at_(client % trace_->entries().size()), step_(clients) {}
    request next() override {
        const auto& entries = trace_->entries();
        const workload::trace_entry& e = entries[at_];
        at_ += step_;
        if (at_ >= entries.size()) at_ %= entries.size();
        // An insert is a write like any other: in the second round its record is there.
        const operation what = e.what == operation::insert ? operation::update : e.what;
        return {what, what == operation::scan ? 10U : 0U, e.value_length, e.key};
    }

  private:
    std::shared_ptr<const workload::trace> trace_;
    std::size_t at_;
    std::size_t step_;
};

} // namespace

session_load load_from_trace(const ycsb_settings& settings) {
    const auto format = workload::trace_format_named(settings.trace_format);
    if (!format)
        throw std::invalid_argument(fmt::format(
            "a trace of the format {}: auto, operations, twitter, keys, be32, cachelib, "
            "arc or oracle is expected",
            settings.trace_format));
    auto recorded = std::make_shared<const workload::trace>(
        workload::read_trace(settings.trace, {.format = *format}));
    auto records =
        std::make_unique<trace_records>(recorded, settings.key_size, settings.value_size);
    if (records->largest_value() > largest_value_taken)
        throw std::runtime_error(fmt::format("{}: a value of {} bytes; at most {} are taken",
                                             settings.trace, records->largest_value(),
                                             largest_value_taken));
    session_load load;
    load.records = std::move(records);
    load.scans =
        std::any_of(recorded->entries().begin(), recorded->entries().end(),
                    [](const workload::trace_entry& e) { return e.what == operation::scan; });
    load.distribution = "recorded";
    load.period = recorded->entries().size();
    load.source = [recorded, clients = settings.threads](unsigned client) {
        return std::make_unique<trace_source>(recorded, client, clients);
    };
    return load;
}

} // namespace obase::tools
