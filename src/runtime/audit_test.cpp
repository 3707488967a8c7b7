// SPDX-License-Identifier: MIT
//
// The audit from a program's side: each scenario is a process of its own, which ends as the program would, with the
// audit's words on standard error. The functions of obase/marked.h are called as the passes have them called.
#include "audit/audit.hpp"
#include "audit/mark_counts.hpp"
#include "audit/places.hpp"

#include <obase/marked.h>

#include <gtest/gtest.h>
#include <malloc.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

// As in a unit of the passes: before main, with OBASE_AUDIT in the test's environment.
[[gnu::constructor(101)]] void tell_runtime() { obase_marked_unit("arming", "audit_test.cpp"); }

struct operation {
    std::uint64_t outer = obase_marked_enter();
    operation() = default;
    ~operation() { obase_marked_leave(outer); }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
};

struct node {
    void* next; // marked
    long key;
    void* plain; // not marked
};

node* load(void** slot) { return static_cast<node*>(obase_marked_load(slot)); }
node* make(long key) {
    auto* n = static_cast<node*>(obase_marked_malloc(sizeof(node)));
    *n = {nullptr, key, nullptr};
    return n;
}
void push(void** head, long key) {
    const operation one;
    node* n = make(key);
    obase_marked_store(&n->next, obase_marked_load(head));
    obase_marked_store(head, n);
}
std::vector<node*> all_of(void** head) {
    const operation one;
    std::vector<node*> found;
    for (node* n = load(head); n != nullptr; n = load(&n->next)) found.push_back(n);
    return found;
}
void end_some_operations(int count = 3) {
    for (int i = 0; i < count; ++i) const operation one;
}

// In static storage, as a program's.
void* head = nullptr;
void* other = nullptr;
void* volatile kept = nullptr;

TEST(audit, an_address_that_outlives_its_operation_faults_where_it_is_used) {
    ASSERT_TRUE(obase::audit::on());
    const auto scenario = [] {
        push(&head, 7);
        {
            const operation one;
            kept = obase_marked_load(&head);
        }
        std::exit(static_cast<int>(static_cast<node*>(kept)->key));
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(1),
                "error: stale-use(.|\n)*object: 32 bytes, made at (.|\n)*let out by: the operation "
                "at(.|\n)*held by: variable (.|\n)*kept");
}

TEST(audit, all_of_a_list_moves_at_each_end) {
    const auto scenario = [] {
        for (long key = 0; key < 300; ++key) push(&head, key);
        const std::vector<node*> before = all_of(&head);
        const std::vector<node*> after = all_of(&head);
        int same = 0;
        for (std::size_t i = 0; i < 300; ++i) same += before[i] == after[i];
        std::exit(before.size() == 300 && after.size() == 300 ? same : 255);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), " 0 errors, 0 suspected");
}

TEST(audit, longer_lists_move_in_turns) {
    const auto scenario = [] {
        for (long key = 0; key < 3000; ++key) push(&head, key);
        const std::vector<node*> before = all_of(&head);
        end_some_operations(20);
        const std::vector<node*> after = all_of(&head);
        int same = 0;
        for (std::size_t i = 0; i < 3000; ++i) same += before[i] == after[i];
        std::exit(after.size() == 3000 ? std::min(same, 100) : 255);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), " 0 errors");
}

TEST(audit, an_object_in_two_fields_is_reported_and_stays) {
    const auto scenario = [] {
        push(&head, 7);
        {
            const operation one;
            obase_marked_store(&other, obase_marked_load(&head));
        }
        end_some_operations();
        const operation one;
        std::exit(load(&head) == load(&other) && load(&other)->key == 7 ? 0 : 3);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(1), "error: two-fields(.|\n)* 1 errors");
}

// A second base lies there, say. Its neighbour is no part of what moves.
TEST(audit, an_address_inside_of_an_object_stays) {
    const auto scenario = [] {
        push(&head, 7);
        push(&head, 8);
        const char* inside = nullptr;
        {
            const operation one;
            inside = static_cast<char*>(obase_marked_load(&head)) + 8;
            obase_marked_store(&other, const_cast<char*>(inside));
            obase_marked_store(&head, nullptr);
        }
        end_some_operations();
        const operation one;
        std::exit(obase_marked_load(&other) == inside ? 0 : 3);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), " 0 errors");
}

