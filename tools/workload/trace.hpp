// SPDX-License-Identifier: MIT
//
// Recorded operations, read from a file into memory for replay. The file may be plain or compressed
// with gzip, xz or zstd; which one is found from its content, and so is the format, by the number
// of columns of its first line:
//
//   trace_format   columns
//   operations     4: op,key id,key length,value length. Key ids are decimal numbers below 2^64; a
//                  first line that begins with "op" is a header. As decoded from RocksDB's
//                  -trace_file.
//   twitter        7: timestamp,key,key size,value size,client id,op,TTL, the cache traces of
//                  J. Yang et al., OSDI 2020. Keys are text and may contain commas, after the
//                  first line; a first line that begins with "timestamp" is a header.
//   keys           1: a key, any text; each line is a read
//   be32           none: ids of four bytes, highest first; each is a read. As in the traces of
//                  cache2k's benchmarks. Only if asked for, since any file can be read this way.
//   cachelib     a header that begins with op_time names them; key, key_size, op, op_count and size
//                  are needed, in any order: the KV traces of CacheLib. A line stands for op_count
//                  operations. A get of size 0 found nothing.
//   arc          four numbers with blanks between them: first block, number of blocks, a number that
//                  is not used, number of the request. Each block is a read of a key. As in the
//                  traces of N. Megiddo and D. Modha, FAST 2003. Only if asked for.
//   oracle       none: records of 24 bytes, lowest first: time (4), id (8), size (4), number of the
//                  next access to the id (8); each is a read. libCacheSim's oracleGeneral. Only if
//                  asked for.
//
// Lengths are in bytes; keys up to 65535, values up to 4294967295. Names of operations, in small or
// capital letters:
//
//   read                get, gets, get_lease, read
//   update              put, set, set_lease, add, replace, cas, update, write
//   insert              insert
//   scan                seek, scan
//   read_modify_write   merge, incr, decr, append, prepend, rmw
//   erase               delete, erase, remove
//
// Keys become numbers 0 .. keys() - 1 in the order of their first appearance. Nothing else is kept
// of them, nor of timestamps, clients and TTLs.
//
// A trace is complete and well-formed or it is refused: whatever else is in a line, a file that
// ends within a line (so also: whose last line does not end with a newline) or within a compressed
// block, and one without any operation throw std::runtime_error. Its message names file and line,
// what was expected and what came instead. (A plain file that was cut exactly behind a line looks
// complete.)
//
//     const workload::trace recorded = workload::read_trace("mixgraph.csv.zst");
//     for (const workload::trace_entry& e : recorded.entries()) ...
//
// A trace is in memory: 12 bytes per operation, and per different key about 60 while reading, 8
// afterwards. Of a larger one, read the beginning with max_operations.
//
// Threads: not changed once read. Cost: 0.4 us per line of a compressed trace of a million
// operations.
#pragma once

#include "tools/workload/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace workload {

enum class trace_format { automatic, operations, twitter, keys, be32, cachelib, arc, oracle };

// "auto" and the names above; nothing for any other text.
std::optional<trace_format> trace_format_named(std::string_view name) noexcept;
std::string_view name_of(trace_format format) noexcept;

struct trace_entry {
    std::uint32_t key;
    std::uint32_t value_length; // as recorded, for reads too (there RocksDB's traces say 0)
    std::uint16_t key_length;   // 0 if the format has none
    operation what;

    bool operator==(const trace_entry&) const = default;
};

// What is known of a record before it is asked for the first time.
struct trace_record {
    std::uint32_t value_length; // the first that is not 0; 0 if all are
    std::uint16_t key_length;   // of the first operation

    bool operator==(const trace_record&) const = default;
};

struct trace_options {
    trace_format format = trace_format::automatic;
    // The file is not read on after so many.
    std::size_t max_operations = std::numeric_limits<std::size_t>::max();
};

class trace {
  public:
    const std::vector<trace_entry>& entries() const noexcept { return entries_; }
    // By key number.
    const std::vector<trace_record>& records() const noexcept { return records_; }
    std::size_t keys() const noexcept { return records_.size(); }
    // Which one it was; never automatic.
    trace_format format() const noexcept { return format_; }

    bool operator==(const trace&) const = default;

  private:
    friend class trace_parser;

    std::vector<trace_entry> entries_;
    std::vector<trace_record> records_;
    trace_format format_ = trace_format::automatic;
};

// Throws std::runtime_error as said above, or if the file cannot be read.
trace read_trace(const std::string& path, const trace_options& options = {});

} // namespace workload
