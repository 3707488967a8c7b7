// SPDX-License-Identifier: MIT
#include "tools/server/resp_client.hpp"

#include <fmt/format.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace obase::tools {

int connect_unix(const std::string& path) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) return -1;
    for (int tries = 0; tries < 200; ++tries) {
        if (::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
            return s;
        if (errno != EAGAIN) break;
        ::usleep(1000);
    }
    const int why = errno;
    ::close(s);
    errno = why;
    return -1;
}

resp_client::resp_client(const std::string& path) : path_(path), socket_(connect_unix(path)) {
    if (socket_ < 0)
        throw std::runtime_error(fmt::format("cannot connect to '{}': {}", path,
                                             std::generic_category().message(errno)));
}
resp_client::~resp_client() { ::close(socket_); }

std::optional<std::string> resp_client::ask(std::initializer_list<std::string_view> words) {
    std::string request = fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words)
        request += fmt::format("${}\r\n{}\r\n", word.size(), word);
    for (std::size_t sent = 0; sent < request.size();) {
        const ssize_t n =
            ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("closed the connection");
        sent += static_cast<std::size_t>(n);
    }
    const std::string line = read_line();
    if (line.starts_with('-')) fail(fmt::format("said '{}'", line));
    if (line.starts_with('+') || line.starts_with(':')) return line.substr(1);
    if (!line.starts_with('$')) {
        // What follows would be taken for the next reply.
        ::shutdown(socket_, SHUT_RDWR);
        buffer_.clear();
        fail(fmt::format("said '{}', where a status, a number or a value was expected", line));
    }
    const long size = std::strtol(line.c_str() + 1, nullptr, 10);
    if (size < 0) return std::nullopt;
    const std::size_t whole = static_cast<std::size_t>(size) + 2;
    while (buffer_.size() < whole) receive();
    std::string value = buffer_.substr(0, whole - 2);
    buffer_.erase(0, whole);
    return value;
}

void resp_client::fail(std::string_view what) const {
    throw std::runtime_error(fmt::format("the server at '{}' {}", path_, what));
}

void resp_client::receive() {
    char piece[4096];
    const ssize_t n = ::recv(socket_, piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) fail("closed the connection");
    buffer_.append(piece, static_cast<std::size_t>(n));
}

std::string resp_client::read_line() {
    std::size_t end;
    while ((end = buffer_.find("\r\n")) == std::string::npos) receive();
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return line;
}

} // namespace obase::tools
