// SPDX-License-Identifier: MIT
//
// What is said of a server that ends while it starts, or while it is asked.
#include "tools/server/servers.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace obase::tools {
namespace {

std::string message_of(const std::function<void()>& throws) {
    try {
        throws();
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "nothing was thrown";
}

TEST(servers, one_that_does_not_start_says_how_it_ended) {
    EXPECT_EQ(message_of([] {
                  const system_under_test one("one", {"/bin/sh", "-c", "exit 3"}, "/nonexistent",
                                              true);
              }),
              "/bin/sh -c exit 3 did not start (ended with status 3)");
    EXPECT_EQ(message_of([] {
                  const system_under_test one("one", {"/bin/sh", "-c", "kill -9 $$"},
                                              "/nonexistent", true);
              }),
              "/bin/sh -c kill -9 $$ did not start (killed by signal 9)");
}

// It serves the connection that looks whether it is there, and ends when it is asked on the next.
TEST(servers, one_that_ends_while_it_is_asked_says_how) {
    const scratch_directory scratch;
    const std::string socket = scratch.path() + "/s";
    const auto ends_by = [&](const std::string& what) {
        ::unlink(socket.c_str());
        system_under_test one("one",
                              {"/usr/bin/env", "python3", "-c",
                               "import os, socket, sys\n"
                               "s = socket.socket(socket.AF_UNIX)\n"
                               "s.bind(sys.argv[1]); s.listen(); s.accept()\n"
                               "c = s.accept()[0]; c.recv(1)\n" +
                                   what,
                               socket},
                              socket, true);
        EXPECT_EQ(one.state(), "still running");
        return message_of([&] {
            ask(one, {.requests = 1, .clients = 1, .next = [](workload::random_stream&, bool&) {
                          return 0;
                      }});
        });
    };
    EXPECT_EQ(ends_by("os.kill(os.getpid(), 9)"), "one closed a connection (killed by signal 9)");
    EXPECT_EQ(ends_by("os._exit(7)"), "one closed a connection (ended with status 7)");
}

TEST(servers, what_is_asked_for_takes_the_place_of_the_row_s) {
    using words = std::vector<std::string>;
    const words own{"crestdb", "--threads", "1", "--no-load", "--window", "1"};
    EXPECT_EQ(with_options(own, "  --threads 2\t--x  "),
              (words{"crestdb", "--no-load", "--window", "1", "--threads", "2", "--x"}));
    EXPECT_EQ(with_options(own, "--window=3"),
              (words{"crestdb", "--threads", "1", "--no-load", "--window=3"}));
    EXPECT_EQ(with_options(own, "--no-load"),
              (words{"crestdb", "--threads", "1", "--window", "1", "--no-load"}));
    EXPECT_EQ(with_options(own, ""), own);
}

} // namespace
} // namespace obase::tools
