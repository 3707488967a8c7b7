// SPDX-License-Identifier: MIT
//
// Slots in the memory of threads that the child of a fork does not have: on their stacks and in their
// thread-local storage, which the C library gives to other threads of the child, unmaps or frees. The
// child's collector once went on visiting them: it rewrote raw pointers in live frames, or died.
#include "heap/sanitized.hpp"
#include "runtime/arming_engine.hpp"
#include "runtime/atc_engine.hpp"
#include "testing/child_process.hpp"
#include "testing/waiting_thread.hpp"

#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using obase::collect_result;
using obase::testing::require;
using obase::testing::run_in_child;
using obase::testing::waiting_thread;

struct item {
    std::uint64_t id;
};

template <class Protocol>
class fork_slots : public testing::Test {
  protected:
    using guide_type = obase::guide<item, Protocol>;
    using engine = std::conditional_t<std::is_same_v<Protocol, obase::arming>,
                                      obase::runtime_internal::arming_engine,
                                      obase::runtime_internal::atc_engine>;

    // AddressSanitizer keeps the variables of frames elsewhere, and has a stack and storage of its own
    // for each thread.
    void SetUp() override {
        if (obase::heap::sanitized) GTEST_SKIP() << "where things lie is AddressSanitizer's choice";
    }

    static obase::runtime& runtime() { return obase::runtime::of<Protocol>(); }
    static void configure() {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        require(runtime().configure(settings).empty(), "configure");
        (void)make(0);
    }
    static obase::owner<item, Protocol> make(std::uint64_t id) {
        return obase::make_managed<item, Protocol>(item{id});
    }
    static bool registered(const void* slot) {
        const obase::basic_scope<Protocol> one_operation;
        return engine::instance().directory().test(slot);
    }
    // What every child does in the end.
    static void collects() {
        require(runtime().start().empty(), "start in the child");
        std::thread([] {}).join(); // glibc unmaps stacks when a thread ends
        for (int window = 0; window < 3; ++window)
            require(runtime().collect_now() == collect_result::done, "a window in the child");
        runtime().stop();
    }
    static int status_of_fork(const std::function<void()>& in_child) {
        const pid_t pid = fork();
        if (pid == 0) {
            in_child();
            _exit(0);
        }
        int status = -1;
        require(waitpid(pid, &status, 0) == pid, "waitpid");
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
};

using protocols = testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(fork_slots, protocols);

template <class Protocol>
obase::guide<item, Protocol>* static_guide() {
    static obase::guide<item, Protocol> only;
    return &only;
}

TYPED_TEST(fork_slots, stacks_of_other_threads_end_and_everything_else_stays) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        std::vector<guide> in_malloc(100);
        for (auto& g : in_malloc) g = TestFixture::make(1);
        guide here = TestFixture::make(2);
        *static_guide<TypeParam>() = TestFixture::make(3);
        guide* there = nullptr;
        const waiting_thread other([&there](const auto& wait) {
            guide own[50];
            for (auto& g : own) g = TestFixture::make(4);
            there = own;
            wait();
        });
        require(TestFixture::registered(there), "a slot on a stack in the parent");
        const int status = TestFixture::status_of_fork([&] {
            for (int i = 0; i < 50; ++i)
                require(!TestFixture::registered(there + i), "a slot of a thread that is gone");
            for (const guide& g : in_malloc) require(TestFixture::registered(&g), "in malloc");
            require(TestFixture::registered(&here), "on the forking thread's stack");
            require(TestFixture::registered(static_guide<TypeParam>()), "in static storage");
            TestFixture::collects();
            const obase::basic_scope<TypeParam> s;
            require(here->id == 2 && in_malloc[99]->id == 1, "objects");
        });
        require(TestFixture::registered(there), "still a slot in the parent");
        return status;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Such a thread has no record, so its stack is found from the outside.
TYPED_TEST(fork_slots, a_slot_that_another_thread_made_on_a_stack) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        std::optional<guide>* place = nullptr;
        std::atomic<bool> destroyed{false};
        const waiting_thread other([&](const auto& wait) {
            std::optional<guide> answer;
            place = &answer;
            wait();
            while (!destroyed) std::this_thread::yield();
        });
        place->emplace(TestFixture::make(1));
        require(TestFixture::registered(place), "a slot in the parent");
        const int status = TestFixture::status_of_fork([&] {
            require(!TestFixture::registered(place), "a slot of a thread that is gone");
            TestFixture::collects();
        });
        place->reset();
        destroyed = true;
        return status;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Where the calling thread has the plugin's variable.
auto* plugin_storage() {
    void* plugin = dlopen(OBASE_TEST_TLS_PLUGIN, RTLD_NOW);
    require(plugin != nullptr, "dlopen");
    auto* const storage = reinterpret_cast<void* (*)()>(dlsym(plugin, "tls_plugin_storage"));
    require(storage != nullptr, "dlsym");
    return storage;
}

// Dynamic thread-local storage is memory of malloc, which the C library frees when it gives the stack to
// another thread.
TYPED_TEST(fork_slots, thread_local_storage_of_a_plugin_ends) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        auto* const storage = plugin_storage();
        for (const bool has_record : {true, false}) {
            void* words = nullptr;
            const waiting_thread other([&](const auto& wait) {
                words = storage();
                if (has_record) (void)TestFixture::make(0);
                wait();
            });
            auto* mine = ::new (storage()) guide(TestFixture::make(1));
            auto* theirs = ::new (words) guide(TestFixture::make(2));
            const int status = TestFixture::status_of_fork([&] {
                require(!TestFixture::registered(theirs), "a slot of a thread that is gone");
                require(TestFixture::registered(mine), "a slot of the forking thread");
                TestFixture::collects();
            });
            require(status == 0, "the fork's child");
            theirs->~guide();
            mine->~guide();
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// The C library frees such storage when its thread ends, so what has no destructor, as in C, ends then.
TYPED_TEST(fork_slots, thread_local_storage_of_a_plugin_ends_with_its_thread) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        auto* const storage = plugin_storage();
        auto* mine = ::new (storage()) guide(TestFixture::make(1));
        guide* first = nullptr;
        guide* last = nullptr;
        std::thread([&] {
            auto* const words = static_cast<std::byte*>(storage());
            first = ::new (words) guide(TestFixture::make(2));
            last = ::new (words + 8192 * 8 - sizeof(guide)) guide(TestFixture::make(3));
            require(TestFixture::registered(first) && TestFixture::registered(last), "slots");
        }).join();
        require(!TestFixture::registered(first) && !TestFixture::registered(last),
                "slots of a thread that has ended");
        require(TestFixture::registered(mine), "a slot of another thread");
        TestFixture::collects();
        mine->~guide();
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// The initial thread's stack is never another thread's memory: what main() has goes on moving. The
// forking thread is the child's first by number, but its stack is one like others in a child of the
// child.
TYPED_TEST(fork_slots, of_the_initial_thread_stay_and_of_a_forking_thread_end_in_turn) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        const guide of_main = TestFixture::make(1);
        int status = -1;
        std::atomic<std::optional<guide>*> place{nullptr};
        std::atomic<bool> made{false};
        std::thread worker([&] { // without a record until its first check
            std::optional<guide> answer;
            place = &answer;
            while (!made) std::this_thread::yield();
            const guide& of_worker = *answer;
            status = TestFixture::status_of_fork([&] {
                int inner = -1;
                std::thread([&] {
                    inner = TestFixture::status_of_fork([&] {
                        require(TestFixture::registered(&of_main), "of the initial thread");
                        require(!TestFixture::registered(&of_worker), "of the child's leader");
                        TestFixture::collects();
                    });
                }).join();
                require(inner == 0, "the inner child");
                require(TestFixture::registered(&of_main), "of the initial thread");
                require(TestFixture::registered(&of_worker), "of the forking thread");
                TestFixture::collects();
            });
        });
        while (place == nullptr) std::this_thread::yield();
        place.load()->emplace(TestFixture::make(2));
        made = true;
        worker.join();
        return status;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// A stack of the program's own, without a guard page.
TYPED_TEST(fork_slots, a_stack_that_the_program_gave) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        for (const bool has_record : {true, false}) {
            constexpr std::size_t bytes = std::size_t{1} << 20;
            void* stack = std::aligned_alloc(4096, bytes);
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstack(&attributes, stack, bytes);
            struct shared {
                bool has_record;
                std::atomic<int> step{0};
                std::optional<guide>* place = nullptr;
            } both{has_record};
            pthread_t thread;
            const auto body = [](void* p) -> void* {
                auto& with = *static_cast<shared*>(p);
                if (with.has_record) (void)TestFixture::make(0);
                std::optional<guide> answer;
                with.place = &answer;
                with.step = 1;
                while (with.step != 2) std::this_thread::yield();
                return nullptr;
            };
            require(pthread_create(&thread, &attributes, body, &both) == 0, "a thread");
            while (both.step != 1) std::this_thread::yield();
            both.place->emplace(TestFixture::make(1));
            const int status = TestFixture::status_of_fork([&] {
                require(!TestFixture::registered(both.place), "a slot of a thread that is gone");
                std::memset(stack, 0x55, bytes);
                TestFixture::collects();
            });
            both.place->reset();
            both.step = 2;
            pthread_join(thread, nullptr);
            std::free(stack);
            require(status == 0, "the fork's child");
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// What was the stack of a thread that ended before the fork is memory like other memory.
TYPED_TEST(fork_slots, a_thread_that_ended_before_the_fork_takes_nothing_along) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        using guide = typename TestFixture::guide_type;
        constexpr std::size_t bytes = std::size_t{1} << 20;
        void* stack = std::aligned_alloc(4096, bytes);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack, bytes);
        pthread_t thread;
        const auto body = [](void*) -> void* {
            (void)TestFixture::make(0);
            return nullptr;
        };
        require(pthread_create(&thread, &attributes, body, nullptr) == 0, "a thread");
        pthread_join(thread, nullptr);
        auto* reused = ::new (stack) guide(TestFixture::make(1));
        const int status = TestFixture::status_of_fork([&] {
            require(TestFixture::registered(reused), "a slot in memory of the program's own");
            TestFixture::collects();
        });
        reused->~guide();
        std::free(stack);
        return status;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Without a list of threads nothing is known of their memory.
TYPED_TEST(fork_slots, nothing_moves_where_threads_cannot_be_listed) {
    const auto child = run_in_child([] {
        TestFixture::configure();
        rlimit files{};
        getrlimit(RLIMIT_NOFILE, &files);
        const rlim_t before = files.rlim_cur;
        files.rlim_cur = 0;
        setrlimit(RLIMIT_NOFILE, &files);
        return TestFixture::status_of_fork([&] {
            files.rlim_cur = before;
            setrlimit(RLIMIT_NOFILE, &files);
            const std::string why = TestFixture::runtime().start();
            require(why.find("which memory the other threads had") != std::string::npos,
                    "a reason");
        });
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
