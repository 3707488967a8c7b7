// SPDX-License-Identifier: MIT
#include "wiscsort/device/scratch.hpp"

#include "wiscsort/device/memory.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace wiscsort::device {

namespace {

constexpr std::uint64_t alignment = page_size;

// Where the aligned middle of a transfer begins and how long it is; 0 if address and offset differ
// modulo the alignment.
struct middle {
    std::size_t head = 0, size = 0;
};

middle aligned_middle(const char* memory, std::size_t size, std::uint64_t offset) {
    if ((reinterpret_cast<std::uintptr_t>(memory) ^ offset) % alignment != 0) return {};
    const std::size_t head = (alignment - offset % alignment) % alignment;
    if (size < head + alignment) return {};
    return {head, (size - head) / alignment * alignment};
}

} // namespace

std::uint64_t spare_descriptors(std::uint64_t kept) {
    struct rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    // Also those of the program that the sort is part of; and one of the folder itself.
    std::error_code problem;
    std::uint64_t taken = kept;
    for (std::filesystem::directory_iterator open("/proc/self/fd", problem), end;
         !problem && open != end; open.increment(problem))
        ++taken;
    if (problem) return 0;
    return limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
}

descriptor open_direct(int fd, int flags) {
    descriptor direct;
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    open_file(path.c_str(), flags | O_DIRECT, 0, direct);
    return direct;
}

int write_mostly_direct(int buffered, int direct, const char* from, std::size_t size,
                        std::uint64_t offset) {
    const middle m = direct >= 0 ? aligned_middle(from, size, offset) : middle{};
    if (m.size == 0) return write_at(buffered, from, size, offset);
    if (const int problem = write_at(buffered, from, m.head, offset)) return problem;
    int problem = write_at(direct, from + m.head, m.size, offset + m.head);
    // A device with larger blocks than a page: it still works through the cache.
    if (problem == EINVAL) problem = write_at(buffered, from + m.head, m.size, offset + m.head);
    if (problem != 0) return problem;
    const std::size_t tail = m.head + m.size;
    return write_at(buffered, from + tail, size - tail, offset + tail);
}

std::int64_t read_mostly_direct(int buffered, int direct, char* to, std::size_t size,
                                std::uint64_t offset) {
    const middle m = direct >= 0 ? aligned_middle(to, size, offset) : middle{};
    if (m.size == 0) return read_at(buffered, to, size, offset);
    std::int64_t got = read_at(buffered, to, m.head, offset);
    if (got < 0 || static_cast<std::size_t>(got) < m.head) return got;
    // A short direct read may end at an unaligned place, so the buffered one goes on from there.
    got = read_at(direct, to + m.head, m.size, offset + m.head);
    if (got < 0) got = 0;
    const std::size_t done = m.head + static_cast<std::size_t>(got);
    got = read_at(buffered, to + done, size - done, offset + done);
    return got < 0 ? got : static_cast<std::int64_t>(done) + got;
}

scratch_file::scratch_file(descriptor fd, std::string directory, bool direct)
    : fd_(std::move(fd)), directory_(std::move(directory)) {
    if (direct) direct_ = open_direct(fd_.get(), O_RDWR);
}

void scratch_file::reserve(std::uint64_t offset, std::uint64_t size) {
    const int problem = allocate(fd_.get(), offset, size);
    if (problem == EOPNOTSUPP) return; // the write will tell
    if (problem != 0)
        fail("{}: no room for {} of temporary data: {}", directory_, bytes_text(size),
             describe_errno(problem));
}

void scratch_file::write(std::uint64_t offset, const char* from, std::size_t size) {
    if (const int problem = write_mostly_direct(fd_.get(), direct_.get(), from, size, offset))
        fail("{}: cannot write {} of temporary data at offset {}: {}", directory_, bytes_text(size),
             offset, describe_errno(problem));
}

void scratch_file::read(std::uint64_t offset, char* to, std::size_t size) const {
    const std::int64_t got = read_mostly_direct(fd_.get(), direct_.get(), to, size, offset);
    if (got < 0)
        fail("{}: cannot read temporary data at offset {}: {}", directory_, offset,
             describe_errno(static_cast<int>(-got)));
    if (static_cast<std::size_t>(got) != size)
        fail("{}: temporary data ends at offset {}, expected {} more bytes", directory_,
             offset + static_cast<std::uint64_t>(got), size - static_cast<std::size_t>(got));
}

mapped_bytes scratch_file::map(std::size_t size) const {
    void* const at = device::map(nullptr, size, PROT_READ, MAP_SHARED, fd_.get(), 0);
    if (at == MAP_FAILED)
        fail("{}: cannot map {} of temporary data: {}", directory_, bytes_text(size),
             describe_errno(errno));
    return {static_cast<char*>(at), size};
}

scratch_file scratch_space::open(bool direct) {
    const std::string& directory = directories_[next_++ % directories_.size()];
    descriptor fd;
    int problem = open_file(directory.c_str(), O_TMPFILE | O_RDWR, 0600, fd);
    if (problem == EOPNOTSUPP || problem == EISDIR) {
        // No unnamed files here: one whose name is gone at once.
        std::string name = directory + "/.wiscsort-XXXXXX";
        const int made = ::mkostemp(name.data(), O_CLOEXEC);
        problem = made < 0 ? errno : 0;
        if (made >= 0) {
            ::unlink(name.c_str());
            fd = descriptor(made);
        }
    }
    if (problem != 0)
        fail("{}: cannot make a temporary file there: {}", directory, describe_errno(problem));
    return scratch_file(std::move(fd), directory, direct);
}

} // namespace wiscsort::device
