// SPDX-License-Identifier: MIT
//
// OnePass and MergePass. Both scan keys into one array of entries for each thread. If all entries fit,
// the arrays are sorted and delivered: OnePass. Otherwise full arrays are sorted and written as runs of
// entries, and the runs, mapped, are what is delivered: MergePass. The two differ in nothing else, so
// a guess that entries will fit costs nothing if it is wrong.
#include "wiscsort/device/memory.hpp"
#include "wiscsort/order/entry_sort.hpp"
#include "wiscsort/order/extract.hpp"
#include "wiscsort/strategy/job.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <optional>

namespace wiscsort::strategy {

namespace {

using schedule::operation;

// What a scan reads at a time where the input is not mapped.
constexpr std::uint64_t read_piece = MiB;
// What one write of sorted entries has.
constexpr std::uint64_t most_spill = 2 * MiB;

class pointer_sort {
  public:
    explicit pointer_sort(job& job) : job_(job) {
        // As many as half of the memory is enough for.
        const std::uint64_t takes =
            job.input.base() == nullptr ? 4 * read_piece : 4096 * sizeof(entry);
        const auto scanners = static_cast<unsigned>(std::clamp<std::uint64_t>(
            job.memory / 2 / takes, 1,
            std::max(1U, job.scheduler.threads().threads(operation::scan))));
        std::uint64_t buffers = job.write_buffer;
        if (job.input.base() == nullptr) buffers += scanners * read_piece;
        if (!job.input.format().fixed() || job.options.unique)
            buffers += std::min(4 * MiB, entries_of_round(job.write_buffer, job.input.bytes(),
                                                          job.report.records_in) *
                                             round_entry_bytes);
        const std::uint64_t room = job.memory - std::min(job.memory, buffers);
        const std::uint64_t each = std::max<std::uint64_t>(4096, room / sizeof(entry) / scanners);
        for (unsigned i = 0; i < scanners; ++i) arrays_.emplace_back(each);
        for (const range& r :
             ranges_of(job.input, 0, job.input.end(),
                       std::clamp<std::uint64_t>(job.input.bytes() / (scanners * 16ULL), 64 * KiB,
                                                 8 * MiB)))
            ranges_.push_back({r, false});
        all_ranges_ = ranges_.size();
    }

    void run() {
        for (;;) {
            scan();
            sort();
            if (ranges_.empty() && !runs_) break;
            spill();
            if (ranges_.empty()) break;
        }
        std::vector<std::span<const entry>> parts;
        if (runs_) {
            arrays_.clear();
            mapped_ = runs_->map(runs_bytes_);
            const auto* const entries = reinterpret_cast<const entry*>(mapped_.data());
            for (const auto& [begin, count] : run_list_)
                parts.push_back({entries + begin / sizeof(entry), count});
        } else {
            parts.assign(sorted_.begin(), sorted_.end());
        }
        job_.report.runs = run_list_.size();
        const order::sorted_parts sorted(std::move(parts), job_.less());
        job_.report.records_in = sorted.size();
        // Reading around each record would push out pages that are needed.
        if (job_.plan.beyond_cache && !job_.plan.offset_order) job_.input.expect_random_access();
        delivery_settings settings;
        settings.entries_on_device = static_cast<bool>(runs_);
        const delivery delivered = deliver(job_, sorted, to_output(job_.output), settings);
        job_.report.bytes_out = delivered.bytes;
        job_.report.records_out = delivered.records;
        job_.report.passes = 1;
    }

  private:
    struct pending {
        range what;
        bool at_record; // begins where a record does, whatever is before
    };

    std::optional<pending> take() {
        const std::lock_guard hold(lock_);
        if (ranges_.empty()) return std::nullopt;
        const pending next = ranges_.front();
        ranges_.pop_front();
        job_.progress("scan", all_ranges_ - ranges_.size(), all_ranges_);
        return next;
    }
    void put_back(range rest) {
        const std::lock_guard hold(lock_);
        ranges_.push_front({rest, true});
    }

    void scan() {
        // One task for each array: it takes ranges until its array is full.
        job_.scheduler.run(
            {operation::scan, "scan", arrays_.size(), 0, [this](unsigned, std::uint64_t task) {
                 device::entry_array& array = arrays_[task];
                 device::stream reads(job_.device(), device::direction::read);
                 device::memory_block window;
                 while (!array.full()) {
                     const std::optional<pending> next = take();
                     if (!next) break;
                     const std::size_t before = array.size();
                     scan_range(*next, array, reads, window);
                     extract_work(array.size() - before);
                 }
             }});
    }

