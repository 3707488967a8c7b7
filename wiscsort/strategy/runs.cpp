// SPDX-License-Identifier: MIT
//
// EMS, the external merge sort: pieces of the input as large as memory are read in order, sorted and
// written as runs of whole records; then the runs are merged, several key ranges at a time. It reads
// nothing at random, which is what devices without random reads need, and moves every record four
// times.
//
// Controlled, a piece is read by as many threads as reads get, sorted by all, gathered by all, and
// written by as many as writes get; a merge refills all its buffers, merges, and writes. Uncontrolled,
// every thread of a merge refills, merges and writes as it comes.
#include "wiscsort/device/memory.hpp"
#include "wiscsort/order/entry_sort.hpp"
#include "wiscsort/order/extract.hpp"
#include "wiscsort/strategy/job.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

namespace wiscsort::strategy {

namespace {

using schedule::operation;

constexpr std::uint64_t most_load = 2 * MiB; // of one read or write task
// Of a run that is merged: below the first, merging in passes is better; below the second or what the
// device likes less, merging fewer key ranges at a time is.
constexpr std::uint64_t least_buffer = 64 * KiB, most_of_range = 16 * KiB;

struct run {
    std::uint64_t offset = 0, size = 0;
    std::vector<std::uint64_t> samples; // see delivery
    std::uint64_t end() const { return offset + size; }
};

// The smallest of the records that are not merged yet, for each run of one key range.
struct cursor {
    std::uint64_t at = 0, end = 0;   // in the file: the next byte to read, and behind the last
    std::size_t buffer_begin = 0;    // in the buffers' memory
    std::size_t begin = 0, size = 0; // bytes in the buffer that are not merged yet
    record_view record;
    entry head;
    std::string_view key;
    std::string key_buffer;
    bool exhausted() const { return size == 0 && at == end; }
};

// One key range of all runs, and its part of the output.
class range_merge {
  public:
    range_merge(job& job, const device::scratch_file& file, std::uint64_t buffers,
                std::uint64_t output_buffer)
        : job_(job), file_(file), format_(job.input.format()), buffer_bytes_(buffers),
          output_capacity_(output_buffer) {}

    void add(std::uint64_t begin, std::uint64_t end) {
        cursor c;
        c.at = begin;
        c.end = end;
        cursors_.push_back(std::move(c));
        bytes_ += end - begin;
    }
    std::uint64_t bytes() const { return bytes_; }
    void start(std::uint64_t output_offset) {
        output_offset_ = output_offset;
        each_ = std::max<std::uint64_t>(4096,
                                        buffer_bytes_ / std::max<std::size_t>(1, cursors_.size()));
        each_ = each_ / device::page_size * device::page_size;
        memory_ = device::memory_block(each_ * cursors_.size(), false);
        output_ = device::memory_block(output_capacity_ + device::page_size, false);
        for (std::size_t i = 0; i < cursors_.size(); ++i) cursors_[i].buffer_begin = i * each_;
    }
    bool done() const {
        return output_size_ == 0 && std::all_of(cursors_.begin(), cursors_.end(),
                                                [](const cursor& c) { return c.exhausted(); });
    }

    // What refill() reads into one buffer. Three quarters of a buffer are enough, unless they are a part
    // of a record that is larger.
    std::uint64_t missing(std::size_t number) const {
        const cursor& c = cursors_[number];
        if (c.size > each_ - each_ / 4 && !c.record.stored.empty()) return 0;
        return std::min<std::uint64_t>(each_ - c.size, c.end - c.at);
    }

    // Fills what has been merged of one buffer, or of each. Buffers that are refilled together are full
    // together, so that the next merge ends with a full output buffer in every range, and not with a
    // run that has nothing left in one of them.
    void refill(std::size_t number) {
        cursor& c = cursors_[number];
        if (c.size == each_ && c.at != c.end && c.record.stored.empty()) too_large(each_ + 1);
        const std::uint64_t some = missing(number);
        if (some == 0) return;
        device::stream reads(job_.device(), device::direction::read);
        char* const buffer = memory_.data() + c.buffer_begin;
        std::memmove(buffer, buffer + c.begin, c.size);
        c.begin = 0;
        file_.read(c.at, buffer + c.size, some);
        reads.sequential(c.at, some);
        reads.flush();
        c.at += some;
        c.size += some;
        look(c);
    }
    void refill() {
        for (std::size_t i = 0; i < cursors_.size(); ++i) refill(i);
    }

