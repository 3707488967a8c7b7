// SPDX-License-Identifier: MIT
#include "tools/ycsb/load.hpp"

#include "tools/ycsb/generated_records.hpp"
#include "tools/ycsb/in_parallel.hpp"
#include "tools/ycsb/package_load.hpp"
#include "tools/ycsb/trace_load.hpp"

#include "tools/workload/key_format.hpp"
#include "tools/workload/ycsb_mix.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace obase::tools {
namespace {

constexpr std::uint64_t most_inserts = std::uint64_t{1} << 26;

class ycsb_records final : public generated_records {
  public:
    ycsb_records(std::uint64_t count, std::size_t key_size, std::size_t value_size)
        : count_(count), key_size_(key_size), value_size_(value_size) {}
    std::uint64_t count() const noexcept override { return count_; }
    std::size_t largest_key() const noexcept override { return key_size_; }
    std::size_t largest_value() const noexcept override { return value_size_; }

    std::string_view key(std::uint64_t record, std::span<char> buffer) const override {
        workload::write_key(buffer.first(key_size_), record);
        return {buffer.data(), key_size_};
    }

  private:
    std::size_t usual_size(std::uint64_t) const override { return value_size_; }
    std::uint64_t count_;
    std::size_t key_size_;
    std::size_t value_size_;
};

class mix_source final : public request_source {
  public:
    mix_source(std::shared_ptr<workload::request_plan> plan, unsigned thread)
        : plan_(std::move(plan)), stream_(plan_->stream(thread)),
          limit_(plan_->options().records + most_inserts) {}
    request next() override {
        const workload::request r = stream_.next();
        if (r.id >= limit_)
            throw std::runtime_error(fmt::format("more than {} inserts", most_inserts));
        return {r.what, r.scan_length, 0, r.id};
    }
    void inserted(std::uint64_t record) override { stream_.completed(record); }

  private:
    std::shared_ptr<workload::request_plan> plan_;
    workload::request_stream stream_;
    std::uint64_t limit_;
};

class sequence_source final : public request_source {
  public:
    sequence_source(std::shared_ptr<const std::vector<std::uint32_t>> sequence, std::size_t begin)
        : sequence_(std::move(sequence)), at_(begin) {}
    request next() override {
        const std::uint64_t record = (*sequence_)[at_];
        if (++at_ == sequence_->size()) at_ = 0;
        return {operation::read, 0, 0, record};
    }