// While an operation runs an object may be in two.
TEST(audit, an_object_that_goes_from_field_to_field_is_fine) {
    const auto scenario = [] {
        push(&head, 7);
        for (int i = 0; i < 100; ++i) {
            const operation one;
            void* const from = i % 2 == 0 ? &head : &other;
            void* const to = i % 2 == 0 ? &other : &head;
            obase_marked_store(static_cast<void**>(to),
                               obase_marked_load(static_cast<void**>(from)));
            obase_marked_store(static_cast<void**>(from), nullptr);
        }
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), " 0 errors, 0 suspected");
}

TEST(audit, a_field_that_holds_what_was_freed_is_reported) {
    const auto scenario = [] {
        push(&head, 7);
        {
            const operation one;
            obase_marked_free(obase_marked_load(&head));
        }
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(1), "error: freed-in-field(.|\n)*freed at ");
}

// Its memory is not used again while anything is known of it.
TEST(audit, a_use_after_free_faults) {
    const auto scenario = [] {
        for (long key = 0; key < 40; ++key) push(&head, key);
        node* first = nullptr;
        {
            const operation one;
            first = load(&head);
            obase_marked_store(&head, obase_marked_load(&first->next));
            obase_marked_free(first);
        }
        end_some_operations();
        std::exit(static_cast<int>(first->key));
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(1), "error: stale-use(.|\n)*made at ");
}

TEST(audit, a_word_that_is_taken_for_an_address_is_reported) {
    const auto scenario = [] {
        push(&head, 7);
        void* volatile* const raw = &head;
        std::exit(static_cast<int>(static_cast<node*>(*raw)->key));
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(1), "error: unconverted-access");
}

TEST(audit, an_address_in_a_field_without_mark_is_suspected) {
    const auto scenario = [] {
        push(&head, 1);
        push(&head, 2);
        {
            const operation one;
            node* n = load(&head);
            n->plain = obase_marked_load(&n->next);
        }
        end_some_operations(5);
        std::exit(0);
    };
    EXPECT_EXIT(
        scenario(), testing::ExitedWithCode(0),
        "suspected: kept-address(.|\n)*the object's own memory, at offset 16 of 32 bytes(.|\n)* "
        "0 errors, 1 suspected");
}

TEST(audit, nothing_is_said_while_another_operation_is_open) {
    const auto scenario = [] {
        push(&head, 7);
        std::uint64_t outer = 0;
        node* seen = nullptr;
        std::thread holder([&] {
            outer = obase_marked_enter();
            seen = load(&head);
            std::thread([] {
                const operation one; // two fields, but not yet for good
                obase_marked_store(&other, obase_marked_load(&head));
            }).join();
            if (seen->key != 7) std::_Exit(9);
            obase_marked_store(&other, nullptr);
            obase_marked_leave(outer);
        });
        holder.join();
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0),
                " 0 errors, 0 suspected(.|\n)*skipped: [1-9]");
}

TEST(audit, an_operation_that_was_left_by_a_jump_ends_where_it_lands) {
    const auto scenario = [] {
        push(&head, 7);
        static std::jmp_buf back;
        const volatile std::uint64_t depth = obase_marked_depth();
        if (setjmp(back) == 0) {
            static_cast<void>(obase_marked_enter());
            kept = obase_marked_load(&head);
            std::longjmp(back, 1);
        }
        obase_marked_returned(depth);
        end_some_operations();
        const operation one;
        std::exit(obase_marked_load(&head) != kept ? 0 : 3); // it has moved
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), "note: left-by-longjmp(.|\n)* 0 errors");
}

// setjmp in a helper that an operation calls: the operation goes on.
TEST(audit, a_jump_inside_of_an_operation_does_not_end_it) {
    const auto scenario = [] {
        push(&head, 7);
        const operation one;
        node* const n = load(&head);
        const std::uint64_t depth = obase_marked_depth();
        obase_marked_returned(depth);
        std::exit(obase_marked_depth() != 0 && n->key == 7 ? 0 : 3);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), " 0 errors");
}

TEST(audit, the_programs_own_handler_gets_its_faults) {
    const auto scenario = [] {
        std::signal(SIGSEGV, [](int) { std::_Exit(42); });
        push(&head, 7);
        end_some_operations();
        *reinterpret_cast<volatile int*>(std::uintptr_t{16}) = 1; // NOLINT
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(42), "");
}