    // Merges until a buffer is empty whose run is not, or the output buffer is full.
    void merge(const sink&) {
        const auto before = [this](std::size_t i, std::size_t j) { return less(i, j); };
        order::loser_tree tree(cursors_.size(), before);
        std::uint64_t merged = 0;
        const std::uint64_t from = output_size_;
        while (!cursors_.empty()) {
            cursor& c = cursors_[tree.winner()];
            if (c.size == 0) break; // all are at their end, or this one waits for more
            if (c.record.stored.empty()) break;
            const std::uint64_t size = c.record.stored.size();
            if (output_size_ + size > output_capacity_ && output_size_ > 0) break;
            if (size > output_capacity_) too_large(size);
            ++merged;
            if (!job_.options.unique || !same_as_last(c)) {
                std::memcpy(output() + output_size_, c.record.stored.data(), size);
                output_size_ += size;
                ++records_;
            }
            c.begin += size;
            c.size -= size;
            look(c);
            if (c.record.stored.empty() && c.at != c.end) break;
            tree.replay();
        }
        if (job_.device().emulated()) {
            const model::processor_profile& cpu = job_.profile.processor;
            const auto runs = static_cast<double>(std::max<std::size_t>(2, cursors_.size()));
            job_.device().work(static_cast<double>(merged) * cpu.merge_seconds * std::log2(runs) +
                               static_cast<double>(output_size_ - from) * 2 /
                                   cpu.copy_bytes_per_second);
        }
    }

    // Bytes [begin, end) of the output buffer, counted from the page in which it begins.
    void write(const sink& sink, std::uint64_t begin, std::uint64_t end) const {
        const std::uint64_t head = output_offset_ % device::page_size;
        begin = begin > head ? begin - head : 0;
        end = std::min(output_size_, end - std::min(end, head));
        if (begin >= end) return;
        sink.write(output_offset_ + begin, output() + begin, end - begin);
        device::stream writes(job_.device(), device::direction::write);
        writes.sequential(output_offset_ + begin, end - begin);
        writes.flush();
    }
    // All of it has been written.
    void clear_output() {
        output_offset_ += output_size_;
        written_ += output_size_;
        output_size_ = 0;
    }
    std::uint64_t written() const { return written_; }
    std::uint64_t records() const { return records_; }
    std::uint64_t buffered() const { return output_size_; }
    std::uint64_t pages_end() const {
        return output_size_ == 0 ? 0 : output_offset_ % device::page_size + output_size_;
    }
    std::vector<std::uint64_t> take_samples() { return std::move(samples_); }

  private:
    char* output() const { return output_.data() + output_offset_ % device::page_size; }

    // The first record in the buffer; none if it is not complete.
    void look(cursor& c) {
        c.record = {};
        if (c.size == 0) return;
        const char* const at = memory_.data() + c.buffer_begin + c.begin;
        record_view view;
        // A run's lines all have their terminator.
        if (find_record(format_, at, c.size, view) == found::torn ||
            view.written_size != view.stored.size()) {
            if (c.size == each_) too_large(c.size + 1);
            return;
        }
        c.record = view;
        const auto number = static_cast<std::uint64_t>(&c - cursors_.data());
        c.key = job_.order.keys().key_of(view.body, c.key_buffer);
        c.head = make_entry(c.key, job_.order.common().size(), job_.order.reverse(), number);
    }

    bool less(std::size_t i, std::size_t j) const {
        const cursor &a = cursors_[i], &b = cursors_[j];
        if (a.exhausted()) return false;
        if (b.exhausted()) return true;
        if (!job_.order.prefix_decides() && a.head.same_prefix(b.head)) {
            const int compared = job_.order.compare_keys(a.key, b.key);
            // Runs are in the order of the input, so equal records are too.
            return compared != 0 ? compared < 0 : i < j;
        }
        return a.head < b.head;
    }

    bool same_as_last(const cursor& c) {
        if (has_last_ && c.key == last_key_) return true;
        last_key_ = c.key;
        has_last_ = true;
        return false;
    }

