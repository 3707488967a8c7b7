// SPDX-License-Identifier: MIT
//
// The static library in a program and in its plugins: one copy moves objects, the others say in one
// sentence that they do not; and a plugin with a copy in it stays loaded, because a collector, handlers
// of fork and of threads' ends run in it. Such programs once crashed without a word.
#include "testing/child_process.hpp"
#include "testing/waiting_thread.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using obase::testing::require;
using obase::testing::run_in_child;
using obase::testing::waiting_thread;

struct item {
    int value;
};

struct plugin {
    void* handle;
    int (*use)();   // makes an object and reads it
    int (*moves)(); // 1: its runtime has heaps and a collector
    explicit plugin(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        require(handle != nullptr, "dlopen");
        use = reinterpret_cast<int (*)()>(dlsym(handle, "copy_plugin_use"));
        moves = reinterpret_cast<int (*)()>(dlsym(handle, "copy_plugin_moves"));
        require(use != nullptr && moves != nullptr, "dlsym");
    }
};

bool own_copy_moves() {
    const auto object = obase::make_managed<item>(item{1});
    return object->value == 1 && obase::runtime::get().collect_now() == obase::collect_result::done;
}

TEST(copies, the_second_one_says_so_and_moves_nothing) {
    const auto child = run_in_child([] {
        require(own_copy_moves(), "the program's copy");
        const plugin second(OBASE_TEST_COPY_PLUGIN);
        require(second.use() == 5, "objects of the second copy");
        require(second.moves() == 0, "the second copy does not move");
        require(own_copy_moves(), "the first copy goes on");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    ASSERT_EQ(child.messages().size(), 1u) << child.err;
    EXPECT_NE(child.err.find("another copy of obase"), std::string::npos) << child.err;
}

TEST(copies, the_plugins_may_be_the_first_and_the_only_one) {
    const auto child = run_in_child([] {
        const plugin first(OBASE_TEST_COPY_PLUGIN);
        require(first.use() == 5 && first.moves() == 1, "the plugin's copy");
        require(!own_copy_moves(), "the program's copy is the second");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_EQ(child.messages().size(), 1u) << child.err;
}

TEST(copies, a_plugin_that_uses_its_copy_stays_loaded) {
    const auto child = run_in_child([] {
        const plugin only(OBASE_TEST_COPY_PLUGIN);
        waiting_thread user([&only](const auto& wait) {
            require(only.use() == 5, "in a thread");
            wait();
        });
        dlclose(only.handle);
        require(dlopen(OBASE_TEST_COPY_PLUGIN, RTLD_NOW | RTLD_NOLOAD) != nullptr, "it stays");
        user.end(); // its end runs a hook in the plugin
        const pid_t pid = fork();
        if (pid == 0) _exit(0);
        int status = -1;
        require(waitpid(pid, &status, 0) == pid && status == 0, "a fork");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
