// SPDX-License-Identifier: MIT
#include "wiscsort/device/input.hpp"

#include "wiscsort/device/batch.hpp"
#include "wiscsort/device/memory.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/format/entry.hpp"
#include "wiscsort/units.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace wiscsort::device {

namespace {

constexpr std::uint64_t descriptors_kept = 32;
// For what all threads have in flight past the page cache.
constexpr std::uint64_t pages_in_flight = 8 * MiB;

// What the signal handler may read: one region at a time is guarded.
std::atomic<std::uintptr_t> guarded_begin{0}, guarded_end{0};
const char* guarded_program = "wiscsort";

void on_bus_error(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (address < guarded_begin.load() || address >= guarded_end.load()) {
        // Not ours: end as if there were no handler.
        std::signal(SIGBUS, SIG_DFL);
        return;
    }
    const auto say = [](const char* text) {
        if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
    };
    say(guarded_program);
    say(": an input file was cut while it was read, or its device failed; the output is "
        "untouched\n");
    ::_exit(1);
}

bool same(const struct stat& a, const struct stat& b) {
    return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
           a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

} // namespace

void guard_mappings(const char* program) {
    guarded_program = program;
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
}

struct input_set::gathering {
    read_batch batch;
    std::vector<read_request> requests;
    memory_block pages; // of records that bypass the page cache: whole pages around each
};

input_set::input_set(const std::vector<std::string>& names, const settings& asked,
                     scratch_space& scratch)
    : settings_(asked) {
    for (const std::string& name : names) add(name, scratch);
    for (input_file& file : files_) {
        file.begin = end_;
        end_ = round_up(file.end(), page_size);
        bytes_ += file.size;
        if (settings_.format.fixed() && file.size % settings_.format.size != 0)
            fail("{}: offset {}: the last record is torn: expected {} bytes, found {}", file.name,
                 file.size - file.size % settings_.format.size, settings_.format.size,
                 file.size % settings_.format.size);
    }
    if (end_ >= entry::position_mask)
        fail("the input has {}; at most 256 TiB can be sorted at once", bytes_text(bytes_));
    if (settings_.mapped && end_ > 0) map_all();
}

input_set::~input_set() {
    if (base_ != nullptr) {
        guarded_begin.store(0);
        guarded_end.store(0);
        unmap(base_, mapped_bytes_);
    }
}

void input_set::add(const std::string& name, scratch_space& scratch) {
    if (name.empty()) refuse("the input '' is no file name");
    input_file file;
    file.name = name == "-" ? "standard input" : name;
    if (name == "-") {
        file.fd = descriptor(::dup(STDIN_FILENO));
        if (!file.fd) fail("standard input: cannot be read: {}", describe_errno(errno));
    } else if (const int problem = open_file(name.c_str(), O_RDONLY | O_NOCTTY, 0, file.fd)) {
        fail("{}: cannot be opened for reading: {}", name, describe_errno(problem));
    }
    if (const int problem = status(file.fd.get(), file.seen))
        fail("{}: {}", file.name, describe_errno(problem));
    if (S_ISDIR(file.seen.st_mode))
        fail("{}: is a directory; expected a file of records", file.name);
    // The standard input may stand in the middle of a file, whose beginning is not asked for.
    const off_t at = name == "-" ? ::lseek(file.fd.get(), 0, SEEK_CUR) : 0;
    if (S_ISREG(file.seen.st_mode) && file.seen.st_size > 0 && at == 0) {
        file.size = static_cast<std::uint64_t>(file.seen.st_size);
        files_.push_back(std::move(file));
        return;
    }
    // A pipe, or a file that does not know its size: what it holds is known once it is read.
    scratch_file spool = scratch.open(false);
    memory_block buffer(MiB, false);
    for (;;) {
        const std::int64_t got = read_some(file.fd.get(), buffer.data(), buffer.size());
        if (got < 0)
            fail("{}: offset {}: cannot be read: {}", file.name, file.size,
                 describe_errno(static_cast<int>(-got)));
        if (got == 0) break;
        spool.write(file.size, buffer.data(), static_cast<std::size_t>(got));
        file.size += static_cast<std::uint64_t>(got);
    }
    if (file.size == 0) return;
    file.fd = descriptor(::dup(spool.fd()));
    if (!file.fd) fail("{}: no descriptor for its copy: {}", file.name, describe_errno(errno));
    file.spooled = true;
    files_.push_back(std::move(file));
}

void input_set::map_all() {
    void* region =
        map(nullptr, end_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        fail("no address space for {} of input ({}); --io read needs none", bytes_text(end_),
             describe_errno(errno));
    base_ = static_cast<char*>(region);
    mapped_bytes_ = end_;
    for (const input_file& file : files_) {
        if (map(base_ + file.begin, file.size, PROT_READ, MAP_SHARED | MAP_FIXED, file.fd.get(),
                0) == MAP_FAILED) {
            const int number = errno;
            unmap(base_, mapped_bytes_);
            base_ = nullptr;
            fail("{}: cannot be mapped: {}; try --io read", file.name, describe_errno(number));
        }
    }
    guarded_begin.store(reinterpret_cast<std::uintptr_t>(base_));
    guarded_end.store(reinterpret_cast<std::uintptr_t>(base_) + mapped_bytes_);
}

const input_file& input_set::file_at(std::uint64_t position) const {
    auto behind =
        std::upper_bound(files_.begin(), files_.end(), position,
                         [](std::uint64_t p, const input_file& file) { return p < file.begin; });
    return *--behind;
}

void input_set::read(std::uint64_t position, char* to, std::size_t size) const {
    const input_file& file = file_at(position);
    const std::uint64_t offset = position - file.begin;
    const std::int64_t got = read_mostly_direct(file.fd.get(), file.direct.get(), to, size, offset);
    if (got < 0)
        fail("{}: offset {}: cannot be read: {}", file.name, offset,
             describe_errno(static_cast<int>(-got)));
    if (static_cast<std::size_t>(got) != size)
        fail("{}: was cut to {} bytes while it was read; expected {}", file.name,
             offset + static_cast<std::uint64_t>(got), file.size);
}

std::unique_ptr<input_set::gathering> input_set::begin_gathering() const {
    {
        const std::lock_guard hold(gatherings_lock_);
        if (!gatherings_.empty()) {
            std::unique_ptr<gathering> one = std::move(gatherings_.back());
            gatherings_.pop_back();
            return one;
        }
    }
    auto one = std::make_unique<gathering>();
    if (one->batch.together() && pages_of_gathering_ != 0) try {
            one->pages = memory_block(pages_of_gathering_, false);
        } catch (const error&) {
            // Through the page cache then.
        }
    return one;
}

void input_set::gather(const entry* entries, std::uint64_t count, std::uint64_t size,
                       char* to) const {
    std::unique_ptr<gathering> mine = begin_gathering();
    const std::uint64_t around = round_up(size, page_size) + page_size;
    const std::uint64_t slots = mine->pages.size() / around;
    const bool direct = slots > 0;
    std::uint64_t at_once = mine->batch.together() ? read_batch::most : 1;
    if (direct) at_once = std::min(at_once, slots);
    for (std::uint64_t first = 0; first < count; first += at_once) {
        const std::uint64_t some = std::min(at_once, count - first);
        mine->requests.assign(some, {});
        for (std::uint64_t i = 0; i < some && mine->batch.together(); ++i) {
            const std::uint64_t position = entries[first + i].position();
            const input_file& file = file_at(position);
            const std::uint64_t offset = position - file.begin;
            read_request& r = mine->requests[i];
            if (direct && file.direct) {
                const std::uint64_t page = offset / page_size * page_size;
                r = {file.direct.get(), mine->pages.data() + i * around,
                     round_up(offset + size, page_size) - page, page, 0};
            } else {
                r = {file.fd.get(), to + (first + i) * size, size, offset, 0};
            }
        }
        mine->batch.read(mine->requests);
        for (std::uint64_t i = 0; i < some; ++i) {
            const std::uint64_t position = entries[first + i].position();
            const read_request& r = mine->requests[i];
            char* const record = to + (first + i) * size;
            if (r.to == record) {
                if (r.done < size) read(position + r.done, record + r.done, size - r.done);
                continue;
            }
            // The file may end within the last page.
            const std::uint64_t before =
                r.to == nullptr ? 0 : position - file_at(position).begin - r.offset;
            if (r.done >= before + size)
                std::memcpy(record, r.to + before, size);
            else
                read(position, record, size);
        }
    }
    const std::lock_guard hold(gatherings_lock_);
    gatherings_.push_back(std::move(mine));
}

record_view input_set::read_record(std::uint64_t position, std::string& buffer,
                                   std::uint64_t most) const {
    const std::uint64_t left = file_at(position).end() - position;
    record_view view;
    std::uint64_t wanted =
        std::min<std::uint64_t>(left, settings_.format.fixed() ? settings_.format.size : 256);
    for (;;) {
        if (wanted > most) wanted = std::min(left, most + 1);
        buffer.resize(wanted);
        read(position, buffer.data(), wanted);
        const bool cut = wanted < left && settings_.format.kind == record_format::kinds::lines &&
                         std::memchr(buffer.data(), settings_.format.terminator, wanted) == nullptr;
        if (!cut) {
            if (find_record(settings_.format, buffer.data(), wanted, view) == found::whole)
                return view;
            if (wanted == left) torn(position);
        }
        if (wanted > most) {
            view.body = view.stored = buffer;
            view.written_size = wanted;
            return view;
        }
        wanted = std::min<std::uint64_t>(left, cut ? wanted * 4
                                                   : 4 + std::uint64_t{load_u32le(buffer.data())});
    }
}

std::string input_set::place(std::uint64_t position) const {
    const input_file& file = file_at(position);
    return fmt::format("{}: offset {}", file.name, position - file.begin);
}

void input_set::torn(std::uint64_t position) const {
    const std::uint64_t left = file_at(position).end() - position;
    if (left < 4)
        fail("{}: the last record is torn: expected a length of 4 bytes, found {}", place(position),
             left);
    char length[4];
    read(position, length, 4);
    fail("{}: the record's length says {} bytes, but only {} follow", place(position),
         load_u32le(length), left - 4);
}

void input_set::verify_unchanged() const {
    for (const input_file& file : files_) {
        if (file.spooled) continue;
        struct stat now = {};
        if (const int problem = status(file.fd.get(), now))
            fail("{}: {}", file.name, describe_errno(problem));
        if (!same(now, file.seen))
            fail("{}: was changed while it was sorted; the output is untouched", file.name);
    }
}

void input_set::bypass_cache(unsigned threads) {
    pages_of_gathering_ = pages_in_flight / std::max(1U, threads) / page_size * page_size;
    // Each takes a second descriptor; some are left for the output, runs and what the program opens meanwhile.
    std::uint64_t left = spare_descriptors(descriptors_kept + threads); // a ring for each
    for (input_file& file : files_) {
        if (left-- == 0) break;
        file.direct = open_direct(file.fd.get(), O_RDONLY);
    }
}

double input_set::cached_share() const {
    if (base_ == nullptr || bytes_ == 0) return 1;
    // 64 windows of 256 pages, evenly spread.
    constexpr std::size_t window = 256;
    std::uint64_t looked = 0, resident = 0;
    const std::uint64_t pages = end_ / page_size;
    unsigned char states[window];
    for (std::uint64_t i = 0; i < 64; ++i) {
        const std::uint64_t page = pages <= window ? 0 : (pages - window) * i / 63;
        const std::size_t count = std::min<std::uint64_t>(window, pages - page);
        if (::mincore(base_ + page * page_size, count * page_size, states) != 0) continue;
        looked += count;
        for (std::size_t j = 0; j < count; ++j) resident += states[j] & 1U;
        if (pages <= window) break;
    }
    return looked == 0 ? 1 : static_cast<double>(resident) / static_cast<double>(looked);
}

void input_set::expect_random_access() const {
    if (base_ != nullptr) ::madvise(base_, mapped_bytes_, MADV_RANDOM);
}

} // namespace wiscsort::device