    [[noreturn]] void too_large(std::uint64_t size) const {
        refuse("--memory {}: too small to merge {} runs with a record of {} or more; at least {} "
               "are needed",
               bytes_text(job_.memory), cursors_.size(), bytes_text(size),
               bytes_text((cursors_.size() + 2) * 2 * size * job_.threads));
    }

    job& job_;
    const device::scratch_file& file_;
    const record_format& format_;
    std::uint64_t buffer_bytes_, output_capacity_;
    std::uint64_t bytes_ = 0;
    std::size_t each_ = 0;
    std::vector<cursor> cursors_;
    device::memory_block memory_, output_;
    std::uint64_t output_offset_ = 0, output_size_ = 0, written_ = 0, records_ = 0;
    std::vector<std::uint64_t> samples_;
    std::string last_key_;
    bool has_last_ = false;
};

class run_sort {
  public:
    explicit run_sort(job& job) : job_(job) {}

    void run_all() {
        make_runs();
        if (delivered_) return;
        const std::uint64_t fan_in = std::max<std::uint64_t>(2, job_.memory / 2 / least_buffer);
        while (runs_.size() > fan_in) merge_groups(fan_in);
        merge(0, runs_.size(), to_output(job_.output), 0, true);
        ++job_.report.passes;
    }

  private:
    // The least buffer of a run in one key range.
    std::uint64_t least_range() const {
        const record_format& format = job_.input.format();
        // Of records of any size nobody knows how many fit.
        if (!format.fixed()) return most_of_range;
        return std::max(std::min(most_of_range, job_.profile.least_request(job_.profile.read)),
                        2 * format.size);
    }

    std::uint64_t chunk_bytes() const {
        const std::uint64_t buffers =
            job_.write_buffer + (job_.input.format().fixed() ? 0 : 4 * MiB);
        const std::uint64_t room =
            std::max<std::uint64_t>(job_.memory / 4, job_.memory - std::min(job_.memory, buffers));
        // A record and its entry, and some slack where records differ.
        const double record =
            job_.input.format().fixed()
                ? static_cast<double>(job_.input.format().size)
                : std::max(1.0,
                           static_cast<double>(job_.input.bytes()) /
                               static_cast<double>(std::max<std::uint64_t>(1, records_guess_)));
        const double slack = job_.input.format().fixed() ? 1 : 1.25;
        const double chunk = static_cast<double>(room) / (1 + slack * 16 / record);
        return std::max<std::uint64_t>(64 * KiB, static_cast<std::uint64_t>(chunk)) /
               device::page_size * device::page_size;
    }

    void make_runs() {
        records_guess_ = job_.report.records_in;
        job_.report.records_in = 0;
        const device::input_set& input = job_.input;
        std::uint64_t chunk = chunk_bytes();
        if (input.format().fixed()) chunk = std::max(chunk, input.format().size);
        std::uint64_t most_entries =
            (job_.memory - std::min(job_.memory, chunk + job_.write_buffer)) / sizeof(entry);
        most_entries = std::max<std::uint64_t>(most_entries, 4096);
        if (input.format().fixed())
            most_entries = std::max(most_entries, chunk / input.format().size + 1);
        device::memory_block memory(std::min(chunk, input.end()));
        for (std::uint64_t begin = 0; begin < input.end();) {
            const std::uint64_t end = std::min(input.end(), begin + chunk);
            load(memory, begin, end);
            std::vector<device::entry_array> arrays;
            const std::uint64_t reached = extract(memory, begin, end, most_entries, arrays);
            if (reached == begin)
                refuse("--memory {}: too small for the record at {}; try --plan mergepass or at "
                       "least {}",
                       bytes_text(job_.memory), input.place(begin), bytes_text(job_.memory * 4));
            const std::uint64_t next = next_begin(reached);
            sort_and_write(memory, begin, reached, arrays, begin == 0 && next >= input.end());
            begin = next;
            job_.progress("runs", begin, input.end());
        }
        job_.report.runs = runs_.size();
        job_.report.passes = 1;
    }