TEST(audit, an_operation_that_never_ends_is_named) {
    const auto scenario = [] {
        push(&head, 7);
        (void)obase_marked_enter();
        push(&head, 8);
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0),
                "note: never-ended(.|\n)*at: (.|\n)* 0 errors");
}

// The kernel's own frame, and little else.
TEST(audit, a_handler_on_a_small_stack_is_no_hindrance) {
    const auto scenario = [] {
        const std::size_t room = obase::heap::round_up(
            static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)) + 1024, obase::os::page_size);
        auto* const memory = static_cast<char*>(obase::os::reserve(2 * room, obase::os::page_size));
        if (memory == nullptr || obase::os::commit(memory + room, room) != 0) std::exit(9);
        const stack_t small{memory + room, 0, room};
        struct sigaction own{};
        own.sa_handler = [](int) { std::_Exit(42); };
        own.sa_flags = SA_ONSTACK;
        if (sigaltstack(&small, nullptr) != 0 || sigaction(SIGSEGV, &own, nullptr) != 0)
            std::exit(9);
        push(&head, 7);
        {
            const operation one;
            kept = obase_marked_load(&head);
        }
        std::exit(static_cast<int>(static_cast<node*>(kept)->key));
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(1),
                "error: stale-use(.|\n)*held by: variable (.|\n)*kept");
}

// Behind mappings of which little is touched: the audit's own are such, and tables of a program.
TEST(audit, an_address_behind_untouched_memory_is_suspected) {
    const auto scenario = [] {
        constexpr std::size_t large = std::size_t{512} << 20;
        auto* const memory = static_cast<char*>(obase::os::reserve(large, obase::os::page_size));
        if (memory == nullptr || obase::os::commit(memory, large) != 0) std::exit(9);
        push(&head, 7);
        const std::size_t touched = large - obase::os::page_size;
        for (int i = 0; i < 500; ++i) {
            const operation one;
            if (i % 200 == 0)
                *reinterpret_cast<void**>(memory + touched) = obase_marked_load(&head);
        }
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0),
                "suspected: kept-address(.|\n)*held by: memory at ");
}

// What an operation left beside the fields of a table is still in the memory when that has been freed.
TEST(audit, memory_with_fields_that_was_freed_keeps_nothing) {
    const auto scenario = [] {
        constexpr std::size_t some = 500;
        auto** const table = static_cast<void**>(std::calloc(2 * some, sizeof(void*)));
        {
            const operation one;
            for (std::size_t i = 0; i < some; ++i) {
                push(table + i, static_cast<long>(i));
                push(&head, static_cast<long>(i));
                table[some + i] = load(&head);
            }
            obase_marked_free(table);
        }
        end_some_operations(500);
        std::exit(0);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), " 0 suspected");
}

TEST(audit, memory_that_comes_back_from_elsewhere_is_freed_right) {
    const auto scenario = [] {
        push(&head, 7);
        void* grown = nullptr;
        {
            const operation one;
            void* const n = obase_marked_load(&head);
            obase_marked_store(&head, nullptr);
            const int owner = obase_memory_owner(n, &malloc_usable_size);
            if (owner == 0 || obase_memory_managed_size(n) < sizeof(node)) std::exit(4);
            grown = obase_memory_realloc(owner, n, 200, nullptr);
            if (static_cast<node*>(grown)->key != 7) std::exit(5);
            obase_memory_free(obase_memory_owner(grown, &malloc_usable_size), grown, nullptr);
        }
        void* const plain = std::malloc(10);
        std::exit(obase_memory_owner(plain, &malloc_usable_size) == 0 &&
                          obase_memory_managed_size(plain) == 0
                      ? 0
                      : 6);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(0), "note: foreign-free(.|\n)* 0 errors");
}

TEST(audit, the_programs_status_goes_before) {
    const auto scenario = [] {
        push(&head, 7);
        {
            const operation one;
            obase_marked_store(&other, obase_marked_load(&head));
        }
        std::exit(5);
    };
    EXPECT_EXIT(scenario(), testing::ExitedWithCode(5), "error: two-fields");
}

#define TEXT_OF(x) #x
#define LINE_TEXT(x) TEXT_OF(x)
// The function's line is the site's.
// clang-format off
[[gnu::noinline]] const void* here() { __asm__ volatile(".pushsection .obase.sites,\"\",@progbits\n.ascii \"unit\\taudit_test.cpp\\nfield\\t0\\tnode::next\\tvoid *\\tsome.h:12\\nsite\\tstore\\t0\\tsrc/runtime/audit_test.cpp\\t" LINE_TEXT(__LINE__) "\\t0\\n\"\n.popsection"); return __builtin_return_address(0); }
// clang-format on

