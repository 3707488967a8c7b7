// SPDX-License-Identifier: MIT
#include "tools/bench/result_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace obase::tools {

bool same_file(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) return false;
    std::error_code error;
    if (std::filesystem::equivalent(a, b, error)) return true;
    const auto whole = [&error](const std::string& name) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(name, error), error);
    };
    return whole(a) == whole(b);
}

void result_file::fail(const char* doing) const {
    throw std::runtime_error("cannot write '" + asked_ + "': " + doing + ": " +
                             std::strerror(errno));
}

result_file::result_file(const std::string& path) : asked_(path), target_(path) {
    if (char* resolved = ::realpath(path.c_str(), nullptr); resolved != nullptr) {
        target_ = resolved;
        std::free(resolved);
    }
    struct stat facts{};
    const bool exists = ::stat(target_.c_str(), &facts) == 0;
    if (exists && S_ISDIR(facts.st_mode)) {
        errno = EISDIR;
        fail("expected the name of a file");
    }
    if (exists && !S_ISREG(facts.st_mode)) {
        fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd_ < 0) fail("opening it");
        return;
    }
    if (exists && ::access(target_.c_str(), W_OK) != 0) fail("opening it");
    const std::string pattern = target_ + ".XXXXXX";
    std::vector<char> name(pattern.begin(), pattern.end());
    name.push_back('\0');
    fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd_ < 0) fail("making a temporary file beside it");
    temporary_ = name.data();
    // mkostemp makes private files; a result is as public as any file of this user.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_, exists ? facts.st_mode & 07777 : 0666 & ~mask) != 0) {
        ::unlink(temporary_.c_str());
        fail("setting its mode");
    }
}

result_file::~result_file() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void result_file::commit(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("writing");
        done += static_cast<std::size_t>(n);
    }
    if (temporary_.empty()) return;
    if (::fsync(fd_) != 0) fail("writing");
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("renaming the temporary file");
    temporary_.clear();
}

} // namespace obase::tools