    // Positions between files hold nothing.
    std::uint64_t next_begin(std::uint64_t position) const {
        if (position >= job_.input.end()) return position;
        const device::input_file& file = job_.input.file_at(position);
        return position < file.end() ? position : device::round_up(file.end(), device::page_size);
    }

    void load(device::memory_block& memory, std::uint64_t begin, std::uint64_t end) {
        std::vector<range> pieces;
        const std::uint64_t base = begin / device::page_size * device::page_size;
        const std::uint64_t readers = job_.scheduler.threads().threads(operation::load);
        const std::uint64_t load_piece = schedule::even_piece(
            end - begin, readers, job_.profile.least_request(job_.profile.read), most_load,
            device::page_size);
        for (const device::input_file& file : job_.input.files())
            for (std::uint64_t at = std::max(begin, file.begin); at < std::min(end, file.end());) {
                // Pieces after the first begin at multiples of a page, which can bypass the cache.
                const std::uint64_t next =
                    std::min({end, file.end(), base + ((at - base) / load_piece + 1) * load_piece});
                pieces.push_back({at, next});
                at = next;
            }
        job_.scheduler.run({operation::load, "load", pieces.size(), end - begin,
                            [&](unsigned, std::uint64_t task) {
                                const range& r = pieces[task];
                                job_.input.read(r.begin, memory.data() + (r.begin - begin),
                                                r.end - r.begin);
                                device::stream reads(job_.device(), device::direction::read);
                                reads.sequential(r.begin, r.end - r.begin);
                                reads.flush();
                            }});
    }

    // Fills `arrays` with the entries of whole records in memory. Returns the position behind them.
    std::uint64_t extract(device::memory_block& memory, std::uint64_t begin, std::uint64_t end,
                          std::uint64_t most_entries, std::vector<device::entry_array>& arrays) {
        const device::input_set& input = job_.input;
        const unsigned workers = input.format().kind == record_format::kinds::prefixed
                                     ? 1
                                     : std::max(1U, job_.scheduler.threads().most());
        for (;;) {
            arrays.clear();
            const std::vector<range> ranges =
                ranges_of(input, begin, end,
                          std::max<std::uint64_t>(1, (end - begin + workers - 1) / workers));
            std::vector<std::uint64_t> reached(ranges.size());
            const std::uint64_t each =
                std::max<std::uint64_t>(1, most_entries / std::max<std::size_t>(1, ranges.size()));
            for (const range& r : ranges)
                arrays.emplace_back(
                    input.format().fixed() ? (r.end - r.begin) / input.format().size + 1 : each);
            job_.scheduler.run(
                {operation::compute, "sort", ranges.size(), 0, [&](unsigned, std::uint64_t task) {
                     const range& r = ranges[task];
                     const device::input_file& file = input.file_at(r.begin);
                     const std::uint64_t last = std::min(end, file.end());
                     const order::window window{memory.data(), begin, last, last == file.end()};
                     std::uint64_t from = r.begin;
                     if (input.format().kind == record_format::kinds::lines && from != file.begin &&
                         from != begin)
                         from = begin + order::next_line(memory.data(), from - begin, last - begin,
                                                         input.format().terminator);
                     // No record begins in this range: the one before it says how far it reaches.
                     reached[task] = from >= r.end
                                         ? begin
                                         : order::extract(input, window, from, r.end, job_.order,
                                                          arrays[task], nullptr, false);
                 }});
            // What one range did not take, no later one has: the chunk ends there. Only the last range
            // of a file may stop early without its array being full.
            std::uint64_t behind = begin;
            bool overflow = false;
            std::uint64_t records = 0;
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                overflow = overflow ||
                           (arrays[i].full() && reached[i] > begin && reached[i] < ranges[i].end);
                behind = std::max(behind, reached[i]);
                records += arrays[i].size();
            }
            if (!overflow) {
                job_.device().work(static_cast<double>(records) *
                                   job_.profile.processor.extract_seconds / workers);
                return behind;
            }
            // More records than expected: half of the chunk, which is in memory already.
            end = begin + (end - begin) / 2 / device::page_size * device::page_size;
            if (end == begin) return begin;
        }
    }

