// SPDX-License-Identifier: MIT
#include "wiscsort/device/batch.hpp"
#include "wiscsort/device/memory.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/strategy/job.hpp"
#include "wiscsort/units.hpp"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

namespace wiscsort::strategy {

namespace {

using schedule::operation;
using schedule::phase;

// Entries of one gather task, and bytes of one write task: small enough that threads end together.
constexpr std::uint64_t most_slice = 4096, least_slice = 64;
constexpr std::uint64_t least_slice_bytes = 16 * KiB; // if that is fewer records
constexpr std::uint64_t most_write = 2 * MiB;
constexpr std::size_t prefetch_distance = 16;

// One write buffer and what is in it.
struct round_buffer {
    device::memory_block memory;
    std::uint64_t offset = 0; // of the first byte in the sink
    std::uint64_t size = 0;
    // Congruent with the offset modulo a page, so that aligned parts can bypass the cache.
    char* data() const { return memory.data() + offset % device::page_size; }
};

class deliverer {
  public:
    deliverer(job& job, const order::sorted_parts& parts, const sink& sink,
              const delivery_settings& settings)
        : job_(job), parts_(parts), sink_(sink), settings_(settings), format_(job.input.format()),
          source_(parts.less().source),
          mapped_(source_.memory != nullptr || source_.input->base() != nullptr),
          uniform_(format_.fixed() && !job.options.unique && !job.plan.offset_order &&
                   format_.size <= job.write_buffer / 4) {
        const bool twice = job.scheduler.overlaps();
        capacity_ = job.write_buffer / (twice ? 2 : 1);
        for (int i = 0; i < (twice ? 2 : 1); ++i)
            buffers_[i].memory = device::memory_block(capacity_ + device::page_size);
        if (!uniform_) {
            entries_per_round_ = entries_of_round(capacity_, job.input.bytes(), parts.size());
            entries_ = device::memory_block(entries_per_round_ * sizeof(entry), false);
            sizes_ = device::memory_block(entries_per_round_ * sizeof(std::uint64_t), false);
            places_ = device::memory_block(entries_per_round_ * sizeof(std::uint64_t), false);
            if (job.plan.offset_order)
                by_position_ =
                    device::memory_block(entries_per_round_ * sizeof(hwy::uint128_t), false);
        }
    }

    delivery run() {
        out_offset_ = settings_.offset;
        // Without overlap the one buffer is written before it is filled again.
        int turn = 0;
        round_buffer* filled = nullptr;
        while (rank_ < parts_.size()) {
            round_buffer& next = buffers_[turn];
            const phase writing = write_phase(filled);
            next.offset = out_offset_;
            const phase gathering = uniform_ ? uniform_round(next) : general_round(next);
            if (gathering.tasks == 0 && next.size == 0 && rank_ < parts_.size() && large_) {
                job_.scheduler.run(writing);
                filled = nullptr;
                write_large();
                continue;
            }
            if (job_.scheduler.overlaps()) {
                job_.scheduler.run(gathering, writing);
                filled = &next;
                turn ^= 1;
            } else {
                job_.scheduler.run(gathering);
                job_.scheduler.run(write_phase(&next));
            }
            out_offset_ += next.size;
            job_.progress(settings_.write_name, rank_, parts_.size());
        }
        job_.scheduler.run(write_phase(filled));
        result_.bytes = out_offset_ - settings_.offset;
        return std::move(result_);
    }

  private:
    const char* record_memory(std::uint64_t position) const {
        return source_.memory != nullptr ? source_.memory + (position - source_.begin)
                                         : source_.input->base() + position;
    }

    void told_of_records(device::stream& reads, const entry* entries, std::uint64_t count) {
        if (!settings_.records_on_device || !format_.fixed()) return;
        for (std::uint64_t i = 0; i < count; ++i) reads.touch(entries[i].position(), format_.size);
        reads.flush();
    }
    void told_of_entries(std::uint64_t rank, std::uint64_t count) {
        if (!settings_.entries_on_device) return;
        device::stream reads(job_.device(), device::direction::read);
        reads.sequential(rank * sizeof(entry), count * sizeof(entry));
        reads.flush();
    }
    void work_of(std::uint64_t records, std::uint64_t bytes) {
        if (!job_.device().emulated()) return;
        const model::processor_profile& cpu = job_.profile.processor;
        const auto parts = static_cast<double>(std::max<std::size_t>(1, parts_.count()));
        job_.device().work(static_cast<double>(records) *
                               (cpu.gather_seconds + cpu.merge_entry_seconds * std::log2(parts)) +
                           static_cast<double>(bytes) / cpu.copy_bytes_per_second);
    }