  private:
    std::shared_ptr<const std::vector<std::uint32_t>> sequence_;
    std::size_t at_;
};

std::uint64_t physical_memory() {
    return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// True if COLD could lie in a file there.
std::string why_no_file_in(const std::string& directory) {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return fmt::format("--cold file:{}: no file can be made there: {}", directory,
                           std::strerror(errno));
    ::close(fd);
    return "";
}

} // namespace

std::string why_not(const ycsb_settings& s) {
    const auto is_number = [](double x) { return std::isfinite(x) && x > 0; };
    if (!is_number(s.window_s)) return fmt::format("--window {}: more than 0 seconds", s.window_s);
    if (!is_number(s.time_scale)) return fmt::format("--time-scale {}: more than 0", s.time_scale);
    if (s.real_window_s() < 0.001 || s.real_window_s() > 1e6)
        return fmt::format("--window {} with --time-scale {}: windows of {} s; 0.001 to 1000000 s "
                           "are possible",
                           s.window_s, s.time_scale, s.real_window_s());
    if (!is_number(s.duration_s) || s.duration_s > 1e7)
        return fmt::format("--duration {}: more than 0 and at most 10000000 seconds", s.duration_s);
    if (s.records == 0) return "--records 0: there is nothing to ask for";
    if (s.records >= std::uint64_t{1} << 32)
        return fmt::format("--records {}: at most {}", s.records, (std::uint64_t{1} << 32) - 1);
    if (s.threads < 1 || s.threads > 256) return fmt::format("--threads {}: 1 to 256", s.threads);
    if (s.key_size < workload::min_key_size || s.key_size > 65'536)
        return fmt::format("--key-size {}: {} to 65536 bytes", s.key_size, workload::min_key_size);
    if (s.records > workload::key_id_limit(s.key_size))
        return fmt::format("--key-size {}: too short for {} different keys", s.key_size, s.records);
    if (s.value_size > (std::size_t{1} << 30))
        return fmt::format("--value-size {}: at most 1 GiB", s.value_size);
    if (!(s.live_share > 0 && s.live_share <= 1))
        return fmt::format("--live-share {}: more than 0 and at most 1", s.live_share);
    const double needed =
        static_cast<double>(s.records) * static_cast<double>(s.key_size + s.value_size + 100);
    if (needed > 0.9 * static_cast<double>(physical_memory()))
        return fmt::format("--records {} of {} + {} bytes: about {:.1f} GiB, and this machine has "
                           "{:.1f} GiB of memory",
                           s.records, s.key_size, s.value_size, needed / 0x1p30,
                           static_cast<double>(physical_memory()) / 0x1p30);
    if (s.reclaim != "off" && s.protocol != "none")
        return fmt::format("--reclaim {}: only with --protocol none, which has no hints of its own",
                           s.reclaim);
    if (s.cold != "anon") {
        if (!s.cold.starts_with("file:") || s.cold_directory().empty())
            return fmt::format("--cold {}: anon, or file:DIRECTORY", s.cold);
        if (const std::string why = why_no_file_in(s.cold_directory()); !why.empty()) return why;
    }
    return "";
}

session_load make_load(const ycsb_settings& s) {
    if (!s.trace.empty()) return load_from_trace(s);
    if (s.packages) return load_from_packages(s);
    const auto chosen = workload::ycsb(s.workload.empty() ? '?' : s.workload[0]);
    if (!chosen || s.workload.size() != 1)
        throw std::invalid_argument("--workload " + s.workload + ": A, B, C, D, E or F");
    workload::request_options options;
    options.records = s.records;
    options.operations = chosen->operations;
    options.ids = chosen->ids;
    if (!s.distribution.empty()) {
        const auto named = workload::distribution_named(s.distribution);
        if (!named)
            throw std::invalid_argument("--distribution " + s.distribution +
                                        ": zipfian, loop, hotspot, uniform or latest");
        options.ids = *named;
    }
    options.threads = s.threads;
    options.seed = s.seed;
    options.live_share = s.live_share;
    auto plan = std::make_shared<workload::request_plan>(options);
    session_load load;
    load.records = std::make_unique<ycsb_records>(s.records, s.key_size, s.value_size);
    load.source = [plan](unsigned thread) { return std::make_unique<mix_source>(plan, thread); };
    load.scans = options.operations.scan > 0;
    load.distribution = workload::name_of(options.ids);
    load.period = plan->loop() != nullptr ? plan->loop()->period() : 0;
    load.records_now = [plan] { return plan->records(); };
    load.room_for_inserts = options.operations.insert > 0 ? most_inserts : 0;
    return load;
}

std::function<std::unique_ptr<request_source>(unsigned)>
reads_of(std::shared_ptr<const std::vector<std::uint32_t>> sequence, unsigned clients) {
    return [sequence = std::move(sequence), clients](unsigned thread) {
        return std::make_unique<sequence_source>(sequence, sequence->size() * thread / clients);
    };
}

void fill_store(crestdb::store& store, const record_set& records, unsigned threads) {
    in_parallel(threads, records.count(), [&](std::uint64_t first, std::uint64_t last) {
        std::vector<char> key(records.largest_key()), value(records.largest_value());
        for (std::uint64_t record = first; record < last; ++record)
            store.put(records.key(record, key), records.value(record, first_version, 0, value));
    });
}

} // namespace obase::tools