    void sort_and_write(device::memory_block& memory, std::uint64_t begin, std::uint64_t end,
                        std::vector<device::entry_array>& arrays, bool all) {
        const order::record_source source{&job_.input, memory.data(), begin, end};
        const order::entry_less less{&job_.order, source};
        job_.scheduler.run(
            {operation::compute, "sort", arrays.size(), 0, [&](unsigned, std::uint64_t task) {
                 const auto n = static_cast<double>(arrays[task].size());
                 order::sort_entries(arrays[task].all(), less);
                 job_.device().work(n * std::log2(std::max(2.0, n)) *
                                    job_.profile.processor.sort_seconds);
             }});
        std::vector<std::span<const entry>> parts;
        for (device::entry_array& array : arrays) parts.push_back(array.all());
        const order::sorted_parts sorted(std::move(parts), less);
        job_.report.records_in += sorted.size();
        delivery_settings settings;
        settings.records_on_device = false;
        if (all) {
            const delivery delivered = deliver(job_, sorted, to_output(job_.output), settings);
            job_.report.bytes_out = delivered.bytes;
            job_.report.records_out = delivered.records;
            delivered_ = true;
            return;
        }
        if (!file_) {
            file_.emplace(job_.scratch.open(job_.plan.io == model::io_choice::direct));
            // Lines without terminator get one.
            file_->reserve(0, job_.input.bytes() + job_.input.files().size());
        }
        settings.offset = written_;
        settings.sample = true;
        settings.write_name = "runs";
        const sink to_run{[this](std::uint64_t offset, const char* from, std::size_t size) {
                              file_->write(offset, from, size);
                          },
                          false};
        delivery delivered = deliver(job_, sorted, to_run, settings);
        runs_.push_back({written_, delivered.bytes, std::move(delivered.samples)});
        written_ += delivered.bytes;
    }

    // Groups of at most fan_in runs become one run each, in a new file.
    void merge_groups(std::uint64_t fan_in) {
        device::scratch_file next = job_.scratch.open(job_.plan.io == model::io_choice::direct);
        next.reserve(0, written_);
        std::vector<run> merged;
        std::uint64_t offset = 0;
        // As few runs as possible, of about the same size.
        const std::uint64_t groups = (runs_.size() + fan_in - 1) / fan_in;
        for (std::uint64_t g = 0; g < groups; ++g) {
            const std::size_t first = runs_.size() * g / groups;
            const std::size_t last = runs_.size() * (g + 1) / groups;
            const sink to_run{[&](std::uint64_t at, const char* from, std::size_t size) {
                                  next.write(at, from, size);
                              },
                              false};
            const std::uint64_t size = merge(first, last, to_run, offset, false);
            merged.push_back({offset, size, {}});
            offset += size;
        }
        runs_ = std::move(merged);
        file_.emplace(std::move(next));
        written_ = offset;
        ++job_.report.passes;
    }