    std::uint64_t slice_of(std::uint64_t count) const {
        const std::uint64_t threads = job_.scheduler.threads().threads(operation::gather);
        const std::uint64_t average = std::max<std::uint64_t>(
            1, job_.input.bytes() / std::max<std::uint64_t>(1, parts_.size()));
        // What is read together is of one slice.
        const std::uint64_t least =
            uniform_ && job_.plan.batched
                ? device::read_batch::most
                : std::clamp<std::uint64_t>(least_slice_bytes / average, 1, least_slice);
        return schedule::even_piece(count, threads, least, most_slice, 1);
    }

    // Records of one size, none dropped: places are known, so merging and copying are one task.
    phase uniform_round(round_buffer& buffer) {
        const std::uint64_t size = format_.size;
        const std::uint64_t count = std::min(capacity_ / size, parts_.size() - rank_);
        const std::uint64_t rank = rank_;
        buffer.size = count * size;
        if (settings_.sample)
            for (std::uint64_t i = 0; i < count; ++i) sample(buffer.offset + i * size);
        rank_ += count;
        result_.records += count;
        char* const to = buffer.data();
        const std::uint64_t slice = slice_of(count);
        return {operation::gather, settings_.gather_name, (count + slice - 1) / slice, buffer.size,
                [this, rank, count, size, to, slice](unsigned, std::uint64_t task) {
                    thread_local std::vector<entry> local(most_slice);
                    const std::uint64_t first = task * slice;
                    const std::uint64_t some = std::min(slice, count - first);
                    told_of_entries(rank + first, some);
                    parts_.merge(rank + first, some, local.data());
                    device::stream reads(job_.device(), device::direction::read);
                    told_of_records(reads, local.data(), some);
                    copy_uniform(local.data(), some, to + first * size);
                    work_of(some, some * size);
                }};
    }

    void copy_uniform(const entry* entries, std::uint64_t count, char* to) {
        const std::uint64_t size = format_.size;
        if (!mapped_ || (source_.memory == nullptr && job_.plan.batched)) {
            source_.input->gather(entries, count, size, to);
            return;
        }
        for (std::uint64_t i = 0; i < count; ++i, to += size) {
            if (i + prefetch_distance < count)
                prefetch(record_memory(entries[i + prefetch_distance].position()), size);
            std::memcpy(to, record_memory(entries[i].position()), size);
        }
    }

    static void prefetch(const char* at, std::uint64_t size) {
        // Beyond some lines the processor's own prefetcher has understood.
        const char* const end = at + std::min<std::uint64_t>(size, 256);
        for (; at < end; at += 64) __builtin_prefetch(at);
        __builtin_prefetch(end - 1);
    }

