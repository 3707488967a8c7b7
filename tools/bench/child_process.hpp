// SPDX-License-Identifier: MIT
//
// Runs one case of a benchmark in a process of its own: it begins with empty heaps and an untouched
// allocator, and its memory is measured against nothing that ran before.
//
// When not to use it: after this process has used obase or has started a thread.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace obase::tools {

// What `work` returns, carried over. Throws std::runtime_error, naming `what`, when work throws or
// its process ends by a signal.
nlohmann::json in_child_process(const std::string& what,
                                const std::function<nlohmann::json()>& work);

} // namespace obase::tools
