// SPDX-License-Identifier: MIT
//
// Which turns of `obase bench server --rows moving` count, and that a server which is not asked stands still.
#include "tools/server/moving_turns.hpp"
#include "tools/server/servers.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace obase::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto always = [] { return true; };

// Objects move in every third turn, two at a time.
struct two_servers {
    std::vector<std::pair<std::size_t, std::uint64_t>> asked; // server, turn
    std::uint64_t objects = 100;

    run_result ask(std::size_t which, std::uint64_t turn) {
        asked.emplace_back(which, turn);
        if (which == 0 && turn % 3 == 2) objects += 2;
        run_result r;
        r.seconds = which == 0 ? 1 : 10;
        r.cpu_seconds = which == 0 ? .5 : 5;
        r.latencies_us = {static_cast<double>(100 * turn + which)};
        return r;
    }
    moving_turns take(std::uint64_t requests, std::chrono::steady_clock::duration patience) {
        return take_moving_turns(
            requests, 50, patience,
            [this](std::size_t which, std::uint64_t turn) { return ask(which, turn); },
            [this] { return objects; }, always);
    }
};

TEST(moving_turns, count_where_something_moved) {
    two_servers two;
    const moving_turns turns = two.take(100, 24h);
    EXPECT_EQ(turns.requests, 100U);
    EXPECT_EQ(turns.moved, 4U);
    EXPECT_EQ(turns.of[0].seconds, 2);
    EXPECT_EQ(turns.of[1].seconds, 20);
    EXPECT_EQ(turns.of[1].cpu_seconds, 10);
    EXPECT_EQ(turns.of[0].latencies_us, (std::vector<double>{200, 500}));
    EXPECT_EQ(turns.of[1].latencies_us, (std::vector<double>{201, 501}));
}

TEST(moving_turns, have_each_server_first_in_turn) {
    two_servers two;
    two.take(100, 24h);
    ASSERT_EQ(two.asked.size(), 12U);
    for (std::size_t i = 0; i < two.asked.size(); ++i) {
        const std::size_t turn = i / 2;
        EXPECT_EQ(two.asked[i], std::pair((turn + i) % 2, std::uint64_t{turn})) << i;
    }
}

TEST(moving_turns, end_where_nothing_moves) {
    const moving_turns turns = take_moving_turns(
        1, 50, 1ms, [](std::size_t, std::uint64_t) { return run_result(); }, [] { return 7U; },
        always);
    EXPECT_EQ(turns.requests, 0U);
    EXPECT_TRUE(turns.of[0].latencies_us.empty());
}

TEST(moving_turns, end_when_told) {
    int left = 4;
    two_servers two;
    const moving_turns turns = take_moving_turns(
        1000, 50, 24h, [&](std::size_t which, std::uint64_t turn) { return two.ask(which, turn); },
        [&] { return two.objects; }, [&] { return left-- > 0; });
    EXPECT_EQ(turns.requests, 50U);
    EXPECT_EQ(two.asked.size(), 8U);
}

// R: runs or is ready, S: sleeps, T: stopped.
char state_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t at = text.rfind(") ");
    return at == std::string::npos || at + 2 >= text.size() ? '?' : text[at + 2];
}

TEST(stopped, stands_still_while_one_exists) {
    const scratch_directory scratch;
    const std::string path = scratch.path() + "/s";
    // The socket is ours: whoever is started beside it is taken for its server.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int listens = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(listens, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listens, 16), 0);
    {
        const system_under_test system("busy", {"/bin/sh", "-c", "while :; do :; done"}, path,
                                       true);
        for (int i = 0; i < 200; ++i) {
            {
                const system_under_test::stopped one(system);
                ASSERT_EQ(state_of(system.process()), 'T') << i;
            }
            while (state_of(system.process()) == 'T') std::this_thread::yield();
        }
    }
    ::close(listens);
}

} // namespace
} // namespace obase::tools