    // Runs [first, last) into the sink from `offset` on. Returns the bytes written.
    std::uint64_t merge(std::size_t first, std::size_t last, const sink& sink, std::uint64_t offset,
                        bool final) {
        // Several ranges of keys where places in the output are known before it is merged.
        std::uint64_t pieces = job_.scheduler.threads().most();
        if (sink.sequential || job_.options.unique || job_.input.bytes() < 4 * MiB) pieces = 1;
        const std::uint64_t runs = last - first;
        pieces = std::clamp<std::uint64_t>(job_.memory / 2 / (runs * least_range()), 1, pieces);
        // Without samples (of a run that was merged itself) there is nothing to cut by.
        for (std::size_t i = first; i < last; ++i)
            if (runs_[i].samples.empty() && !job_.input.format().fixed()) pieces = 1;
        const std::vector<std::vector<std::uint64_t>> cuts = cut(first, last, pieces);
        const std::uint64_t output_buffer =
            std::max<std::uint64_t>(job_.memory / 4 / pieces, 16 * KiB);
        const std::uint64_t buffers =
            (job_.memory - std::min(job_.memory, pieces * output_buffer)) / pieces;
        std::vector<range_merge> merges;
        merges.reserve(pieces);
        std::uint64_t at = offset;
        for (std::uint64_t p = 0; p < pieces; ++p) {
            merges.emplace_back(job_, *file_, buffers, output_buffer);
            for (std::size_t i = 0; i < runs; ++i) merges.back().add(cuts[p][i], cuts[p + 1][i]);
            merges.back().start(at);
            at += merges.back().bytes();
        }
        const std::uint64_t all = at - offset;
        // Where reads and writes do not hamper each other there is nothing to keep apart.
        if (job_.scheduler.overlaps()) {
            job_.scheduler.run(
                {operation::compute, "merge", pieces, all, [&](unsigned, std::uint64_t task) {
                     while (!merges[task].done()) {
                         merges[task].refill();
                         merges[task].merge(sink);
                         merges[task].write(sink, 0, UINT64_MAX);
                         merges[task].clear_output();
                     }
                 }});
        } else {
            for (std::uint64_t done = 0; done < all;) {
                // A task for each buffer of each range, and pieces of the output: threads are fewer than
                // ranges or more, and end together all the same.
                refill(merges, runs);
                job_.scheduler.run(
                    {operation::compute, "merge", pieces, 0,
                     [&](unsigned, std::uint64_t task) { merges[task].merge(sink); }});
                std::uint64_t buffered = 0;
                for (const range_merge& m : merges) buffered += m.buffered();
                write_outputs(merges, sink, final ? "write" : "runs", buffered);
                done += buffered;
                job_.progress("merge", done, all);
                if (buffered == 0 && std::all_of(merges.begin(), merges.end(),
                                                 [](const range_merge& m) { return m.done(); }))
                    break;
            }
        }
        std::uint64_t bytes = 0, records = 0;
        for (const range_merge& m : merges) {
            bytes += m.written();
            records += m.records();
        }
        if (final) {
            job_.report.bytes_out = bytes;
            job_.report.records_out = records;
        }
        return bytes;
    }

    // All buffers of all ranges, the emptiest first: the fuller ones even out at the end.
    void refill(std::vector<range_merge>& merges, std::uint64_t runs) {
        struct buffer {
            std::uint64_t number, missing;
        };
        std::vector<buffer> all;
        for (std::uint64_t i = 0; i < merges.size() * runs; ++i)
            all.push_back({i, merges[i / runs].missing(i % runs)});
        std::sort(all.begin(), all.end(), [](const buffer& a, const buffer& b) {
            return a.missing != b.missing ? a.missing > b.missing : a.number < b.number;
        });
        job_.scheduler.run(
            {operation::load, "load", all.size(), 0, [&](unsigned, std::uint64_t task) {
                 merges[all[task].number / runs].refill(all[task].number % runs);
             }});
    }

    void write_outputs(std::vector<range_merge>& merges, const sink& sink, const char* name,
                       std::uint64_t buffered) {
        struct output_piece {
            const range_merge* from;
            std::uint64_t begin, end;
        };
        const std::uint64_t size =
            sink.sequential
                ? std::max<std::uint64_t>(1, merges.front().pages_end())
                : schedule::even_piece(buffered, job_.scheduler.threads().threads(operation::write),
                                       job_.profile.least_request(job_.profile.write), most_load,
                                       device::page_size);
        std::vector<output_piece> all;
        for (const range_merge& m : merges)
            for (std::uint64_t at = 0; at < m.pages_end(); at += size)
                all.push_back({&m, at, at + size});
        // The largest first: the rests of the ranges' buffers even out at the end.
        // (Not std::stable_sort: clang warns of what libstdc++ 12 has inside of it.)
        std::sort(all.begin(), all.end(), [](const output_piece& a, const output_piece& b) {
            const auto length = [](const output_piece& p) {
                return std::min(p.end, p.from->pages_end()) - p.begin;
            };
            const auto la = length(a), lb = length(b);
            if (la != lb) return la > lb;
            return a.from != b.from ? std::less<>()(a.from, b.from) : a.begin < b.begin;
        });
        job_.scheduler.run(
            {operation::write, name, all.size(), buffered, [&](unsigned, std::uint64_t task) {
                 all[task].from->write(sink, all[task].begin, all[task].end);
             }});
        for (range_merge& m : merges) m.clear_output();
    }