TEST(places, an_address_has_a_function_a_line_and_a_field) {
    const void* const at = here();
    const unsigned line = __LINE__ - 1;
    obase::audit::source_place found;
    obase::audit::find_source(at, true, found);
    EXPECT_EQ(found.line, line) << found.file;
    EXPECT_TRUE(std::string(found.file).ends_with("audit_test.cpp")) << found.file;
    EXPECT_NE(std::string(found.function).find("TestBody"), std::string::npos) << found.function;
    EXPECT_STREQ(found.field, "");

    obase::audit::find_source(reinterpret_cast<const void*>(&here), false, found);
    EXPECT_STREQ(found.field, "node::next") << found.file << ":" << found.line;
    EXPECT_STREQ(found.type, "void *");
    EXPECT_STREQ(found.declared, "some.h:12");

    obase::audit::find_source(&found, false, found); // no code
    EXPECT_EQ(found.line, 0U);
}

TEST(places, a_variable_is_named_with_the_offset) {
    static long table[10];
    char name[100];
    std::size_t offset = 0, bytes = 0;
    ASSERT_TRUE(obase::audit::find_variable(&table[3], name, sizeof name, &offset, &bytes));
    EXPECT_EQ(bytes, sizeof table);
    EXPECT_NE(std::string(name).find("table"), std::string::npos) << name;
    EXPECT_EQ(offset, 24U);
    int local = 0;
    EXPECT_FALSE(obase::audit::find_variable(&local, name, sizeof name, &offset));
}

// A store into a marked variable names no field.
TEST(mark_counts, a_variable_stands_for_the_field) {
    static void* first[3];
    static void* second[3];
    auto counts = std::make_unique<obase::audit::mark_counts>();
    void* nowhere = nullptr;
    int place = 0; // no code
    for (void*& slot : first) counts->add(&place, &slot, 16, true, false);
    counts->add(&place, &second[2], 16, false, false);
    counts->add(&place, &nowhere, 16, false, false);
    std::vector<std::pair<std::string, std::uint64_t>> rows;
    counts->for_each([&](const auto& row) { rows.emplace_back(row.field, row.objects); });
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_NE(rows[0].first.find("first"), std::string::npos) << rows[0].first;
    EXPECT_EQ(rows[0].second, 3u);
    EXPECT_NE(rows[1].first.find("second"), std::string::npos) << rows[1].first;
    EXPECT_EQ(rows[1].second, 1u);
    EXPECT_EQ(rows[2].first, "of which the field is not known");
}

class arena_test : public testing::Test {
  protected:
    void SetUp() override {
        base_ = static_cast<char*>(obase::os::reserve(bytes, obase::audit::arenas::unit));
        ASSERT_TRUE(all_.create(base_, bytes));
    }
    static constexpr std::size_t bytes = std::size_t{256} << 20;
    char* base_ = nullptr;
    obase::audit::arenas all_;
};

TEST_F(arena_test, an_arena_ends_with_its_last_object) {
    auto* a = static_cast<char*>(all_.allocate(100, 16, nullptr));
    auto* b = static_cast<char*>(all_.allocate(100, 64, nullptr));
    a[99] = b[99] = 1;
    EXPECT_EQ(all_.size_of(a), 112U);
    EXPECT_EQ(all_.size_of(a + 16), 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 64, 0U);
    all_.close();
    all_.free(a);
    a[99] = 2; // the other one lives
    EXPECT_EQ(all_.dead(), 0U);
    all_.moved_away(b, a);
    EXPECT_EQ(all_.dead(), 1U);
    EXPECT_DEATH(a[99] = 3, "");
    const char* begin = nullptr;
    const obase::audit::record* r = all_.find(b + 99, &begin);
    ASSERT_NE(r, nullptr);
    EXPECT_EQ(begin, b);
    EXPECT_EQ(r->state, obase::audit::life::moved);
    EXPECT_EQ(all_.find(b + 150, &begin), nullptr);
}

TEST_F(arena_test, what_is_freed_twice_counts_once) {
    void* a = all_.allocate(100, 16, nullptr);
    void* b = all_.allocate(100, 16, nullptr);
    all_.close();
    all_.free(a);
    all_.free(a);
    EXPECT_EQ(all_.dead(), 0U);
    *static_cast<char*>(b) = 1;
}

