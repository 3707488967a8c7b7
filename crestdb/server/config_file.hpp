// SPDX-License-Identifier: MIT
//
// read_config_file: options of the command line from a file, one 'name = value' a line.
//
//     # a comment
//     port = 6380
//     bind = 127.0.0.1,::1
//     load = false            (an option without a value: true or false)
//
// What the command line has said already wins. A value may stand in double quotes, which keep its spaces.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace crestdb::server {

// Where an option was set, "crestdb.conf:3", for messages about its value.
using option_places = std::map<const CLI::Option*, std::string>;

// Sets what `app`, which has parsed the command line, was not told there. Returns "", or what is wrong,
// beginning with file and line. Not thread safe.
std::string read_config_file(const std::string& path, CLI::App& app, option_places& places);

} // namespace crestdb::server