    // Records of any size, and records that may be dropped: entries are merged and measured first, as
    // many as fit are given places, and then they are copied.
    phase general_round(round_buffer& buffer) {
        auto* const entries = reinterpret_cast<entry*>(entries_.data());
        auto* const sizes = reinterpret_cast<std::uint64_t*>(sizes_.data());
        auto* const places = reinterpret_cast<std::uint64_t*>(places_.data());
        const std::uint64_t count = std::min(entries_per_round_, parts_.size() - rank_);
        const std::uint64_t slice = slice_of(count);
        const std::uint64_t slices = (count + slice - 1) / slice;
        job_.scheduler.run({operation::gather, settings_.gather_name, slices, 0,
                            [&](unsigned, std::uint64_t task) {
                                const std::uint64_t first = task * slice;
                                const std::uint64_t some = std::min(slice, count - first);
                                told_of_entries(rank_ + first, some);
                                parts_.merge(rank_ + first, some, entries + first);
                            }});
        job_.scheduler.run({operation::gather, settings_.gather_name, slices, 0,
                            [&](unsigned, std::uint64_t task) {
                                const std::uint64_t first = task * slice;
                                measure(entries, sizes, first, std::min(slice, count - first));
                            }});
        std::uint64_t fit = 0, used = 0;
        for (; fit < count && used + sizes[fit] <= capacity_; ++fit) {
            places[fit] = used;
            if (sizes[fit] == 0) continue; // dropped
            if (settings_.sample) sample(buffer.offset + used);
            used += sizes[fit];
            ++result_.records;
        }
        buffer.size = used;
        large_ = fit == 0;
        if (fit == 0) return {};
        previous_ = entries[fit - 1];
        rank_ += fit;
        char* const to = buffer.data();
        const hwy::uint128_t* order = nullptr;
        if (job_.plan.offset_order) order = by_position(entries, fit);
        return {
            operation::gather, settings_.gather_name, (fit + slice - 1) / slice, used,
            [this, entries, sizes, places, fit, to, order, slice](unsigned, std::uint64_t task) {
                const std::uint64_t first = task * slice;
                const std::uint64_t end = std::min(fit, first + slice);
                std::uint64_t bytes = 0;
                device::stream reads(job_.device(), device::direction::read);
                std::string record;
                for (std::uint64_t j = first; j < end; ++j) {
                    const std::uint64_t i = order == nullptr ? j : order[j].lo;
                    if (sizes[i] == 0) continue;
                    if (settings_.records_on_device) reads.touch(entries[i].position(), sizes[i]);
                    if (mapped_ && order == nullptr && j + prefetch_distance < end)
                        __builtin_prefetch(
                            record_memory(entries[j + prefetch_distance].position()));
                    copy(entries[i].position(), sizes[i], to + places[i], record);
                    bytes += sizes[i];
                }
                reads.flush();
                work_of(end - first, bytes);
            }};
    }

    void copy(std::uint64_t position, std::uint64_t size, char* to, std::string& record) {
        const record_view view = source_.record(position, record);
        if (view.written_size != size)
            fail("{}: the record was changed while it was sorted; the output is untouched",
                 source_.input->place(position));
        std::memcpy(to, view.stored.data(), view.stored.size());
        if (view.written_size != view.stored.size()) to[view.stored.size()] = format_.terminator;
    }

    // sizes[i]: what entry i adds to the output; 0 if it equals the one before it and is dropped.
    void measure(const entry* entries, std::uint64_t* sizes, std::uint64_t first,
                 std::uint64_t count) {
        std::string record;
        for (std::uint64_t i = first; i < first + count; ++i) {
            if (mapped_ && i + prefetch_distance < first + count)
                __builtin_prefetch(record_memory(entries[i + prefetch_distance].position()));
            const entry* before = i > 0 ? &entries[i - 1] : previous_ ? &*previous_ : nullptr;
            if (job_.options.unique && before != nullptr &&
                parts_.less().equal(*before, entries[i]))
                sizes[i] = 0;
            else
                sizes[i] = format_.fixed()
                               ? format_.size
                               : source_.record(entries[i].position(), record).written_size;
        }
    }

    const hwy::uint128_t* by_position(const entry* entries, std::uint64_t count) {
        auto* const order = reinterpret_cast<hwy::uint128_t*>(by_position_.data());
        for (std::uint64_t i = 0; i < count; ++i) {
            order[i].lo = i;
            order[i].hi = entries[i].position();
        }
        const hwy::Sorter sorter;
        sorter(order, count, hwy::SortAscending());
        // One thread does it.
        const auto n = static_cast<double>(count);
        job_.device().work(n * std::log2(std::max(2.0, n)) * job_.profile.processor.sort_seconds);
        return order;
    }

    // The next record alone is larger than a buffer: it goes through it in pieces.
    void write_large() {
        entry next;
        parts_.merge(rank_, 1, &next);
        ++rank_;
        if (job_.options.unique && previous_ && parts_.less().equal(*previous_, next)) return;
        previous_ = next;
        ++result_.records;
        if (settings_.sample) sample(out_offset_);
        std::string record;
        const record_view view = source_.record(next.position(), record);
        device::stream reads(job_.device(), device::direction::read);
        reads.touch(next.position(), view.stored.size());
        reads.flush();
        device::stream writes(job_.device(), device::direction::write);
        for (std::uint64_t done = 0; done < view.stored.size();) {
            const std::uint64_t some =
                std::min<std::uint64_t>(capacity_, view.stored.size() - done);
            buffers_[0].offset = out_offset_;
            std::memcpy(buffers_[0].data(), view.stored.data() + done, some);
            sink_.write(out_offset_, buffers_[0].data(), some);
            writes.sequential(out_offset_, some);
            done += some;
            out_offset_ += some;
        }
        if (view.written_size != view.stored.size()) {
            sink_.write(out_offset_, &format_.terminator, 1);
            writes.sequential(out_offset_++, 1);
        }
        writes.flush();
    }

