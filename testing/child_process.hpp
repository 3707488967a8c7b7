// SPDX-License-Identifier: MIT
//
// run_in_child(): runs a body in a forked process and returns how it ended and what it wrote to
// stderr.
//
// For tests of what belongs to a whole process: a runtime that starts under some limit, a crash,
// the messages of one run. The body returns the exit status; require() ends the child from anywhere
// in it. The child leaves by std::exit(), so what runs at exit is part of the test.
//
//     const auto child = testing::run_in_child([] {
//         testing::require(limit_address_space(), "setrlimit");
//         return use_the_library();
//     });
//     EXPECT_EQ(child.status, 0) << child.err;
//
// Precondition: the calling process has neither started threads nor used the runtime. Otherwise the
// child would test a fork, not a fresh process.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace obase::testing {

inline constexpr int failed_requirement = 99;

// In the child: ends it with a line on stderr. Needs no memory.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "NOT MET: %s\n", what);
    _exit(failed_requirement);
}

struct child_result {
    int status = -1; // exit status, or 1000 + signal
    std::string err;

    // The runtime's own lines, less the one about a machine with one processor.
    std::vector<std::string> messages() const {
        std::vector<std::string> found;
        for (std::size_t at = 0; at < err.size();) {
            const std::size_t end = std::min(err.find('\n', at), err.size());
            const std::string line = err.substr(at, end - at);
            if (line.starts_with("obase: ") && line.find("one processor") == std::string::npos)
                found.push_back(line);
            at = end + 1;
        }
        return found;
    }
};

template <class Body>
child_result run_in_child(Body&& body) {
    child_result result;
    int ends[2];
    if (pipe(ends) != 0) return result;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        std::exit(body());
    }
    close(ends[1]);
    char text[4096];
    for (;;) {
        const ssize_t got = read(ends[0], text, sizeof text);
        if (got > 0) result.err.append(text, static_cast<std::size_t>(got));
        if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    close(ends[0]);
    if (child < 0) return result;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return result;
}

} // namespace obase::testing
