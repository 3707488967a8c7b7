// SPDX-License-Identifier: MIT
//
// Marked pointers as the compiler passes use them, here by hand: objects reached through marked
// fields move and stay right, an address may be in two fields within an operation, fields end, what
// is not managed stays, and shortages are survived.
//
// One body for all protocols. marked_test.cpp and marked_atc_test.cpp include it, after they have
// said OBASE_MARKED(name), the function's name, and `kind`:
//   protocol, engine
//   waits_at(word)     the collector saw the slot so, and waits for scopes before it moves the object
#pragma once

#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "testing/child_process.hpp"
#include "testing/quiet_runtime.hpp"

#include <obase/marked.h>
#include <obase/runtime.hpp>

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

#if !OBASE_THREAD_SANITIZER // which has all of these in one object: none can be replaced alone
// Memory of such an alignment, and what is asked of the runtime when one block of it is freed.
namespace aligned_blocks {
constexpr std::align_val_t alignment{256};
inline void* watched = nullptr;
inline int owner = -1;
inline bool keep = false; // what is freed
} // namespace aligned_blocks

void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto to = static_cast<std::size_t>(alignment);
    void* const made = std::aligned_alloc(to, (bytes + to - 1) / to * to);
    if (made == nullptr) throw std::bad_alloc();
    return made;
}
void operator delete(void* address, std::align_val_t) noexcept {
    if (aligned_blocks::keep) return;
    if (address != nullptr && address == aligned_blocks::watched)
        aligned_blocks::owner = obase_memory_owner(address, &malloc_usable_size);
    std::free(address);
}
void operator delete(void* address, std::size_t, std::align_val_t alignment) noexcept {
    operator delete(address, alignment);
}
#endif

namespace {

using obase::collect_result;
using obase::testing::moves_of;
using obase::testing::quiet_runtime;
using obase::testing::require;
using obase::testing::run_in_child;
using protocol = kind::protocol;
using layout = protocol::layout;

obase::runtime& runtime() { return obase::runtime::of<protocol>(); }

// Of the tests that run beside the collector.
constexpr int scale = obase::heap::sanitized ? 200 : 2000;

// A marked field as the passes see it.
template <class T>
struct marked {
    T* get() { return static_cast<T*>(OBASE_MARKED(load)(&field)); }
    void set(T* to) { OBASE_MARKED(store)(&field, to); }
    T* exchange(T* to) { return static_cast<T*>(OBASE_MARKED(exchange)(&field, to)); }
    bool compare_exchange(T*& expected, T* desired) {
        void* seen = expected;
        const bool done = OBASE_MARKED(compare_exchange)(&field, &seen, desired) != 0;
        expected = static_cast<T*>(seen);
        return done;
    }
    bool registered() const {
        const protocol::scope one_operation;
        return kind::engine::instance().directory().test(&field);
    }
    std::uint64_t word() const {
        const void* at = &field;
        return static_cast<const protocol::slot*>(at)->load_acquire();
    }
    void* field;
};

struct operation {
    std::uint64_t outer = OBASE_MARKED(enter)();
    operation() = default;
    ~operation() { OBASE_MARKED(leave)(outer); }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
};

struct node {
    std::uint64_t key;
    std::uint64_t check; // tells the key, so that a wrong byte is seen
    marked<node> next;
    bool right() const { return check == key * 0x9E3779B97F4A7C15U; }
};

node* make_node(std::uint64_t key, node* next = nullptr) {
    auto* made = static_cast<node*>(OBASE_MARKED(new)(sizeof(node)));
    made->key = key;
    made->check = key * 0x9E3779B97F4A7C15U;
    made->next.set(next);
    return made;
}

bool managed(const void* address) { return runtime().heap_of(address) >= 0; }

// A sorted list whose operations are those a C++ programmer writes; the head is a marked field, too.
class list {
  public:
    ~list() {
        clear();
        OBASE_MARKED(forget)(this, sizeof *this);
    }
    bool insert(std::uint64_t key) {
        const operation one;
        marked<node>* link = find(key);
        node* after = link->get();
        if (after != nullptr && after->key == key) return false;
        link->set(make_node(key, after)); // `after` is in two fields until this store
        return true;
    }
    bool erase(std::uint64_t key) {
        const operation one;
        marked<node>* link = find(key);
        node* found = link->get();
        if (found == nullptr || found->key != key) return false;
        link->set(found->next.get()); // the successor is in two fields until the node is freed
        OBASE_MARKED(delete)(found, sizeof *found, 0);
        return true;
    }
    bool contains(std::uint64_t key) {
        const operation one;
        const node* found = find(key)->get();
        require(found == nullptr || found->right(), "a node's bytes");
        return found != nullptr && found->key == key;
    }
    std::size_t count_right() {
        const operation one;
        std::size_t count = 0;
        for (node* at = head_.get(); at != nullptr; at = at->next.get()) {
            require(at->right(), "a node's bytes");
            ++count;
        }
        return count;
    }
    void clear() {
        const operation one;
        while (node* first = head_.get()) {
            head_.set(first->next.get());
            OBASE_MARKED(delete)(first, sizeof *first, 0);
        }
    }
    marked<node>& head() { return head_; }

  private:
    marked<node>* find(std::uint64_t key) {
        marked<node>* link = &head_;
        for (node* at = link->get(); at != nullptr && at->key < key; at = link->get())
            link = &at->next;
        return link;
    }
    marked<node> head_{};
};

void collect(int windows = 1) {
    for (; windows > 0; --windows) ASSERT_EQ(runtime().collect_now(), collect_result::done);
}

// Runs windows until told to stop; what the tests with several threads run beside.
class forced_collector {
  public:
    forced_collector()
        : thread_([this] {
              while (!stop_) (void)runtime().collect_now();
          }) {}
    ~forced_collector() {
        stop_ = true;
        thread_.join();
    }