    phase write_phase(const round_buffer* buffer) {
        if (buffer == nullptr || buffer->size == 0) return {};
        // Pieces end at multiples of a page, seen from the sink, unless there is one writer.
        const std::uint64_t writers = job_.scheduler.threads().threads(operation::write);
        const std::uint64_t piece =
            sink_.sequential
                ? buffer->size
                : schedule::even_piece(buffer->size + buffer->offset % device::page_size, writers,
                                       job_.profile.least_request(job_.profile.write), most_write,
                                       device::page_size);
        const std::uint64_t head = sink_.sequential ? 0 : buffer->offset % device::page_size;
        return {operation::write, settings_.write_name, (head + buffer->size + piece - 1) / piece,
                buffer->size, [this, buffer, piece, head](unsigned, std::uint64_t task) {
                    const std::uint64_t begin = task == 0 ? 0 : task * piece - head;
                    const std::uint64_t end = std::min(buffer->size, (task + 1) * piece - head);
                    sink_.write(buffer->offset + begin, buffer->data() + begin, end - begin);
                    device::stream writes(job_.device(), device::direction::write);
                    writes.sequential(buffer->offset + begin, end - begin);
                    writes.flush();
                }};
    }

    void sample(std::uint64_t offset) {
        const std::uint64_t stretch = (offset - settings_.offset) / sample_stride;
        if (!result_.samples.empty() && stretch == last_stretch_) return;
        last_stretch_ = stretch;
        result_.samples.push_back(offset - settings_.offset);
    }

    job& job_;
    const order::sorted_parts& parts_;
    const sink& sink_;
    delivery_settings settings_;
    const record_format& format_;
    order::record_source source_;
    bool mapped_;
    bool uniform_;
    std::uint64_t capacity_ = 0;
    std::uint64_t entries_per_round_ = 0;
    round_buffer buffers_[2];
    device::memory_block entries_, sizes_, places_, by_position_;
    std::uint64_t rank_ = 0, out_offset_ = 0;
    std::optional<entry> previous_;
    bool large_ = false;
    std::uint64_t last_stretch_ = 0;
    delivery result_;
};

} // namespace

std::uint64_t entries_of_round(std::uint64_t capacity, std::uint64_t bytes, std::uint64_t records) {
    constexpr double most = 1 << 18;
    const double average =
        records == 0 ? 1 : static_cast<double>(bytes) / static_cast<double>(records);
    return static_cast<std::uint64_t>(
        std::clamp(static_cast<double>(capacity) / std::max(1.0, average), 16.0, most));
}

sink to_output(device::output_file& output) {
    return {[&output](std::uint64_t offset, const char* from, std::size_t size) {
                output.write(offset, from, size);
            },
            output.sequential()};
}

delivery deliver(job& job, const order::sorted_parts& parts, const sink& sink,
                 const delivery_settings& settings) {
    return deliverer(job, parts, sink, settings).run();
}

std::vector<range> ranges_of(const device::input_set& input, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t most) {
    const record_format& format = input.format();
    if (format.fixed()) most = std::max<std::uint64_t>(1, most / format.size) * format.size;
    std::vector<range> ranges;
    for (const device::input_file& file : input.files()) {
        std::uint64_t at = std::max(begin, file.begin);
        const std::uint64_t stop = std::min(end, file.end());
        while (at < stop) {
            // Lengths are found from the file's beginning only: one range.
            const std::uint64_t next =
                format.kind == record_format::kinds::prefixed ? stop : std::min(stop, at + most);
            ranges.push_back({at, next});
            at = next;
        }
    }
    return ranges;
}

} // namespace wiscsort::strategy
