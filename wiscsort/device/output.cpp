// SPDX-License-Identifier: MIT
#include "wiscsort/device/output.hpp"

#include "wiscsort/device/scratch.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

namespace wiscsort::device {

namespace {

// The path with every symbolic link followed, also where the last one leads to nothing yet.
std::string resolved(std::string path) {
    char buffer[PATH_MAX];
    for (int hops = 0; hops < 40; ++hops) {
        if (::realpath(path.c_str(), buffer) != nullptr) return buffer;
        const ssize_t length = ::readlink(path.c_str(), buffer, sizeof buffer - 1);
        if (length < 0) break;
        std::string target(buffer, static_cast<std::size_t>(length));
        const std::size_t slash = path.rfind('/');
        if (target.front() != '/' && slash != std::string::npos)
            target = path.substr(0, slash + 1) + target;
        path = std::move(target);
    }
    return path;
}

} // namespace

void output_file::failed(const char* doing, int problem) const {
    fail("{}: cannot {}: {}", asked_, doing, describe_errno(problem));
}

namespace {

// Held by a run while it makes or renames the file beside.
class folder_lock {
  public:
    explicit folder_lock(int folder) : folder_(folder) {
        while (::flock(folder_, LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    folder_lock(const folder_lock&) = delete;
    folder_lock& operator=(const folder_lock&) = delete;
    ~folder_lock() { ::flock(folder_, LOCK_UN); }

  private:
    int folder_;
};

} // namespace

output_file::output_file(const std::string& name, bool direct)
    : asked_(name == "-" ? "standard output" : name) {
    if (name.empty()) refuse("the output '' is no file name");
    if (name == "-") {
        fd_ = descriptor(::dup(STDOUT_FILENO));
        if (!fd_) failed("write", errno);
        stream_ = true;
        return;
    }
    struct stat there = {};
    const bool exists = ::stat(name.c_str(), &there) == 0;
    if (!exists && errno != ENOENT) failed("look it up", errno);
    if (exists && S_ISDIR(there.st_mode)) fail("{}: is a directory; expected a file name", name);
    if (exists && !S_ISREG(there.st_mode)) {
        if (const int problem = open_file(name.c_str(), O_WRONLY | O_NOCTTY, 0, fd_))
            failed("open it for writing", problem);
        stream_ = true;
        return;
    }
    if (exists && ::access(name.c_str(), W_OK) != 0) failed("replace it", errno);
    const std::string path = resolved(name);
    const std::size_t slash = path.rfind('/');
    directory_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    base_ = slash == std::string::npos ? path : path.substr(slash + 1);
    if (base_.empty() || base_.size() > NAME_MAX - 16)
        fail("{}: expected a file name of at most {} bytes", name, NAME_MAX - 16);
    beside_ = "." + base_ + ".wiscsort-new";
    if (const int problem = open_file(directory_.c_str(), O_RDONLY | O_DIRECTORY, 0, folder_))
        failed("open its directory", problem);
    {
        // What a run left that was killed between link and rename; not what one is about to rename.
        const folder_lock alone(folder_.get());
        unlink_in(folder_.get(), beside_.c_str());
        open_unnamed();
    }
    if (exists) {
        // Who may read the old contents may read the new ones; the owner changes if that is allowed.
        if (::fchown(fd_.get(), there.st_uid, there.st_gid) != 0) errno = 0;
        ::fchmod(fd_.get(), there.st_mode & 07777);
    }
    if (direct) direct_ = open_direct(fd_.get(), O_WRONLY);
}

output_file::~output_file() {
    if (named_) unlink_in(folder_.get(), beside_.c_str());
}

void output_file::open_unnamed() {
    int problem = open_file(directory_.c_str(), O_TMPFILE | O_RDWR, 0666, fd_);
    if (problem == EOPNOTSUPP || problem == EISDIR) {
        // No unnamed files in this file system (some network and overlay ones).
        const std::string path = directory_ + "/" + beside_;
        problem = open_file(path.c_str(), O_CREAT | O_EXCL | O_RDWR, 0666, fd_);
        named_ = problem == 0;
    }
    if (problem != 0) failed("make a file in its directory", problem);
}

void output_file::reserve(std::uint64_t size) {
    if (stream_ || size == 0) return;
    const int problem = allocate(fd_.get(), 0, size);
    if (problem == EOPNOTSUPP) return; // the write will tell
    if (problem != 0)
        fail("{}: no room for {} of output: {}", asked_, bytes_text(size), describe_errno(problem));
    reserved_ = size;
}

void output_file::write(std::uint64_t offset, const char* from, std::size_t size) {
    const int problem = stream_ ? write_stream(fd_.get(), from, size)
                                : write_mostly_direct(fd_.get(), direct_.get(), from, size, offset);
    if (problem != 0)
        fail("{}: offset {}: cannot write {}: {}", asked_, offset, bytes_text(size),
             describe_errno(problem));
}

void output_file::publish(std::uint64_t size, bool sync) {
    if (stream_) return;
    if (reserved_ != size)
        if (const int problem = resize(fd_.get(), size)) failed("set its size", problem);
    if (sync)
        if (const int problem = sync_data(fd_.get())) failed("sync it", problem);
    // From the name beside to the name asked for no other run to it gets between. (A file system without
    // locks has the check of what is renamed, and tries again.)
    const folder_lock alone(folder_.get());
    if (named_) {
        struct stat ours = {}, there = {};
        if (status(fd_.get(), ours) != 0 ||
            ::fstatat(folder_.get(), beside_.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
            ours.st_ino != there.st_ino) {
            named_ = false; // not ours to rename or remove
            fail("{}: another run to the same name is under way", asked_);
        }
    }
    for (int attempt = 0;; ++attempt) {
        if (!named_) {
            const int problem = link_descriptor(fd_.get(), folder_.get(), beside_.c_str());
            if (problem == EEXIST && attempt < 100) {
                unlink_in(folder_.get(), beside_.c_str());
                continue;
            }
            if (problem != 0) failed("give it a name", problem);
        }
        const int problem = rename_in(folder_.get(), beside_.c_str(), base_.c_str());
        if (problem == ENOENT && !named_ && attempt < 100) continue;
        if (problem != 0) {
            unlink_in(folder_.get(), beside_.c_str());
            named_ = false;
            failed("rename the finished file", problem);
        }
        break;
    }
    named_ = false;
    if (sync)
        if (const int problem = sync_all(folder_.get())) failed("sync its directory", problem);
}

} // namespace wiscsort::device