    // cuts[p][i]: where range p begins in run first + i; cuts[pieces] are the ends.
    std::vector<std::vector<std::uint64_t>> cut(std::size_t first, std::size_t last,
                                                std::uint64_t pieces) {
        std::vector<std::vector<std::uint64_t>> cuts(pieces + 1);
        for (std::size_t i = first; i < last; ++i) {
            cuts[0].push_back(runs_[i].offset);
            cuts[pieces].push_back(runs_[i].end());
        }
        if (pieces == 1) return cuts;
        // Splitters are records at even distances of the largest run.
        std::size_t largest = first;
        for (std::size_t i = first; i < last; ++i)
            if (runs_[i].size > runs_[largest].size) largest = i;
        for (std::uint64_t p = 1; p < pieces; ++p) {
            const std::uint64_t place =
                record_near(runs_[largest], runs_[largest].size * p / pieces);
            const std::string splitter = key_at(runs_[largest].offset + place);
            for (std::size_t i = first; i < last; ++i) {
                if (i == largest) {
                    cuts[p].push_back(runs_[i].offset + place);
                    continue;
                }
                // Equal records of earlier runs are before the splitter, those of later ones behind.
                cuts[p].push_back(runs_[i].offset + lower_bound(runs_[i], splitter, i < largest));
            }
        }
        return cuts;
    }

    // The beginning of a record at or before `offset` in the run, or near it.
    std::uint64_t record_near(const run& r, std::uint64_t offset) const {
        if (job_.input.format().fixed())
            return offset / job_.input.format().size * job_.input.format().size;
        auto behind = std::upper_bound(r.samples.begin(), r.samples.end(), offset);
        return behind == r.samples.begin() ? 0 : *--behind;
    }

    // The record at a place in the file, read anew in larger pieces until it is whole.
    std::string_view body_at(std::uint64_t offset, std::uint64_t end, std::string& buffer,
                             std::uint64_t& size) const {
        for (std::uint64_t wanted = 4096;; wanted *= 8) {
            buffer.resize(std::min(wanted, end - offset));
            file_->read(offset, buffer.data(), buffer.size());
            record_view view;
            if (find_record(job_.input.format(), buffer.data(), buffer.size(), view) ==
                    found::whole &&
                view.stored.size() == view.written_size) {
                size = view.stored.size();
                return view.body;
            }
            if (buffer.size() == end - offset)
                fail("{}: temporary data is not what was written", file_->directory());
        }
    }
    std::string key_at(std::uint64_t offset) const {
        std::string record, key;
        std::uint64_t size;
        return std::string(job_.order.keys().key_of(body_at(offset, written_, record, size), key));
    }

    // Distance of the first record that is behind the splitter, or, if `equal_before`, behind all that
    // equal it.
    std::uint64_t lower_bound(const run& r, const std::string& splitter, bool equal_before) const {
        const auto is_before = [&](std::uint64_t distance) {
            const int compared = job_.order.compare_keys(key_at(r.offset + distance), splitter);
            return compared < 0 || (compared == 0 && equal_before);
        };
        if (job_.input.format().fixed()) {
            const std::uint64_t size = job_.input.format().size;
            std::uint64_t low = 0, high = r.size / size;
            while (low < high) {
                const std::uint64_t middle = low + (high - low) / 2;
                if (is_before(middle * size))
                    low = middle + 1;
                else
                    high = middle;
            }
            return low * size;
        }
        // Among the samples, then record by record.
        std::size_t low = 0, high = r.samples.size();
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (is_before(r.samples[middle]))
                low = middle + 1;
            else
                high = middle;
        }
        if (low == 0) return 0;
        std::uint64_t at = r.samples[low - 1];
        std::string record, key;
        while (at < r.size) {
            std::uint64_t size;
            const std::string_view body = body_at(r.offset + at, r.end(), record, size);
            const int compared =
                job_.order.compare_keys(job_.order.keys().key_of(body, key), splitter);
            if (compared > 0 || (compared == 0 && !equal_before)) break;
            at += size;
        }
        return at;
    }

    job& job_;
    std::uint64_t records_guess_ = 0;
    std::optional<device::scratch_file> file_;
    std::uint64_t written_ = 0;
    std::vector<run> runs_;
    bool delivered_ = false;
};

} // namespace

void sort_by_runs(job& job) { run_sort(job).run_all(); }

} // namespace wiscsort::strategy