TEST_F(arena_test, large_objects_have_arenas_of_their_own) {
    auto* a = static_cast<char*>(all_.allocate(200000, 4096, nullptr));
    ASSERT_NE(a, nullptr);
    std::memset(a, 1, 200000);
    const char* begin = nullptr;
    ASSERT_NE(all_.find(a + 199999, &begin), nullptr);
    EXPECT_EQ(begin, a);
    all_.free(a);
    EXPECT_EQ(all_.dead(), 1U);
    EXPECT_DEATH(a[199999] = 3, "");
}

TEST(arenas, an_object_may_be_larger_than_a_number_of_32_bits) {
    constexpr std::size_t room = std::size_t{6} << 30;
    constexpr std::size_t size = std::size_t{5} << 30;
    obase::audit::arenas all;
    auto* const base = static_cast<char*>(obase::os::reserve(room, obase::audit::arenas::unit));
    ASSERT_TRUE(base != nullptr && all.create(base, room));
    auto* const object = static_cast<char*>(all.allocate(size, 16, nullptr));
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(all.size_of(object), size);
    const char* begin = nullptr;
    ASSERT_NE(all.find(object + size - 1, &begin), nullptr);
    EXPECT_EQ(begin, object);
    EXPECT_EQ(all.find(object + size, &begin), nullptr);
}

// Other threads allocate in the same arena while a copy is made and undone.
TEST_F(arena_test, what_is_undone_leaves_its_place_empty) {
    auto* const undone = static_cast<char*>(all_.allocate(100, 16, nullptr));
    auto* const second = static_cast<char*>(all_.allocate(100, 16, nullptr));
    std::memset(undone, 1, 100);
    all_.undo(undone);
    EXPECT_EQ(all_.size_of(undone), 0U);
    auto* const third = static_cast<char*>(all_.allocate(100, 16, nullptr));
    EXPECT_TRUE(third >= second + 112 || second >= third + 112) << "two objects at one place";
    EXPECT_EQ(third[0], 0) << "fresh memory is zero";
    all_.free(second);
    all_.undo(third);
    EXPECT_EQ(all_.dead(), 0U) << "more may come";
    all_.close();
    EXPECT_EQ(all_.dead(), 1U);
    // Of an arena that is full, the last one.
    void* const last = all_.allocate(100, 16, nullptr);
    all_.close();
    all_.undo(last);
    EXPECT_EQ(all_.dead(), 2U);
}

// While the auditor copies, another thread may free what it copies.
TEST_F(arena_test, what_dies_may_be_kept_readable) {
    char* objects[2];
    for (char*& object : objects) {
        object = static_cast<char*>(all_.allocate(100, 16, nullptr));
        object[99] = 1;
        all_.close();
    }
    all_.keep_dead();
    for (char* object : objects) all_.free(object);
    EXPECT_EQ(all_.dead(), 0U);
    for (const char* object : objects) EXPECT_EQ(object[99], 1);
    all_.bury_dead();
    EXPECT_EQ(all_.dead(), 2U);
    for (char* object : objects) EXPECT_DEATH(object[99] = 2, "");
    all_.bury_dead();
    EXPECT_EQ(all_.dead(), 2U);
}

// Addresses come round as late as can be; of those that went first nothing is known by then.
TEST_F(arena_test, the_range_goes_round) {
    std::vector<void*> first;
    const std::size_t count = bytes / obase::audit::arenas::unit - 1; // the first is never used
    void* a = all_.allocate(64, 16, nullptr);
    const void* const began = a;
    const char* begin = nullptr;
    for (std::size_t i = 0; i < count - 1; ++i) {
        all_.close();
        all_.free(a);
        EXPECT_NE(all_.find(a, &begin), nullptr) << i;
        a = all_.allocate(64, 16, nullptr);
        ASSERT_NE(a, nullptr) << i;
        ASSERT_NE(a, began) << i;
    }
    EXPECT_EQ(all_.find(began, &begin), nullptr) << "dropped from the quarantine";
    bool again = false;
    for (std::size_t i = 0; i < count && !again; ++i) {
        all_.close();
        all_.free(a);
        a = all_.allocate(64, 16, nullptr);
        ASSERT_NE(a, nullptr) << i;
        again = a == began;
    }
    EXPECT_TRUE(again);
}

} // namespace
