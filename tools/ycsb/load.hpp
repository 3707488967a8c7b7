// SPDX-License-Identifier: MIT
//
// From settings to records and requests: what a store is filled with and asked for.
#pragma once

#include "tools/ycsb/record_set.hpp"
#include "tools/ycsb/request.hpp"
#include "tools/ycsb/settings.hpp"

#include "crestdb/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace obase::tools {

struct session_load {
    std::unique_ptr<record_set> records;
    // A source for client number `thread`; at most settings.threads of them.
    std::function<std::unique_ptr<request_source>(unsigned thread)> source;
    std::string distribution; // its name
    // loop: requests after which the sequence begins again; 0: it does not.
    std::uint64_t period = 0;
    bool scans = false; // some requests are scans, which need an ordered index
    // Records beyond records->count() that inserts may make.
    std::uint64_t room_for_inserts = 0;
    // How many records there are by now, while no client is at work. Null: records->count().
    std::function<std::uint64_t()> records_now;
};

// Throws std::invalid_argument for settings that make no sense, std::runtime_error for a file that
// cannot be read; each names the setting, what it is and what it may be.
session_load make_load(const ycsb_settings& settings);

// For loads that read only, in a fixed sequence of records: client number `thread` begins at its part.
std::function<std::unique_ptr<request_source>(unsigned)>
reads_of(std::shared_ptr<const std::vector<std::uint32_t>> sequence, unsigned clients);

// What make_load and a session will not accept, in a sentence; "" if all is well.
std::string why_not(const ycsb_settings& settings);

// The version of the values that fill_store() writes.
inline constexpr std::uint32_t first_version = 1;

// Puts every record into the store, on several threads. Throws what the store throws.
void fill_store(crestdb::store& store, const record_set& records, unsigned threads);

} // namespace obase::tools
