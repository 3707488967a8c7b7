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
// its process ends by a signal; interruption when work throws that.
nlohmann::json in_child_process(const std::string& what,
                                const std::function<nlohmann::json()>& work);

// The environment of this process without settings of obase (OBASE_*) and preloaded libraries: what is measured has those
// that its benchmark gives it.
std::vector<std::string> clean_environment();
// A command of env(1) that runs a program so, with `environment` (NAME=VALUE) besides.
std::vector<std::string> clean_command(const std::vector<std::string>& environment,
                                       const std::vector<std::string>& words);

// Runs a program, found as a shell finds it.
struct finished_program {
    int exit_status = -1; // -1: a signal ended it; 127: it cannot be run
    std::string output;   // both of its outputs, as they came
    double cpu_seconds =
        0; // user's and system's, of all its threads and of the children it waited for
};
finished_program run_program(const std::vector<std::string>& words);
// The output alone; nothing if it cannot be run, fails, or is ended by an interrupt.
std::optional<std::string> output_of_program(const std::vector<std::string>& words);

// Runs this program from its beginning, under other arguments (words[0] is its name), and calls
// `line` for each line that it writes by write_line(). `first` runs in the new process before that; if
// it returns false the process ends. Its standard output goes nowhere. Interrupts are blocked when it
// begins. Returns how it ended, as waitpid() says. What `line` throws ends the process and is thrown.
int run_this_program(const std::vector<std::string>& words, const std::function<bool()>& first,
                     const std::function<void(const std::string&)>& line);
inline constexpr int descriptor_of_lines = 3;
// In a process that run_this_program() began. False if nobody reads.
bool write_line(const std::string& text);

} // namespace obase::tools
