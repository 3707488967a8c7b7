// SPDX-License-Identifier: MIT
#include "tools/workload/recorded_operations.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace workload {
namespace {

constexpr std::string_view magic = "obase-operations 1 ";
constexpr std::size_t record_bytes = 20;
constexpr unsigned end_mark = 255;
constexpr unsigned most_clients = 65'535;
constexpr std::size_t longest_header = 65'536;

std::uint64_t number_at(const char* bytes, std::size_t size) noexcept {
    std::uint64_t number = 0;
    for (std::size_t i = size; i > 0; --i)
        number = number << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return number;
}
void put_number(char* bytes, std::size_t size, std::uint64_t number) noexcept {
    for (std::size_t i = 0; i < size; ++i, number >>= 8)
        bytes[i] = static_cast<char>(number & 0xff);
}
unsigned char sum_of(const char* bytes) noexcept {
    unsigned sum = 0x5a;
    for (std::size_t i = 0; i + 1 < record_bytes; ++i) sum += static_cast<unsigned char>(bytes[i]);
    return static_cast<unsigned char>(sum & 0xff);
}

void append_record(std::string& to, std::uint64_t record, std::uint32_t value_size,
                   std::uint32_t scan_length, unsigned client, unsigned what) {
    std::array<char, record_bytes> bytes{};
    put_number(bytes.data(), 8, record);
    put_number(bytes.data() + 8, 4, value_size);
    put_number(bytes.data() + 12, 4, scan_length);
    put_number(bytes.data() + 16, 2, client);
    put_number(bytes.data() + 18, 1, what);
    bytes.back() = static_cast<char>(sum_of(bytes.data()));
    to.append(bytes.data(), bytes.size());
}

std::string read_line(std::FILE* file) {
    std::string line;
    for (int c; (c = std::fgetc(file)) != EOF && c != '\n' && line.size() < longest_header;)
        line += static_cast<char>(c);
    return line;
}

} // namespace

operation_recorder::operation_recorder(const std::string& path, const std::string& header,
                                       unsigned clients)
    : path_(path), file_(std::fopen(path.c_str(), "wb")), buffers_(clients) {
    if (file_ == nullptr) fail();
    if (clients == 0 || clients > most_clients)
        throw std::runtime_error(path + ": " + std::to_string(clients) + " clients; 1 to " +
                                 std::to_string(most_clients) + " can be recorded");
    const std::string line = std::string(magic) + std::to_string(clients) + ' ' + header + '\n';
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()) fail();
}

void operation_recorder::fail() const {
    throw std::runtime_error(path_ +
                             ": cannot be written: " + std::generic_category().message(errno));
}

void operation_recorder::append(std::string& to, const recorded_operation& one, unsigned client) {
    append_record(to, one.record, one.value_size, one.scan_length, client,
                  static_cast<unsigned>(one.what));
}

void operation_recorder::write(std::string& buffer) {
    const std::lock_guard guard(mutex_);
    if (std::fwrite(buffer.data(), 1, buffer.size(), file_.get()) != buffer.size()) fail();
    written_ += buffer.size() / record_bytes;
    buffer.clear();
}

void operation_recorder::finish() {
    for (client_buffer& one : buffers_) write(one.bytes);
    std::string end;
    append_record(end, written_, 0, 0, 0, end_mark);
    write(end);
    if (std::fflush(file_.get()) != 0) fail();
}

recorded_operations read_recorded_operations(const std::string& path) {
    // It can be opened, and has no first line.
    if (std::error_code error; std::filesystem::is_directory(path, error))
        throw std::runtime_error(path + ": expected a recording; found a directory");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               std::fclose);
    if (file == nullptr)
        throw std::runtime_error(path +
                                 ": cannot be read: " + std::generic_category().message(errno));
    recorded_operations run;
    const std::string first = read_line(file.get());
    const std::string_view line = first;
    unsigned clients = 0;
    const char* const end = line.data() + line.size();
    if (line.starts_with(magic)) {
        const auto [stopped, error] = std::from_chars(line.data() + magic.size(), end, clients);
        if (error == std::errc{} && stopped != end && *stopped == ' ' && clients <= most_clients)
            run.header.assign(stopped + 1, end);
        else
            clients = 0;
    }
    if (clients == 0)
        throw std::runtime_error(path + ", line 1: expected \"" + std::string(magic) +
                                 "CLIENTS HEADER\"; found something else");
    run.clients.resize(clients);

    std::array<char, record_bytes> bytes{};
    for (std::uint64_t count = 0;; ++count) {
        const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
        const auto refuse = [&](const std::string& expected, const std::string& found) {
            throw std::runtime_error(path + ", record " + std::to_string(count + 1) +
                                     ": expected " + expected + "; found " + found);
        };
        if (got == 0)
            refuse("another record, or the end's: the file is torn", "the end of the file");
        if (got < bytes.size()) refuse("20 bytes: the file is torn", std::to_string(got));
        if (static_cast<unsigned char>(bytes.back()) != sum_of(bytes.data()))
            refuse("the sum " + std::to_string(sum_of(bytes.data())),
                   std::to_string(static_cast<unsigned char>(bytes.back())));
        const auto record = number_at(bytes.data(), 8);
        const auto client = static_cast<unsigned>(number_at(bytes.data() + 16, 2));
        const auto what = static_cast<unsigned>(number_at(bytes.data() + 18, 1));
        if (what == end_mark) {
            if (record != count)
                refuse("the end of " + std::to_string(count) + " records",
                       "that of " + std::to_string(record));
            if (std::fgetc(file.get()) != EOF) refuse("nothing behind the end", "more bytes");
            return run;
        }
        if (what >= operation_count) refuse("an operation", std::to_string(what));
        if (client >= clients)
            refuse("a client below " + std::to_string(clients), std::to_string(client));
        run.clients[client].push_back({record,
                                       static_cast<std::uint32_t>(number_at(bytes.data() + 8, 4)),
                                       static_cast<std::uint32_t>(number_at(bytes.data() + 12, 4)),
                                       static_cast<operation>(what)});
    }
}

} // namespace workload