    void scan_range(pending next, device::entry_array& array, device::stream& reads,
                    device::memory_block& block) {
        const device::input_set& input = job_.input;
        const device::input_file& file = input.file_at(next.what.begin);
        std::uint64_t from = next.what.begin;
        const bool find_line = input.format().kind == record_format::kinds::lines &&
                               !next.at_record && from != file.begin;
        if (input.base() != nullptr) {
            if (find_line)
                from = order::next_line(input.base(), from, file.end(), input.format().terminator);
            from = order::extract(input, {input.base(), 0, file.end(), true}, from, next.what.end,
                                  job_.order, array, &reads, true);
            if (from < next.what.end) put_back({from, next.what.end});
            return;
        }
        // A window moves over the range, and grows where it holds no whole record.
        std::uint64_t size = read_piece;
        bool searching = find_line;
        if (searching) --from;
        while (from < next.what.end) {
            if (block.size() < size) block.grow(size);
            const std::uint64_t end = std::min(file.end(), from + size);
            input.read(from, block.data(), end - from);
            const order::window window{block.data(), from, end, end == file.end()};
            std::uint64_t at = from;
            if (searching) {
                at =
                    from + order::next_line(block.data(), 1, end - from, input.format().terminator);
                if (at == end) { // no end of a line here
                    from = end == file.end() ? end : end - 1;
                    continue;
                }
                searching = false;
                if (at >= next.what.end) return;
            }
            const std::uint64_t reached =
                order::extract(input, window, at, next.what.end, job_.order, array, &reads, false);
            if (array.full() && reached < next.what.end) {
                put_back({reached, next.what.end});
                return;
            }
            if (reached == at && at == from) {
                if (size / 2 > job_.order.largest_record()) throw order::record_too_large{at, size};
                size *= 2;
            }
            from = reached;
        }
    }

    void extract_work(std::uint64_t records) {
        job_.device().work(static_cast<double>(records) * job_.profile.processor.extract_seconds);
    }

    // Arrays are as many as threads that scan; where more threads may compute, each array is sorted in
    // several parts.
    void sort() {
        sorted_.clear();
        const std::size_t each =
            (job_.scheduler.threads().threads(operation::compute) + arrays_.size() - 1) /
            arrays_.size();
        for (device::entry_array& array : arrays_) {
            const std::span<entry> all = array.all();
            for (std::size_t i = 0; i < each; ++i) {
                const std::size_t begin = all.size() * i / each;
                const std::size_t end = all.size() * (i + 1) / each;
                if (begin < end) sorted_.push_back(all.subspan(begin, end - begin));
            }
        }
        job_.scheduler.run(
            {operation::compute, "sort", sorted_.size(), 0, [this](unsigned, std::uint64_t task) {
                 const auto n = static_cast<double>(sorted_[task].size());
                 order::sort_entries(sorted_[task], job_.less());
                 job_.device().work(n * std::log2(std::max(2.0, n)) *
                                    job_.profile.processor.sort_seconds);
             }});
    }

    // The sorted parts become runs, one each.
    void spill() {
        if (!runs_) runs_.emplace(job_.scratch.open(false));
        std::uint64_t bytes = 0;
        for (const std::span<entry>& part : sorted_) bytes += part.size_bytes();
        const std::uint64_t size = schedule::even_piece(
            bytes, job_.scheduler.threads().threads(operation::write),
            job_.profile.least_request(job_.profile.write), most_spill, sizeof(entry));
        struct piece {
            std::uint64_t offset;
            std::span<const entry> what;
        };
        std::vector<piece> pieces;
        std::uint64_t offset = runs_bytes_;
        for (const std::span<entry>& part : sorted_) {
            run_list_.emplace_back(offset, part.size());
            const std::size_t each = size / sizeof(entry);
            for (std::size_t at = 0; at < part.size(); at += each)
                pieces.push_back({offset + at * sizeof(entry),
                                  part.subspan(at, std::min(each, part.size() - at))});
            offset += part.size_bytes();
        }
        runs_->reserve(runs_bytes_, bytes);
        job_.scheduler.run(
            {operation::write, "runs", pieces.size(), bytes, [&](unsigned, std::uint64_t task) {
                 const piece& p = pieces[task];
                 runs_->write(p.offset, reinterpret_cast<const char*>(p.what.data()),
                              p.what.size_bytes());
                 device::stream writes(job_.device(), device::direction::write);
                 writes.sequential(p.offset, p.what.size_bytes());
                 writes.flush();
             }});
        for (device::entry_array& array : arrays_) array.clear();
        runs_bytes_ = offset;
    }

    job& job_;
    std::vector<device::entry_array> arrays_;
    std::vector<std::span<entry>> sorted_; // of the arrays
    std::mutex lock_;                      // of ranges_
    std::deque<pending> ranges_;
    std::size_t all_ranges_ = 0;
    std::optional<device::scratch_file> runs_;
    std::uint64_t runs_bytes_ = 0;
    std::vector<std::pair<std::uint64_t, std::size_t>> run_list_; // offset, entries
    device::mapped_bytes mapped_;
};

} // namespace

void sort_by_pointers(job& job) { pointer_sort(job).run(); }

} // namespace wiscsort::strategy
