// SPDX-License-Identifier: MIT
//
// Runs one case of a benchmark in a process of its own: it begins with empty heaps and an untouched
// allocator, and its memory is measured against nothing that ran before.
//
// Precondition: this process has neither used obase nor started a thread.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace obase::tools {

// What `work` returns, carried over. Throws std::runtime_error, naming `what`, when work throws or
// its process ends by a signal.
nlohmann::json in_child_process(const std::string& what,
                                const std::function<nlohmann::json()>& work);

// Runs a program, found as a shell finds it, and returns what it wrote to its two outputs; nothing
// if it cannot be run, fails, or is ended by an interrupt.
std::optional<std::string> output_of_program(const std::vector<std::string>& words);

} // namespace obase::tools
