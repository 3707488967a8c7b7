// SPDX-License-Identifier: MIT
//
// A file of the operations that the clients of a load sent, each client's in its order, to be played
// again exactly. (Traces of other programs are trace.hpp; they know keys, not clients.)
//
//     workload::operation_recorder file("run.ops", R"({"workload":"hot"})", clients);
//     file.add(client, operation);                      // by that client's thread
//     file.finish();                                    // when all have come to rest
//
//     const workload::recorded_operations run = workload::read_recorded_operations("run.ops");
//     for (const auto& operation : run.clients[0]) ...
//
// A line of text, "obase-operations 1 CLIENTS HEADER", then records of 20 bytes, lowest byte first:
//
//     0   8   record's number
//     8   4   bytes of the value, of a write; 0: the record's usual one
//     12  4   length of a scan
//     16  2   client
//     18  1   operation, as enumerated in operation.hpp; 255: the end, with the number of all records
//             before it in place of the record's number
//     19  1   sum of the other bytes, and 0x5a
//
// Clients' records come in blocks. A file without its end, or with anything behind it, is torn.
//
// Threads: add() by one thread for each client; the others by one, while no client adds. Cost: a
// copy of 20 bytes, and for every few thousand a write under a lock. Memory of a reader: 24 bytes
// for each operation.
#pragma once

#include "tools/workload/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace workload {

struct recorded_operation {
    std::uint64_t record = 0;
    std::uint32_t value_size = 0;
    std::uint32_t scan_length = 0;
    operation what = operation::read;

    bool operator==(const recorded_operation&) const = default;
};

class operation_recorder {
  public:
    // `header` is a text of one line. Throws std::runtime_error if the file cannot be written, as
    // the others do.
    operation_recorder(const std::string& path, const std::string& header, unsigned clients);

    void add(unsigned client, const recorded_operation& one) {
        std::string& buffer = buffers_[client].bytes;
        append(buffer, one, client);
        if (buffer.size() >= block) write(buffer);
    }
    void finish();

  private:
    static constexpr std::size_t block = std::size_t{20} * 4096;

    struct close_file {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    struct alignas(64) client_buffer {
        std::string bytes;
    };

    static void append(std::string& to, const recorded_operation& one, unsigned client);
    void write(std::string& buffer);
    [[noreturn]] void fail() const;

    std::string path_;
    std::unique_ptr<std::FILE, close_file> file_;
    std::vector<client_buffer> buffers_; // by client
    std::mutex mutex_;
    std::uint64_t written_ = 0; // records; under mutex_
};

struct recorded_operations {
    std::string header;
    std::vector<std::vector<recorded_operation>> clients;
};

// Throws std::runtime_error, naming the file, the record (from 1 on), what was expected and what
// came.
recorded_operations read_recorded_operations(const std::string& path);

} // namespace workload
