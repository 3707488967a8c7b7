// SPDX-License-Identifier: MIT
//
// Linked into programs that others wrote. It asks for nothing by itself; the environment may:
//
//     OBASE_TEST_FORCED=1          windows from the program's start to its end, without a pause
//     OBASE_TEST_PAUSE=N           with N microseconds between them
//     OBASE_TEST_STATISTICS=FILE   at its end a line of JSON is added to the file: the statistics
//     OBASE_TEST_HISTORY=FILE      the same with the history of the windows
#include "forcing.hpp"

#include <obase/runtime.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void add_line(const char* variable, const std::string& line) {
    const char* path = std::getenv(variable);
    if (path == nullptr) return;
    std::FILE* file = std::fopen(path, "a");
    if (file == nullptr) {
        std::perror(path);
        return;
    }
    // One write, since programs of a test suite may end at the same time.
    std::setvbuf(file, nullptr, _IOFBF, line.size() + 2);
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
}

class from_start_to_end {
  public:
    from_start_to_end() {
        if (!forced_) return;
        // Without the collector's thread there are no windows to ask for.
        const std::string wrong = obase::runtime::get().start();
        if (!wrong.empty()) std::fprintf(stderr, "obase: %s\n", wrong.c_str());
        begin_forcing();
        wait_for_windows(); // a program may be over before a new thread has had a turn
    }
    ~from_start_to_end() {
        if (forced_) end_forcing();
        add_line("OBASE_TEST_STATISTICS", obase::runtime::get().statistics().to_json());
        add_line("OBASE_TEST_HISTORY", obase::to_json(obase::runtime::get().history()));
    }

  private:
    const bool forced_ = std::getenv("OBASE_TEST_FORCED") != nullptr;
} whole_program;

} // namespace