  private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

// The heaps are small and full: objects come from malloc, and the program does not notice. First,
// because the child has to start its own runtime.
TEST(marked_without_room, objects_come_from_malloc) {
    const auto child = run_in_child([] {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.heap_reserve = std::size_t{1} << 20;
        require(runtime().configure(settings).empty(), "configure");
        constexpr std::uint64_t lists = 64;
        constexpr std::uint64_t count = lists * 2000;
        std::vector<marked<node>> heads(lists);
        std::uint64_t foreign = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            const operation one;
            marked<node>& head = heads[i % lists];
            node* fresh = make_node(i, head.get());
            foreign += !managed(fresh);
            head.set(fresh);
        }
        require(foreign > count / 4, "the heaps were to be full");
        require(foreign < count, "some objects were to be managed");
        for (int i = 0; i < 3; ++i)
            require(runtime().collect_now() == collect_result::done, "a window");
        for (std::uint64_t i = 0; i < lists; ++i) {
            const operation one;
            std::uint64_t expected = count + i;
            while (node* first = heads[i].get()) {
                expected -= lists;
                require(first->right() && first->key == expected, "a node");
                heads[i].set(first->next.get());
                OBASE_MARKED(delete)(first, sizeof *first, 0);
            }
            require(expected == i, "all nodes");
        }
        OBASE_MARKED(forget)(heads.data(), lists * sizeof heads[0]);
        require(runtime().drain().left == 0, "what was deleted is freed");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// In the child, another thread's operation never ends: an address may be in two fields for good.
TEST(marked_in_a_fork, nothing_moves_if_another_thread_was_in_an_operation) {
    for (const bool inside : {false, true}) {
        const auto child = run_in_child([inside] {
            marked<node> slot{};
            slot.set(make_node(1));
            std::atomic<int> step{0};
            std::thread other([&] {
                std::uint64_t outer = 0;
                if (inside) outer = OBASE_MARKED(enter)();
                step = 1;
                while (step != 2) std::this_thread::yield();
                if (inside) OBASE_MARKED(leave)(outer);
            });
            while (step != 1) std::this_thread::yield();
            const pid_t forked = fork();
            if (forked == 0) {
                const std::string why = runtime().start();
                _exit(why.find("another thread was in an operation") != std::string::npos ? 1 : 0);
            }
            int status = -1;
            require(waitpid(forked, &status, 0) == forked && WIFEXITED(status), "the fork ends");
            step = 2;
            other.join();
            return WEXITSTATUS(status);
        });
        EXPECT_EQ(child.status, inside ? 1 : 0) << child.err;
    }
}

// A field in the frame of a thread that the child does not have: the child's threads get such stacks.
TEST(marked_in_a_fork, fields_in_frames_of_other_threads_end) {
    const auto child = run_in_child([] {
        marked<node> here{};
        here.set(make_node(1));
        const marked<node>* there = nullptr;
        std::atomic<int> step{0};
        std::thread other([&] {
            marked<node> frame{};
            frame.set(make_node(2));
            there = &frame;
            step = 1;
            while (step != 2) std::this_thread::yield();
            OBASE_MARKED(forget)(&frame, sizeof frame);
        });
        while (step != 1) std::this_thread::yield();
        require(there->registered(), "a slot in the parent");
        const pid_t forked = fork();
        if (forked == 0) {
            require(!there->registered() && here.registered(), "the slots in the child");
            require(runtime().start().empty(), "start");
            std::thread([] {}).join();
            for (int i = 0; i < 3; ++i)
                require(runtime().collect_now() == collect_result::done, "a window");
            _exit(0);
        }
        int status = -1;
        require(waitpid(forked, &status, 0) == forked, "the fork ends");
        require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the fork's child");
        step = 2;
        other.join();
        OBASE_MARKED(forget)(&here, sizeof here);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// They are freed as managed ones are: an operation that has the address may go on reading.
TEST(marked_without_room, objects_of_malloc_wait_for_operations_too) {
    const auto child = run_in_child([] {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.heap_reserve = std::size_t{1} << 20;
        require(runtime().configure(settings).empty(), "configure");
        node* object = make_node(0);
        std::uint64_t key = 0;
        while (managed(object)) object = make_node(++key);
        auto* text = static_cast<char*>(OBASE_MARKED(malloc)(2000));
        require(!managed(text), "the heaps were to be full");
        text = static_cast<char*>(OBASE_MARKED(realloc)(text, 4000));
        std::strcpy(text, "in use");
        {
            const operation one;
            std::thread([object, text] {
                OBASE_MARKED(delete)(object, sizeof *object, 0);
                OBASE_MARKED(free)(text);
            }).join();
            (void)runtime().reclaim_now();
            require(object->right() && object->key == key,
                    "the object"); // malloc writes into what is free
            require(std::strcmp(text, "in use") == 0, "what was reallocated");
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST(marked, objects_move_and_stay_right) {
    quiet_runtime<protocol>();
    const std::uint64_t before = moves_of(runtime().statistics());
    list keys;
    constexpr std::uint64_t count = 2000;
    for (std::uint64_t key = count; key > 0; --key) ASSERT_TRUE(keys.insert(key));
    std::uint64_t first = 0;
    {
        const operation one;
        first = reinterpret_cast<std::uint64_t>(keys.head().get());
    }
    collect(2);
    EXPECT_EQ(keys.count_right(), count);
    collect(8); // from HOT to COLD
    EXPECT_EQ(keys.count_right(), count);
    EXPECT_GE(moves_of(runtime().statistics()), before + count);
    const operation one;
    EXPECT_NE(reinterpret_cast<std::uint64_t>(keys.head().get()), first);
}

TEST(marked, a_list_is_a_set_whatever_the_collector_does) {
    quiet_runtime<protocol>();
    const forced_collector beside;
    list keys;
    std::vector<bool> expected(256);
    std::mt19937_64 random(1);
    for (int i = 0; i < 100 * scale; ++i) {
        const std::uint64_t key = random() % expected.size();
        switch (random() % 3) {
        case 0:
            ASSERT_EQ(keys.insert(key), !expected[key]);
            expected[key] = true;
            break;
        case 1:
            ASSERT_EQ(keys.erase(key), static_cast<bool>(expected[key]));
            expected[key] = false;
            break;
        default:
            ASSERT_EQ(keys.contains(key), static_cast<bool>(expected[key]));
        }
    }
}

TEST(marked, threads_share_a_list_under_a_lock) {
    quiet_runtime<protocol>();
    list keys;
    std::mutex lock;
    constexpr std::uint64_t threads = 3;
    constexpr std::uint64_t each = 64;
    {
        const forced_collector beside;
        std::vector<std::thread> all;
        for (std::uint64_t t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                std::mt19937_64 random(t);
                std::vector<bool> expected(each); // this thread's keys are t, t + threads, ...
                for (int i = 0; i < 20 * scale; ++i) {
                    const std::uint64_t mine = random() % each;
                    const std::uint64_t key = mine * threads + t;
                    const std::lock_guard guard(lock);
                    if (random() % 2 == 0)
                        require(keys.insert(key) == !expected[mine], "insert");
                    else
                        require(keys.erase(key) == expected[mine], "erase");
                    expected[mine] = keys.contains(key);
                }
            });
        for (std::thread& t : all) t.join();
    }
    EXPECT_LE(keys.count_right(), threads * each);
}

// A stack as of Treiber, its nodes freed by obase_marked_delete: the compare-exchange sees addresses,
// not what the collector writes beside them.
TEST(marked, threads_share_a_stack_without_a_lock) {
    quiet_runtime<protocol>();
    marked<node> top{};
    std::atomic<std::uint64_t> pushed{0};
    std::atomic<std::uint64_t> popped{0};
    {
        const forced_collector beside;
        std::vector<std::thread> all;
        for (std::uint64_t t = 0; t < 3; ++t)
            all.emplace_back([&, t] {
                std::mt19937_64 random(t);
                for (std::uint64_t i = 0; i < 45 * scale; ++i) {
                    const operation one;
                    if (random() % 2 == 0) {
                        node* fresh = make_node(t * 100000 + i);
                        node* first = top.get();
                        do {
                            fresh->next.set(first);
                        } while (!top.compare_exchange(first, fresh));
                        pushed += t * 100000 + i;
                    } else {
                        node* first = top.get();
                        while (first != nullptr &&
                               !top.compare_exchange(first, first->next.get())) {
                        }
                        if (first == nullptr) continue;
                        require(first->right(), "a node's bytes");
                        popped += first->key;
                        OBASE_MARKED(delete)(first, sizeof *first, 0);
                    }
                }
            });
        for (std::thread& t : all) t.join();
    }
    const operation one;
    while (node* first = top.get()) {
        require(first->right(), "a node's bytes");
        popped += first->key;
        top.set(first->next.get());
        OBASE_MARKED(delete)(first, sizeof *first, 0);
    }
    OBASE_MARKED(forget)(&top, sizeof top);
    EXPECT_EQ(pushed, popped);
}

// Waits until the collector, which another thread has asked for a window, has looked at the slot and
// waits for the scopes that are open.
void wait_until_visited(const marked<node>& slot) {
    while (!kind::waits_at(slot.word())) std::this_thread::yield();
}

// An operation stores an address into a second field and clears the first. The collector visits both in
// between and waits for the operation; a reader that enters after that finds the address in the first
// field. The object must not be moved from under it, although no thread has touched the second
// field.
TEST(marked, an_address_taken_over_by_another_field_is_not_moved_from_under_a_reader) {
    quiet_runtime<protocol>();
    marked<node> from{};
    marked<node> to{};
    from.set(make_node(7));
    std::thread window;
    std::atomic<int> step{0};
    std::thread reader;
    {
        const operation one;
        to.set(from.get());
        (void)to.get(); // touched in NEW: it is to move to HOT
        window = std::thread([] { EXPECT_EQ(runtime().collect_now(), collect_result::done); });
        wait_until_visited(from);
        wait_until_visited(to);
        // Long after the advance of the epoch that follows the visits; were it not, the reader would
        // be waited for, and the test would show nothing.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        reader = std::thread([&] {
            const operation another;
            const node* held = from.get();
            step = 1;
            while (step != 2) std::this_thread::yield();
            EXPECT_TRUE(held != nullptr && held->right() && held->key == 7);
            const operation inner;
            EXPECT_EQ(to.get(), held);
        });
        while (step != 1) std::this_thread::yield();
        from.set(nullptr);
    }
    // Time to move the object, which must not happen: the collector waits once more, for the reader.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    step = 2;
    reader.join();
    window.join();
    // Later it moves.
    collect(2);
    const operation one;
    node* found = to.exchange(nullptr);
    EXPECT_TRUE(found->right());
    OBASE_MARKED(delete)(found, sizeof *found, 0);
    OBASE_MARKED(forget)(&from, sizeof from);
    OBASE_MARKED(forget)(&to, sizeof to);
}

// Both fields visited, then one is overwritten: the object has one owner and is moved at most once.
TEST(marked, an_address_in_two_fields_within_an_operation_is_one_object) {
    quiet_runtime<protocol>();
    for (const bool keep_first : {false, true}) {
        marked<node> first{};
        marked<node> second{};
        first.set(make_node(1));
        std::thread window;
        {
            const operation one;
            second.set(first.get());
            (void)second.get();
            window = std::thread([] { (void)runtime().collect_now(); });
            wait_until_visited(first);
            wait_until_visited(second);
            (keep_first ? second : first).set(nullptr);
        }
        window.join();
        collect(3);
        const operation one;
        marked<node>& kept = keep_first ? first : second;
        node* found = kept.get();
        ASSERT_NE(found, nullptr);
        EXPECT_TRUE(found->right());
        kept.set(nullptr);
        OBASE_MARKED(delete)(found, sizeof *found, 0);
        OBASE_MARKED(forget)(&first, sizeof first);
        OBASE_MARKED(forget)(&second, sizeof second);
    }
}

TEST(marked, an_operation_may_store_into_many_fields) {
    quiet_runtime<protocol>();
    constexpr std::size_t count = 5000;
    std::vector<marked<node>> from(count);
    std::vector<marked<node>> to(count);
    for (std::size_t i = 0; i < count; ++i) from[i].set(make_node(i));
    {
        const forced_collector beside;
        for (int round = 0; round < 20; ++round) {
            const operation one;
            for (std::size_t i = 0; i < count; ++i) {
                to[i].set(from[i].get());
                from[i].set(nullptr);
            }
            from.swap(to);
        }
    }
    collect(2);
    const operation one;
    for (std::size_t i = 0; i < count; ++i) {
        node* found = from[i].exchange(nullptr);
        ASSERT_TRUE(found->right() && found->key == i);
        OBASE_MARKED(delete)(found, sizeof *found, 0);
    }
    OBASE_MARKED(forget)(from.data(), count * sizeof(marked<node>));
    OBASE_MARKED(forget)(to.data(), count * sizeof(marked<node>));
}

TEST(marked, what_is_not_managed_stays_as_it_is) {
    quiet_runtime<protocol>();
    marked<node> slot{};
    node sentinel{};
    slot.set(&sentinel);
    EXPECT_FALSE(slot.registered());
    collect(2);
    EXPECT_EQ(layout::address(slot.word()), reinterpret_cast<std::uint64_t>(&sentinel));
    // Also where the slot is known from before.
    {
        const operation one;
        slot.set(make_node(1));
        EXPECT_TRUE(slot.registered());
        OBASE_MARKED(delete)(slot.exchange(&sentinel), sizeof(node), 0);
    }
    collect(2);
    const operation one;
    EXPECT_EQ(layout::address(slot.word()), reinterpret_cast<std::uint64_t>(&sentinel));
    node* expected = &sentinel;
    EXPECT_TRUE(slot.compare_exchange(expected, nullptr));
    EXPECT_EQ(slot.get(), nullptr);
    OBASE_MARKED(forget)(&slot, sizeof slot);
}

TEST(marked, compare_exchange_compares_addresses) {
    quiet_runtime<protocol>();
    marked<node> slot{};
    node* object = make_node(3);
    slot.set(object);
    const operation one;
    node* wrong = reinterpret_cast<node*>(std::uintptr_t{16});
    EXPECT_FALSE(slot.compare_exchange(wrong, nullptr));
    EXPECT_EQ(wrong, object);
    EXPECT_TRUE(slot.compare_exchange(wrong, nullptr));
    EXPECT_EQ(slot.get(), nullptr);
    OBASE_MARKED(delete)(object, sizeof *object, 0);
    OBASE_MARKED(forget)(&slot, sizeof slot);
}

TEST(marked, slots_end_with_their_memory) {
    quiet_runtime<protocol>();
    const operation one;
    node* object = make_node(1);

    // A managed object.
    node* outer = make_node(2, object);
    EXPECT_TRUE(outer->next.registered());
    OBASE_MARKED(delete)(outer, sizeof *outer, 0);
    EXPECT_FALSE(outer->next.registered());

    // Memory of malloc and of operator new.
    auto* plain = static_cast<node*>(std::malloc(sizeof(node)));
    plain->next.set(object);
    EXPECT_TRUE(plain->next.registered());
    OBASE_MARKED(free)(plain);
    EXPECT_FALSE(plain->next.registered());
    auto* other = static_cast<node*>(::operator new(sizeof(node)));
    other->next.set(object);
    OBASE_MARKED(delete)(other, sizeof(node), 0);
    EXPECT_FALSE(other->next.registered());
    auto* aligned = static_cast<node*>(::operator new(sizeof(node), std::align_val_t{64}));
    aligned->next.set(object);
    OBASE_MARKED(delete)(aligned, sizeof(node), 64);
    EXPECT_FALSE(aligned->next.registered());
    auto* array = static_cast<node*>(::operator new[](3 * sizeof(node)));
    for (int i = 0; i < 3; ++i) array[i].next.set(object);
    OBASE_MARKED(delete_array)(array, 0, 0);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(array[i].next.registered());

    // A frame.
    node local{};
    local.next.set(object);
    EXPECT_TRUE(local.next.registered());
    OBASE_MARKED(forget)(&local, sizeof local);
    EXPECT_FALSE(local.next.registered());

    OBASE_MARKED(delete)(object, sizeof *object, 0);
}

// A thread that sees the address may take it out again and end the memory: there must not be a slot
// in it after that. Each field lies in 16 MiB of its own, of which the collector knows nothing yet:
// then it takes longest until it does.
TEST(marked, a_field_is_a_slot_before_its_address_can_be_seen) {
    quiet_runtime<protocol>();
    constexpr std::size_t apart = std::size_t{16} << 20;
    constexpr std::size_t fields = obase::heap::sanitized ? 100 : 600;
    char* const room = static_cast<char*>(obase::os::reserve(apart * fields, apart));
    ASSERT_NE(room, nullptr);
    const auto field = [room](std::size_t i) {
        return reinterpret_cast<marked<node>*>(room + apart * i);
    };
    for (std::size_t i = 0; i < fields; ++i) {
        ASSERT_EQ(obase::os::commit(room + apart * i, obase::os::page_size), 0);
        ::new (static_cast<void*>(field(i))) marked<node>{};
    }
    unsigned late = 0;
    std::thread taker([&] {
        for (std::size_t i = 0; i < fields; ++i) {
            const operation one;
            while (protocol::address(field(i)->word()) == nullptr) {
            }
            if (!field(i)->registered()) ++late;
            node* taken = field(i)->exchange(nullptr);
            OBASE_MARKED(delete)(taken, sizeof *taken, 0);
        }
    });
    for (std::size_t i = 0; i < fields; ++i) {
        const operation one;
        if (i % 2 == 0) {
            field(i)->set(make_node(i));
        } else {
            node* empty = nullptr;
            EXPECT_TRUE(field(i)->compare_exchange(empty, make_node(i)));
        }
    }
    taker.join();
    EXPECT_EQ(late, 0u);
    OBASE_MARKED(forget)(room, apart * fields);
    obase::os::release(room, apart * fields);
}

// A thread that is inside may store into freed memory, as long as it takes that back.
TEST(marked, what_is_stored_into_freed_memory_is_no_slot_in_the_end) {
    quiet_runtime<protocol>();
    marked<node> keeper{};
    keeper.set(make_node(1));
    for (const bool managed_box : {true, false}) {
        node* box = managed_box ? make_node(2) : static_cast<node*>(std::calloc(1, sizeof(node)));
        {
            const operation one;
            box->next.set(keeper.get());
            box->next.set(nullptr);
            std::thread([box] {
                if (managed(box))
                    OBASE_MARKED(delete)(box, sizeof *box, 0);
                else
                    OBASE_MARKED(free)(box);
            }).join();
            EXPECT_FALSE(box->next.registered());
            box->next.set(keeper.get());
            box->next.set(nullptr);
            EXPECT_TRUE(box->next.registered());
        }
        (void)runtime().reclaim_now();
        EXPECT_FALSE(box->next.registered()) << managed_box;
    }
    const operation one;
    OBASE_MARKED(delete)(keeper.exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(forget)(&keeper, sizeof keeper);
}

// The same where the slot is far from the beginning of the object.
TEST(marked, what_is_stored_far_into_a_freed_object_is_no_slot_in_the_end) {
    quiet_runtime<protocol>();
    marked<node> keeper{};
    keeper.set(make_node(1));
    constexpr std::size_t count = 5 * 1024 * 1024; // several of the directory's 16 MiB
    auto* fields = static_cast<marked<node>*>(OBASE_MARKED(calloc)(count, sizeof(marked<node>)));
    ASSERT_TRUE(managed(fields));
    marked<node>& last = fields[count - 1];
    {
        const operation one;
        std::thread([fields] { OBASE_MARKED(free)(fields); }).join();
        last.set(keeper.get());
        last.set(nullptr);
        EXPECT_TRUE(last.registered());
    }
    (void)runtime().reclaim_now();
    EXPECT_FALSE(last.registered());
    const operation one;
    OBASE_MARKED(delete)(keeper.exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(forget)(&keeper, sizeof keeper);
}

// Memory that is not managed, `words` words of ~i, and what frees it.
constexpr std::size_t words = 8;
struct plain_memory {
    explicit plain_memory(bool is_array = false, std::size_t aligned_to = 0)
        : array(is_array), alignment(aligned_to) {
        const std::align_val_t aligned{alignment};
        if (array)
            begin = alignment == 0 ? ::operator new[](bytes) : ::operator new[](bytes, aligned);
        else
            begin = alignment == 0 ? ::operator new(bytes) : ::operator new(bytes, aligned);
        for (std::size_t i = 0; i < words; ++i) word(i) = ~i;
    }
    void free() const {
        if (array)
            OBASE_MARKED(delete_array)(begin, bytes, alignment);
        else
            OBASE_MARKED(delete)(begin, bytes, alignment);
    }
    volatile std::uint64_t& word(std::size_t i) const {
        return static_cast<volatile std::uint64_t*>(begin)[i];
    }
    // malloc writes into what is free.
    void expect_untouched() const {
        for (std::size_t i = 0; i < words; ++i) EXPECT_EQ(word(i), ~i);
    }
    bool has_trace() const {
        const protocol::scope one_operation;
        return kind::engine::instance().directory().any_trace_in(
            begin, static_cast<const char*>(begin) + bytes);
    }

    static constexpr std::size_t bytes = words * sizeof(std::uint64_t);
    bool array;
    std::size_t alignment;
    void* begin;
};

// A destructor ends the slots of its object before the memory is freed. A thread in an operation
// may be looking at them.
TEST(marked, memory_of_destroyed_objects_waits_for_operations) {
    quiet_runtime<protocol>();
    for (const bool array : {false, true})
        for (const std::size_t alignment : {std::size_t{0}, std::size_t{64}}) {
            const plain_memory box(array, alignment);
            {
                const operation one;
                std::thread([&box] {
                    // An element in the middle, none of whose fields was ever used.
                    OBASE_MARKED(destroyed)(&static_cast<char*>(box.begin)[16], 16);
                    EXPECT_TRUE(box.has_trace());
                    box.free();
                }).join();
                (void)runtime().reclaim_now();
                box.expect_untouched();
            }
            (void)runtime().reclaim_now();
            EXPECT_FALSE(box.has_trace());
        }
    node* object = make_node(1);
    OBASE_MARKED(destroyed)(object, sizeof *object);
    OBASE_MARKED(delete)(object, sizeof *object, 0);
}

// In C an object that is cleared may be freed next.
TEST(marked, memory_whose_slots_were_forgotten_waits_for_operations) {
    quiet_runtime<protocol>();
    marked<node> keeper{};
    keeper.set(make_node(1));
    const plain_memory box;
    {
        const operation one;
        std::thread([&box, &keeper] {
            const operation other;
            auto* field = reinterpret_cast<marked<node>*>(&static_cast<char*>(box.begin)[40]);
            field->set(keeper.get());
            field->set(nullptr);
            OBASE_MARKED(forget)(field, sizeof *field);
            box.word(5) = ~std::uint64_t{5};
            box.free();
        }).join();
        (void)runtime().reclaim_now();
        box.expect_untouched();
    }
    (void)runtime().reclaim_now();
    EXPECT_FALSE(box.has_trace());
    const operation one;
    OBASE_MARKED(delete)(keeper.exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(forget)(&keeper, sizeof keeper);
}

// Also if the memory is still used after its slots were cleared, for any number of windows.
TEST(marked, memory_in_use_keeps_the_traces_of_its_slots) {
    quiet_runtime<protocol>();
    const plain_memory box;
    OBASE_MARKED(destroyed)(box.begin, box.bytes);
    collect(4);
    {
        const operation one;
        std::thread([&box] { box.free(); }).join();
        (void)runtime().reclaim_now();
        box.expect_untouched();
    }
    (void)runtime().reclaim_now();
}

TEST(marked, realloc_leaves_memory_that_had_slots_to_those_who_look_at_it) {
    quiet_runtime<protocol>();
    for (const std::size_t bytes : {std::size_t{1000}, std::size_t{0}}) {
        auto* old = static_cast<std::uint64_t*>(std::malloc(words * sizeof(std::uint64_t)));
        for (std::size_t i = 0; i < words; ++i) old[i] = ~i;
        OBASE_MARKED(destroyed)(&old[3], sizeof *old);
        const operation one;
        void* grown = OBASE_MARKED(realloc)(old, bytes);
        (void)runtime().reclaim_now();
        for (std::size_t i = 0; i < words; ++i) EXPECT_EQ(old[i], ~i);
        if (bytes == 0) continue;
        for (std::size_t i = 0; i < words; ++i)
            EXPECT_EQ(static_cast<std::uint64_t*>(grown)[i], ~i);
        OBASE_MARKED(free)(grown);
    }
    (void)runtime().reclaim_now();

    // What shrinks in its place may have had its slots in what is cut off.
    auto* table = static_cast<marked<node>*>(std::calloc(100, sizeof(marked<node>)));
    node* kept = make_node(1);
    table[90].set(kept);
    const operation one;
    ASSERT_EQ(OBASE_MARKED(realloc)(table, 80 * sizeof(marked<node>)), table);
    EXPECT_FALSE(table[90].registered());
    table[10].field = &table;
    std::thread([table] { OBASE_MARKED(free)(table); }).join();
    (void)runtime().reclaim_now();
    EXPECT_EQ(table[10].field, static_cast<void*>(&table));
    EXPECT_EQ(table[0].field, nullptr);
    OBASE_MARKED(delete)(kept, sizeof *kept, 0);
}

// What lies in memory that is used again may look like a managed address. A store that is seq_cst is an
// exchange, so it may be the first that comes.
TEST(marked, what_was_left_in_memory_is_not_taken_for_a_slot) {
    quiet_runtime<protocol>();
    marked<node> keeper{};
    keeper.set(make_node(1));
    marked<node> fresh{};
    {
        const operation one;
        fresh.set(keeper.get());
        const std::uint64_t word = fresh.word();
        OBASE_MARKED(forget)(&fresh, sizeof fresh);
        std::memcpy(&fresh.field, &word, sizeof word);
        EXPECT_FALSE(fresh.registered());
        (void)fresh.exchange(make_node(2));
        EXPECT_TRUE(fresh.registered());
        OBASE_MARKED(delete)(fresh.exchange(nullptr), sizeof(node), 0);
        OBASE_MARKED(delete)(keeper.exchange(nullptr), sizeof(node), 0);
    }
    OBASE_MARKED(forget)(&fresh, sizeof fresh);
    OBASE_MARKED(forget)(&keeper, sizeof keeper);
}

TEST(marked, nothing_is_forgotten_of_no_memory) {
    quiet_runtime<protocol>();
    OBASE_MARKED(forget)(nullptr, 0);
    marked<node> slot{};
    slot.set(make_node(1));
    OBASE_MARKED(forget)(&slot, 0);
    EXPECT_TRUE(slot.registered());
    const operation one;
    OBASE_MARKED(delete)(slot.exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(forget)(&slot, sizeof slot);
}

// From use_scarce_memory() on nothing can be mapped while this is set. In a child.
std::atomic<bool> short_of_memory{false};
void use_scarce_memory() {
    static obase::os::memory_calls calls = obase::os::real_memory_calls();
    calls.mmap = [](void* a, std::size_t n, int p, int f, int fd, off_t o) -> void* {
        if (short_of_memory) {
            errno = ENOMEM;
            return reinterpret_cast<void*>(~std::uintptr_t{0}); // MAP_FAILED
        }
        return obase::os::real_memory_calls().mmap(a, n, p, f, fd, o);
    };
    obase::os::use_memory_calls(&calls);
}

// Of a child of a program with threads: what these were about to free looks lost to LeakSanitizer.
[[noreturn]] int ends_at_once() { _exit(0); }

// A slot that could not be made for want of memory is made later.
TEST(marked, compare_exchange_makes_slots_that_could_not_be_made_before) {
    const auto child = run_in_child([] {
        quiet_runtime<protocol>();
        node* first = make_node(1); // this thread is known
        node* second = make_node(2);
        // Where there has been no slot yet.
        constexpr std::size_t bytes = std::size_t{256} << 20;
        auto* room = static_cast<char*>(obase::os::reserve(bytes, std::size_t{1} << 24));
        require(room != nullptr && obase::os::commit(room, bytes) == 0, "room for slots");
        marked<node>* slot = nullptr;
        use_scarce_memory();
        short_of_memory = true;
        for (std::size_t at = 0; at < bytes; at += std::size_t{1} << 24) {
            slot = reinterpret_cast<marked<node>*>(room + at);
            slot->set(first);
            if (!slot->registered()) break;
            slot->set(nullptr);
        }
        require(!slot->registered(), "there was to be no memory for it");
        short_of_memory = false;
        const operation one;
        node* seen = slot->get();
        require(slot->compare_exchange(seen, second), "no other thread is there");
        require(slot->registered(), "and now there was");
        return ends_at_once();
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Where the trace of a slot cannot be kept, all memory waits.
TEST(marked, without_room_for_traces_all_memory_waits) {
    const auto child = run_in_child([] {
        quiet_runtime<protocol>();
        (void)make_node(1); // this thread is known
        use_scarce_memory();
        // Where nothing is mapped, so that the directory knows nothing of it; nothing reads it.
        void* const far = reinterpret_cast<void*>(std::uintptr_t{0x123} << 32);
        const plain_memory box;
        const operation one;
        short_of_memory = true;
        OBASE_MARKED(destroyed)(far, 8);
        short_of_memory = false;
        std::thread([&box] { box.free(); }).join();
        (void)runtime().reclaim_now();
        for (std::size_t i = 0; i < words; ++i)
            require(box.word(i) == ~i, "memory that may have had slots waits");
        return ends_at_once();
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

#if !OBASE_THREAD_SANITIZER
// What has waited is freed, by a function that asks the runtime whose it is (compiler/driver/memory_functions.c), and does
// not wait again.
TEST(marked, without_room_for_traces_memory_waits_once) {
    const auto child = run_in_child([] {
        quiet_runtime<protocol>();
        (void)make_node(1); // this thread is known
        void* const memory[] = {::operator new(64, aligned_blocks::alignment),
                                ::operator new(64, aligned_blocks::alignment)};
        marked<node>* const slot = ::new (memory[0]) marked<node>{};
        slot->set(make_node(2));
        require(slot->registered() && obase_memory_owner(memory[0], &malloc_usable_size) != 0,
                "a slot is there");
        require(obase_memory_owner(memory[1], &malloc_usable_size) == 0, "and none there");
        use_scarce_memory();
        void* const far = reinterpret_cast<void*>(std::uintptr_t{0x123} << 32);
        aligned_blocks::watched = memory[1];
        {
            const operation one;
            short_of_memory = true;
            OBASE_MARKED(destroyed)(far, 8);
            short_of_memory = false;
            OBASE_MARKED(delete)(memory[1], 64,
                                 static_cast<std::size_t>(aligned_blocks::alignment));
            require(aligned_blocks::owner == -1, "it waits for the operation");
        }
        (void)runtime().reclaim_now();
        require(aligned_blocks::owner != -1, "it is freed");
        require(aligned_blocks::owner == 0, "and nobody's");
        return ends_at_once();
    });
    EXPECT_EQ(child.status, 0) << child.err;
}
#endif

#if !OBASE_THREAD_SANITIZER
// What need not wait is known by its address until it is freed, and not any longer.
TEST(marked, memory_that_lies_where_other_memory_was_freed_waits) {
    quiet_runtime<protocol>();
    void* const memory = ::operator new(64, aligned_blocks::alignment);
    aligned_blocks::keep = true;
    OBASE_MARKED(delete)(memory, 64, static_cast<std::size_t>(aligned_blocks::alignment));
    aligned_blocks::keep = false;
    const operation one;
    auto* const slot = ::new (memory) marked<node>{};
    slot->set(make_node(1));
    EXPECT_NE(obase_memory_owner(memory, &malloc_usable_size), 0);
    OBASE_MARKED(delete)(slot->exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(delete)(memory, 64, static_cast<std::size_t>(aligned_blocks::alignment));
}
#endif

// Slots and traces are found in all of a block, also behind a border of 16 MiB, and in no other.
TEST(marked, foreign_frees_find_slots_in_all_of_a_block) {
    constexpr std::size_t leaf_span = std::size_t{1} << 24;
    quiet_runtime<protocol>();
    char* const room = static_cast<char*>(obase::os::reserve(4 * leaf_span, leaf_span));
    ASSERT_TRUE(room != nullptr && obase::os::commit(room, 4 * leaf_span) == 0);
    char* const border = room + 2 * leaf_span;
    static std::size_t bytes;
    const auto owner = [](char* begin, char* end) {
        bytes = static_cast<std::size_t>(end - begin);
        return obase_memory_owner(begin, [](void*) { return bytes; });
    };
    for (const std::ptrdiff_t at : {-8, 0, 504, 512, 1 << 18, 1 << 20}) {
        auto* const slot = ::new (border + at) marked<node>{};
        const auto expect = [&](bool had, const char* when) {
            EXPECT_EQ(owner(border - 16, border + at + 8) != 0, had) << when << ' ' << at;
            EXPECT_EQ(owner(border + at, border + at + 8) != 0, had) << when << ' ' << at;
            EXPECT_EQ(owner(border + at - 500, border + at + 500) != 0, had) << when << ' ' << at;
            EXPECT_EQ(owner(border + at - 3000, border + at) != 0, false) << when << ' ' << at;
            EXPECT_EQ(owner(border + at + 8, border + (4 << 20)) != 0, false) << when << ' ' << at;
        };
        expect(false, "no slot yet");
        {
            const operation one;
            slot->set(make_node(1));
        }
        expect(true, "a slot");
        {
            const operation one;
            OBASE_MARKED(delete)(slot->exchange(nullptr), sizeof(node), 0);
            OBASE_MARKED(destroyed)(slot, sizeof *slot);
        }
        expect(true, "a trace");
        const protocol::scope one_scope;
        kind::engine::instance().directory().remove_traces(slot, slot + 1);
    }
    obase::os::release(room, 4 * leaf_span);
}

TEST(marked, memory_of_every_function) {
    quiet_runtime<protocol>();
    const operation one;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{40},
                                    std::size_t{4000}, std::size_t{100000}}) {
        void* all[] = {OBASE_MARKED(malloc)(bytes),
                       OBASE_MARKED(calloc)(bytes, 1),
                       OBASE_MARKED(new)(bytes),
                       OBASE_MARKED(new_nothrow)(bytes),
                       OBASE_MARKED(new_aligned)(bytes, 256),
                       OBASE_MARKED(new_array)(bytes),
                       OBASE_MARKED(aligned_alloc)(1024, bytes)};
        for (void* object : all) {
            ASSERT_NE(object, nullptr);
            EXPECT_TRUE(managed(object));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object) % 16, 0u);
            EXPECT_GE(OBASE_MARKED(usable_size)(object), bytes);
            std::memset(object, 0x5a, bytes);
        }
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all[4]) % 256, 0u);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all[6]) % 1024, 0u);
        OBASE_MARKED(free)(all[0]);
        OBASE_MARKED(free)(all[1]);
        OBASE_MARKED(delete)(all[2], bytes, 0);
        OBASE_MARKED(delete)(all[3], 0, 0);
        OBASE_MARKED(delete)(all[4], bytes, 256);
        OBASE_MARKED(delete_array)(all[5], bytes, 0);
        OBASE_MARKED(free)(all[6]);
    }
    auto* zeroed = static_cast<unsigned char*>(OBASE_MARKED(calloc)(10, 10));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(zeroed[i], 0);
    OBASE_MARKED(free)(zeroed);
    OBASE_MARKED(free)(nullptr);
    OBASE_MARKED(delete)(nullptr, 8, 0);
    EXPECT_EQ(OBASE_MARKED(usable_size)(nullptr), 0u);
}

// What is freed waits if it stood in for managed memory, and nothing else does for its sake.
TEST(marked, memory_of_alignments_that_no_heap_has_waits_alone) {
    quiet_runtime<protocol>();
    constexpr std::size_t alignment = 1 << 16;
    constexpr std::size_t bytes = 512;
    auto* object = static_cast<std::uint64_t*>(OBASE_MARKED(new_aligned)(bytes, alignment));
    ASSERT_FALSE(managed(object));
    std::fill_n(object, bytes / sizeof *object, 42);
    const plain_memory box;
    const operation one;
    std::thread([object, &box] {
        OBASE_MARKED(delete)(object, bytes, alignment);
        box.free();
    }).join();
    (void)runtime().reclaim_now();
    // malloc writes into what is free.
    EXPECT_EQ(object[1], 42U);
    if (!obase::heap::sanitized) {
        EXPECT_NE(box.word(1), ~std::size_t{1});
    }
}

TEST(marked, more_than_there_is_room_for) {
    if (obase::heap::sanitized)
        GTEST_SKIP() << "the sanitizers end a program that asks for so much";
    const auto child = run_in_child([] {
        quiet_runtime<protocol>();
        // The product wraps round to 16: an allocator that multiplies without looking would succeed.
        require(OBASE_MARKED(calloc)((SIZE_MAX >> 4) + 2, 16) == nullptr, "calloc");
        require(OBASE_MARKED(malloc)(PTRDIFF_MAX) == nullptr, "malloc");
        require(OBASE_MARKED(new_nothrow)(PTRDIFF_MAX) == nullptr, "new (std::nothrow)");
        try {
            (void)OBASE_MARKED(new)(PTRDIFF_MAX);
        } catch (const std::bad_alloc&) {
            return 0;
        }
        return 1;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST(marked, realloc_takes_slots_along) {
    quiet_runtime<protocol>();
    for (const bool managed_table : {false, true}) {
        auto* table = static_cast<marked<node>*>(
            managed_table ? OBASE_MARKED(calloc)(100, sizeof(marked<node>))
                          : std::calloc(100, sizeof(marked<node>)));
        for (std::uint64_t i = 0; i < 100; i += 3) table[i].set(make_node(i));
        collect(2); // some words are armed now
        {
            const operation one;
            auto* grown = static_cast<marked<node>*>(
                OBASE_MARKED(realloc)(table, 1000 * sizeof(marked<node>)));
            ASSERT_NE(grown, table);
            EXPECT_EQ(managed(grown), managed_table);
            for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(grown[i].registered(), i % 3 == 0);
            // Others may be looking at the old one. malloc would have written into it.
            (void)runtime().reclaim_now();
            for (std::uint64_t i = 1; i < 100; i += 3) EXPECT_EQ(table[i].word(), 0u);
            table = grown;
        }
        collect(2);
        const operation one;
        for (std::uint64_t i = 0; i < 100; ++i) {
            node* found = table[i].exchange(nullptr);
            ASSERT_EQ(found != nullptr, i % 3 == 0);
            if (found == nullptr) continue;
            EXPECT_TRUE(found->right() && found->key == i);
            OBASE_MARKED(delete)(found, sizeof *found, 0);
        }
        OBASE_MARKED(free)(table);
    }
    void* plain = OBASE_MARKED(realloc)(nullptr, 10);
    plain = OBASE_MARKED(realloc)(plain, 20);
    ASSERT_NE(plain, nullptr);
    std::free(plain);
}

// Sizes that are no multiple of a slot's: whole slots go along, the odd bytes behind them too, and
// nothing beyond the smaller of both sizes.
TEST(marked, realloc_of_odd_sizes_keeps_every_byte) {
    quiet_runtime<protocol>();
    constexpr std::size_t slots = 10, slot_bytes = sizeof(marked<node>);
    for (const bool managed_table : {false, true})
        for (std::size_t odd = 0; odd < slot_bytes; ++odd) {
            const std::size_t bytes = slots * slot_bytes + odd;
            auto* table = static_cast<char*>(managed_table ? OBASE_MARKED(calloc)(1, bytes)
                                                           : std::calloc(1, bytes));
            const auto slot_at = [&table](std::size_t i) {
                return reinterpret_cast<marked<node>*>(table + i * sizeof(marked<node>));
            };
            for (std::size_t i = 0; i < slots; i += 3) slot_at(i)->set(make_node(i));
            for (std::size_t k = 0; k < odd; ++k)
                table[slots * slot_bytes + k] = static_cast<char>('a' + k);
            collect(2);
            // Grows to an odd size, and shrinks to one, each far enough to be moved.
            for (const std::size_t next : {40 * slot_bytes + 3, slots * slot_bytes + odd}) {
                auto* const old = table;
                table = static_cast<char*>(OBASE_MARKED(realloc)(table, next));
                ASSERT_NE(table, nullptr);
                ASSERT_NE(table, old);
                for (std::size_t i = 0; i < slots; ++i)
                    ASSERT_EQ(slot_at(i)->registered(), i % 3 == 0) << odd << " " << i;
                for (std::size_t k = 0; k < odd; ++k)
                    ASSERT_EQ(table[slots * slot_bytes + k], static_cast<char>('a' + k)) << odd;
            }
            const operation one;
            for (std::size_t i = 0; i < slots; i += 3) {
                node* const found = slot_at(i)->exchange(nullptr);
                ASSERT_TRUE(found != nullptr && found->right() && found->key == i);
                OBASE_MARKED(delete)(found, sizeof *found, 0);
            }
            OBASE_MARKED(free)(table);
        }
}

// An array of records that grows by one at a time is moved a few times only, and one that shrinks a
// little stays; its slots beyond the end are none any more.
TEST(marked, realloc_leaves_room_to_grow) {
    quiet_runtime<protocol>();
    constexpr std::size_t most = 20000;
    auto* table = static_cast<marked<node>*>(std::calloc(1, sizeof(marked<node>)));
    table[0].set(make_node(0));
    unsigned moves = 0;
    for (std::size_t count = 2; count <= most; ++count) {
        auto* grown =
            static_cast<marked<node>*>(OBASE_MARKED(realloc)(table, count * sizeof(marked<node>)));
        ASSERT_NE(grown, nullptr);
        moves += grown != table ? 1 : 0;
        table = grown;
        std::memset(static_cast<void*>(&table[count - 1]), 0, sizeof(marked<node>));
    }
    EXPECT_LT(moves, 40u);
    EXPECT_TRUE(table[0].registered());

    table[most - 1].set(make_node(most - 1));
    node* const dropped = table[most - 1].get();
    auto* shrunk =
        static_cast<marked<node>*>(OBASE_MARKED(realloc)(table, (most - 1) * sizeof(marked<node>)));
    EXPECT_EQ(shrunk, table);
    EXPECT_FALSE(table[most - 1].registered());
    OBASE_MARKED(delete)(dropped, sizeof *dropped, 0);
    const operation one;
    node* const kept = shrunk[0].exchange(nullptr);
    EXPECT_TRUE(kept->right() && kept->key == 0);
    OBASE_MARKED(delete)(kept, sizeof *kept, 0);
    OBASE_MARKED(free)(shrunk);
}

// As pthread_exit() in C code leaves one. Were it not over, the collector would wait for it in vain.
TEST(marked, a_thread_that_ends_in_an_operation_ends_it) {
    quiet_runtime<protocol>();
    marked<node> slot{};
    slot.set(make_node(1));
    const std::uint64_t moved = moves_of(runtime().statistics());
    std::thread([&] {
        (void)OBASE_MARKED(enter)();
        slot.set(slot.get());
        (void)slot.get();
    }).join();
    collect(2);
    EXPECT_GT(moves_of(runtime().statistics()), moved);
    const operation one;
    OBASE_MARKED(delete)(slot.exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(forget)(&slot, sizeof slot);
}

// As they are where no destructor runs: in C, after pthread_exit() and after pthread_cancel().
TEST(marked, slots_in_the_frames_of_a_thread_that_ends_are_none_any_more) {
    quiet_runtime<protocol>();
    for (const bool told : {false, true}) {
        const marked<node>* left = nullptr;
        node* object = nullptr;
        std::thread([&] {
            __asm__ volatile(""); // or ASan would have the slot elsewhere: the passes do the same
            marked<node> slot{};
            slot.set(object = make_node(1));
            left = &slot;
            EXPECT_TRUE(slot.registered());
            if (!told) return;
            OBASE_MARKED(thread_ends)();
            EXPECT_FALSE(slot.registered());
        }).join();
        EXPECT_FALSE(left->registered());
        OBASE_MARKED(delete)(object, sizeof *object, 0);
    }
}

// An operation ends with its outermost scope, whatever opened that.
TEST(marked, operations_nest) {
    quiet_runtime<protocol>();
    {
        const operation outer;
        {
            const operation inner;
        }
        EXPECT_TRUE(protocol::in_scope());
        {
            const protocol::scope inner;
        }
        EXPECT_TRUE(protocol::in_scope());
    }
    EXPECT_FALSE(protocol::in_scope());
}

} // namespace
