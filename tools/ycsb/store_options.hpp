// SPDX-License-Identifier: MIT
//
// The options that all commands have which fill a store, and the settings that they stand for.
//
//     add_record_options(command, settings);
//     add_index_options(command, settings);
//     const session_load load = make_load(store_settings_of(settings));
//
// Settings: a struct with records, key_size, value_size, seed, index and threads.
#pragma once

#include "tools/bench/command_line.hpp"
#include "tools/ycsb/settings.hpp"

#include "crestdb/store.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace obase::tools {

template <class Settings>
void add_record_options(CLI::App& command, Settings& s) {
    command.add_option("--records", s.records, "records loaded before")
        ->check(not_negative)
        ->capture_default_str();
    command.add_option("--key-size", s.key_size, "bytes of a key")
        ->check(not_negative)
        ->capture_default_str();
    command.add_option("--value-size", s.value_size, "bytes of a value")
        ->check(not_negative)
        ->capture_default_str();
    command.add_option("--seed", s.seed, "of the requests")
        ->check(not_negative)
        ->capture_default_str();
}

template <class Settings>
void add_index_options(CLI::App& command, Settings& s) {
    command
        .add_option("--index", s.index,
                    fmt::format("the index; {} for values below {} bytes unless given",
                                crestdb::store::usual_index(0), crestdb::store::small_value_bytes))
        ->check(CLI::IsMember(crestdb::store::indexes()))
        ->capture_default_str();
    command.parse_complete_callback([&command, &s] {
        if (command.count("--index") == 0 && s.value_size < crestdb::store::small_value_bytes)
            s.index = crestdb::store::usual_index(s.value_size);
    });
    command.add_option("--threads", s.threads, "clients")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
}

// Keys and values of the store, which any record may be asked for; make_load checks them.
template <class Settings>
ycsb_settings store_settings_of(const Settings& s) {
    ycsb_settings y;
    y.index = s.index;
    y.workload = "C";
    y.distribution = "uniform";
    y.records = s.records;
    y.key_size = s.key_size;
    y.value_size = s.value_size;
    y.threads = s.threads;
    y.seed = s.seed;
    return y;
}

} // namespace obase::tools
