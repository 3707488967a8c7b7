// SPDX-License-Identifier: MIT
//
// What every index does, one suite for all of them under all protocols: against std::map, against a
// witness and a linearizability checker while a collector never rests, with no memory, and what a
// search touches.
//
// Compiled once. CMakeLists.txt links an executable for each index, CLASS_index_test; in which
// subject_of_index_test() says what is tested.
#include "crestdb/subject_of_index_test.hpp"

#include "testing/heap_shortage.hpp"
#include "testing/linearizability.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"
#include "testing/witness.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using obase::testing::key_operation;

// No object of the protocol moves while it exists.
class nothing_moves {
  public:
    explicit nothing_moves(const crestdb::store_kind& kind) {
        if (std::string_view(kind.protocol) == "atc")
            atc_.emplace();
        else
            arming_.emplace(); // the scope of plain, too
    }

  private:
    std::optional<obase::scope> arming_;
    std::optional<obase::basic_scope<obase::atc>> atc_;
};

class index_of : public ::testing::TestWithParam<crestdb::store_kind> {
  public:
    const crestdb::store_kind& kind = GetParam();
    // Under audit (docs/audit.md) objects move too, but no collector moves or counts them.
    const bool audited = std::getenv("OBASE_AUDIT") != nullptr;
    const bool moves = std::string_view(kind.protocol) != "none" && !audited;
    obase::runtime& runtime = std::string_view(kind.protocol) == "atc"
                                  ? obase::testing::quiet_runtime<obase::atc>()
                                  : obase::testing::quiet_runtime<obase::arming>();

    std::unique_ptr<crestdb::store> open(std::size_t expected_keys) const {
        return kind.open(expected_keys);
    }
    bool ordered() const { return kind.ordered; }

    // A thread that collects without pause until the guard ends; none where nothing moves.
    class collecting {
      public:
        explicit collecting(const index_of& test) {
            if (test.moves) {
                thread_ = std::thread([this, &r = test.runtime] {
                    while (!stop_) r.collect_now();
                });
            }
        }
        ~collecting() {
            stop_ = true;
            if (thread_.joinable()) thread_.join();
        }

      private:
        std::atomic<bool> stop_{false};
        std::thread thread_;
    };

    // All that was retired is freed, and everything is armed (or moved and armed).
    void collect_until_idle() {
        while (runtime.drain(1.0).why != obase::drain_end::done) {
        }
        if (moves) {
            for (int i = 0; i < 2; ++i)
                ASSERT_EQ(runtime.collect_now(), obase::collect_result::done);
        }
    }
    std::uint64_t live_objects() const {
        std::uint64_t sum = 0;
        const obase::statistics now = runtime.statistics();
        for (unsigned c = 0; c < now.heap_count; ++c) sum += now.heaps[c].live_objects;
        return sum;
    }
};

INSTANTIATE_TEST_SUITE_P(, index_of, ::testing::ValuesIn(crestdb::subject_of_index_test()),
                         [](const auto& test) {
                             std::string text =
                                 std::string(test.param.index) + "_" + test.param.protocol;
                             std::replace(text.begin(), text.end(), '-', '_');
                             return text;
                         });

std::uint64_t next_random(std::uint64_t& x) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

std::string read(const crestdb::store& index, std::string_view key) {
    std::string copy = "(absent)";
    const bool there = index.get(key, [&](std::string_view value) { copy = value; });
    EXPECT_EQ(there, index.contains(key));
    return copy;
}

using pairs = std::vector<std::pair<std::string, std::string>>;

pairs scan(const crestdb::store& index, std::string_view from, std::size_t limit) {
    pairs found;
    const std::size_t n =
        index.scan(from, limit, [&](std::string_view key, std::string_view value) {
            found.emplace_back(key, value);
        });
    EXPECT_EQ(n, found.size());
    return found;
}

// 30 bytes, the first 26 of them the same for all below 10000: longer than any inline head.
std::string long_key(std::size_t i) {
    std::string digits = std::to_string(i);
    return "user" + std::string(26 - digits.size(), '0') + digits;
}

TEST_P(index_of, keeps_what_it_is_given) {
    const auto index = open(16);
    EXPECT_FALSE(index->contains("a"));
    EXPECT_TRUE(index->put("a", "1"));
    EXPECT_FALSE(index->put("a", "2"));
    EXPECT_FALSE(index->update("b", "x"));
    EXPECT_TRUE(index->update("a", "3"));
    EXPECT_EQ(read(*index, "a"), "3");
    EXPECT_EQ(index->size(), 1u);
    EXPECT_TRUE(index->erase("a"));
    EXPECT_FALSE(index->erase("a"));
    EXPECT_FALSE(index->erase("b"));
    EXPECT_EQ(read(*index, "a"), "(absent)");
    EXPECT_TRUE(index->put("", ""));
    EXPECT_EQ(read(*index, ""), "");
    const std::string large(65536, '\xff');
    EXPECT_TRUE(index->put(large, large));
    EXPECT_EQ(read(*index, large), large);
    EXPECT_EQ(index->size(), 2u);
}

TEST_P(index_of, modifies) {
    const auto index = open(16);
    EXPECT_FALSE(index->modify("a", [](std::string_view) -> std::string_view { throw 1; }));
    index->put("a", "one");
    std::string buffer;
    EXPECT_TRUE(index->modify("a", [&](std::string_view old) -> std::string_view {
        return buffer = std::string(old) + " and two";
    }));
    EXPECT_EQ(read(*index, "a"), "one and two");
    // A part of the old value itself.
    EXPECT_TRUE(index->modify("a", [](std::string_view old) { return old.substr(4, 3); }));
    EXPECT_EQ(read(*index, "a"), "and");
    EXPECT_THROW(index->modify("a", [](std::string_view) -> std::string_view { throw 1; }), int);
    EXPECT_EQ(read(*index, "a"), "and");
    EXPECT_EQ(index->size(), 1u);
}

TEST_P(index_of, edits_in_place) {
    const auto index = open(16);
    const auto capital = [](std::span<char> value) { value[0] = 'V'; };
    EXPECT_FALSE(index->edit_in_place("a", capital));
    index->put("a", "value");
    index->put("b", "value");
    const void* before = nullptr;
    const void* after = nullptr;
    const nothing_moves meanwhile(kind);
    index->get("a", [&](std::string_view v) { before = v.data(); });
    EXPECT_TRUE(index->edit_in_place("a", capital));
    index->get("a", [&](std::string_view v) { after = v.data(); });
    EXPECT_EQ(before, after);
    EXPECT_EQ(read(*index, "a"), "Value");
    EXPECT_EQ(read(*index, "b"), "value");
}

// use() and its like may call the index; scan() may erase what it is shown.
TEST_P(index_of, may_be_called_from_within) {
    const auto index = open(64);
    for (std::size_t i = 0; i < 40; ++i) index->put(long_key(i), "x");
    for (std::size_t i = 0; i < 40; i += 2) {
        index->get(long_key(i), [&](std::string_view) { index->put(long_key(i + 1000), "y"); });
        EXPECT_TRUE(index->modify(long_key(i), [&](std::string_view old) {
            index->erase(long_key(i + 1));
            return old;
        }));
    }
    EXPECT_EQ(index->size(), 40u);
    if (ordered()) {
        EXPECT_EQ(index->scan("", 1000,
                              [&](std::string_view key, std::string_view) {
                                  EXPECT_TRUE(index->erase(std::string(key)));
                              }),
                  40u);
        EXPECT_EQ(index->size(), 0u);
    }
}

// A single bucket, too: every operation walks the same list, and deleted nodes are neighbours.
TEST_P(index_of, agrees_with_a_map_while_objects_move) {
    for (const std::size_t expected : {1u, 64u}) {
        const auto index = open(expected);
        std::map<std::string, std::string> model;
        std::uint64_t x = 42;
        for (int step = 0; step < 6000; ++step) {
            next_random(x);
            const std::string key = std::to_string(x % 97);
            const std::string value(x >> 32 & 127, static_cast<char>('a' + x % 26));
            const bool there = model.count(key) != 0;
            switch (x >> 16 & 7) {
            case 0:
            case 1:
                ASSERT_EQ(index->put(key, value), model.insert_or_assign(key, value).second);
                break;
            case 2:
            case 3:
                ASSERT_EQ(index->erase(key), model.erase(key) == 1);
                break;
            case 4:
                if (there) model[key] = value;
                ASSERT_EQ(index->update(key, value), there);
                break;
            case 5:
                if (there) model[key] += value;
                {
                    std::string made;
                    ASSERT_EQ(index->modify(key,
                                            [&](std::string_view old) -> std::string_view {
                                                return made = std::string(old) + value;
                                            }),
                              there);
                }
                break;
            case 6:
                if (ordered()) {
                    const std::size_t limit = x >> 40 & 15;
                    const auto from = model.lower_bound(key);
                    pairs expected_pairs;
                    for (auto i = from; i != model.end() && expected_pairs.size() < limit; ++i)
                        expected_pairs.emplace_back(*i);
                    ASSERT_EQ(scan(*index, key, limit), expected_pairs);
                    break;
                }
                [[fallthrough]];
            default:
                ASSERT_EQ(read(*index, key), there ? model[key] : "(absent)");
            }
            if (step % 500 == 0 && moves) runtime.collect_now();
            ASSERT_EQ(index->size(), model.size());
        }
        for (const auto& [key, value] : model) ASSERT_EQ(read(*index, key), value);
    }
}

// Keys that are alike in ways that matter to some index: empty, prefixes of each other, zeros at
// the end (heads are zero padded), bytes that look negative, ends around the sizes of heads and
// words, 64 KiB.
std::string adversarial_key(unsigned choice) {
    static const std::vector<std::string> keys = [] {
        std::vector<std::string> k{""};
        for (const char c : {'\0', '\1', 'u', '\x7f', '\x80', '\xff'})
            for (const std::size_t n : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 23u, 24u, 25u, 31u, 33u})
                for (const char last : {'\0', '\xff'}) {
                    k.push_back(std::string(n, c));
                    k.push_back(std::string(n, c) + last);
                }
        for (const char last : {'\0', 'a', '\xff'}) k.push_back(std::string(65535, 'L') + last);
        k.push_back(std::string(65536, '\0'));
        for (std::size_t i = 0; i < 20; ++i) k.push_back(long_key(i * 7));
        return k;
    }();
    return keys[choice % keys.size()];
}

TEST_P(index_of, agrees_with_a_map_on_keys_that_are_alike) {
    EXPECT_TRUE(rc::check([this] {
        const auto few = *rc::gen::inRange(1u, 200u); // of the keys, so that they meet again
        const auto offset = *rc::gen::inRange(0u, 400u);
        const auto steps = *rc::gen::scale(4, rc::gen::arbitrary<std::vector<std::uint32_t>>());
        const auto free_keys = *rc::gen::arbitrary<std::vector<std::string>>();
        const auto index = open(32);
        std::map<std::string, std::string> model;
        std::uint64_t x = 88172645463325252u + few;
        for (const std::uint32_t seed : steps) {
            x ^= seed;
            next_random(x);
            const std::string key =
                !free_keys.empty() && (x >> 60) < 4
                    ? free_keys[(x >> 8) % free_keys.size()]
                    : adversarial_key(offset + static_cast<unsigned>((x >> 8) % few));
            const std::string value = (x >> 30 & 31) == 0
                                          ? std::string(65536, static_cast<char>(x))
                                          : std::string(x >> 40 & 63, static_cast<char>(x));
            switch (x >> 50 & 7) {
            case 0:
            case 1:
            case 2:
                RC_ASSERT(index->put(key, value) == model.insert_or_assign(key, value).second);
                break;
            case 3:
            case 4:
                RC_ASSERT(index->erase(key) == (model.erase(key) == 1));
                break;
            case 5:
                if (ordered()) {
                    const std::size_t limit = x >> 40 & 63;
                    pairs expected;
                    for (auto i = model.lower_bound(key);
                         i != model.end() && expected.size() < limit; ++i)
                        expected.emplace_back(*i);
                    RC_ASSERT(scan(*index, key, limit) == expected);
                }
                break;
            case 6:
                if ((x >> 20 & 15) == 0 && moves) runtime.collect_now();
                break;
            default: {
                const auto found = model.find(key);
                RC_ASSERT(read(*index, key) == (found != model.end() ? found->second : "(absent)"));
            }
            }
            RC_ASSERT(index->size() == model.size());
        }
        for (const auto& [key, value] : model) RC_ASSERT(read(*index, key) == value);
        if (ordered()) RC_ASSERT(scan(*index, "", SIZE_MAX) == pairs(model.begin(), model.end()));
    }));
}

// Eight bytes of a number: in the order of the numbers, or as this machine has them in memory.
enum class byte_order { big, little };
std::string integer_key(std::uint64_t number, byte_order order) {
    std::string key(sizeof number, '\0');
    for (std::size_t i = 0; i < sizeof number; ++i)
        key[order == byte_order::big ? sizeof number - 1 - i : i] =
            static_cast<char>(number >> (8 * i));
    return key;
}

// Dense, with zeros behind, around the ends of a byte's range, and alike in all bytes: digits of
// every position come in all numbers from one to 256.
TEST_P(index_of, agrees_with_a_map_on_integer_keys) {
    constexpr std::uint64_t count = 700;
    for (const byte_order order : {byte_order::big, byte_order::little})
        for (const std::uint64_t stride :
             {std::uint64_t{1}, std::uint64_t{255}, std::uint64_t{256}, std::uint64_t{0x10001},
              std::uint64_t{0x0101010101010101}, std::uint64_t{1} << 48}) {
            const auto index = open(count / 8);
            const std::size_t empty = index->index_bytes();
            std::map<std::string, std::string> model;
            const auto agree = [&] {
                ASSERT_EQ(index->size(), model.size());
                for (std::uint64_t i = 0; i < count; ++i) {
                    const std::string key = integer_key(i * stride, order);
                    const auto found = model.find(key);
                    ASSERT_EQ(read(*index, key), found != model.end() ? found->second : "(absent)");
                }
                if (ordered()) {
                    ASSERT_EQ(scan(*index, "", SIZE_MAX), pairs(model.begin(), model.end()));
                    for (std::uint64_t i = 0; i < count; i += 37) {
                        // Between two keys, too.
                        const std::string from = integer_key(i * stride + i % 2, order);
                        pairs expected;
                        for (auto at = model.lower_bound(from);
                             at != model.end() && expected.size() < 9; ++at)
                            expected.emplace_back(*at);
                        ASSERT_EQ(scan(*index, from, 9), expected);
                    }
                }
            };
            // 701 is a prime: another order than the one they are erased in.
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t number = (i * 263 + 5) % 701 * stride;
                const std::string key = integer_key(number, order);
                ASSERT_TRUE(index->put(key, std::to_string(i)));
                model[key] = std::to_string(i);
            }
            agree();
            if (moves) runtime.collect_now();
            for (std::uint64_t i = 0; i <= count; ++i) {
                if (i % 8 == 3) continue;
                const std::string key = integer_key((count - i) * stride, order);
                ASSERT_EQ(index->erase(key), model.erase(key) == 1);
            }
            agree();
            for (std::uint64_t i = 0; i <= count; ++i) {
                const std::string key = integer_key(i * stride, order);
                ASSERT_EQ(index->erase(key), model.erase(key) == 1);
            }
            EXPECT_EQ(index->size(), 0u);
            collect_until_idle();
            EXPECT_LE(index->index_bytes(), empty + 4096);
        }
}

// Two threads insert, two threads erase; the caller had expected a sixteenth.
TEST_P(index_of, grows_and_gives_back) {
    constexpr unsigned threads = 2;
    const std::uint64_t count = obase::testing::scaled_for_build(40'000, 10'000'000, 10'000'000);
    collect_until_idle();
    const std::uint64_t objects_before = live_objects();
    const auto index = open(count / 16);
    const std::size_t empty = index->index_bytes();
    // Odd factors permute the numbers of 64 bits.
    const auto key_of = [](std::uint64_t i) {
        return integer_key(i * 0x9e3779b97f4a7c15u, byte_order::big);
    };
    const auto in_threads = [&](const std::function<void(std::uint64_t)>& work) {
        std::vector<std::thread> workers;
        for (unsigned t = 0; t < threads; ++t)
            workers.emplace_back([&, t] {
                for (std::uint64_t i = t; i < count; i += threads) work(i);
            });
        for (auto& w : workers) w.join();
    };
    {
        const collecting collector(*this);
        in_threads([&](std::uint64_t i) {
            ASSERT_TRUE(index->put(key_of(i), std::to_string(i)));
            // One of the beginning is still there.
            ASSERT_EQ(read(*index, key_of(i % threads)), std::to_string(i % threads));
        });
        ASSERT_EQ(index->size(), count);
        in_threads([&](std::uint64_t i) {
            bool right = false;
            const std::string value = std::to_string(i);
            const auto check = [&](std::string_view v) { right = v == value; };
            ASSERT_TRUE(index->get(key_of(i), check) && right) << i;
            ASSERT_FALSE(index->contains(key_of(i + count)));
        });
        if (ordered()) {
            std::string last;
            std::uint64_t seen = 0;
            index->scan("", SIZE_MAX, [&](std::string_view key, std::string_view) {
                ASSERT_TRUE(seen == 0 || key > last);
                last = key;
                ++seen;
            });
            ASSERT_EQ(seen, count);
        }
        in_threads([&](std::uint64_t i) {
            ASSERT_TRUE(index->erase(key_of(i)));
            ASSERT_FALSE(index->contains(key_of(i)));
        });
    }
    EXPECT_EQ(index->size(), 0u);
    collect_until_idle();
    if (moves) {
        EXPECT_EQ(live_objects(), objects_before);
    }
    EXPECT_LE(index->index_bytes(), empty + 4096);
}

// Each thread has keys of its own, so that it knows what they must be, and they lie among those of
// the others: nodes are split, merged, grown, and layers made and dropped under everybody's feet.
TEST_P(index_of, threads_agree_with_maps_of_their_own) {
    constexpr unsigned threads = 3;
    const std::uint64_t steps = obase::testing::scaled_for_build(30'000, 1'500'000, 100'000'000);
    std::set<std::string> different;
    for (unsigned i = 0; i < 330; ++i)
        if (const std::string key = adversarial_key(i); key.size() < 1000 || i % 2 == 0)
            different.insert(key);
    for (std::uint64_t i = 0; i < 130; ++i) {
        different.insert(integer_key(i, byte_order::big));
        different.insert(integer_key(i, byte_order::little));
        different.insert(integer_key(i * 0x0101010101010101, byte_order::big));
        // A chain: each is a prefix of the next.
        different.insert("chain" + std::string(i, 'c'));
        // Long prefixes in common, and then a fork.
        different.insert(std::string(i % 5 * 8, 'p') + std::to_string(i));
    }
    const std::vector<std::string> keys(different.begin(), different.end());
    const auto index = open(keys.size() / 8);
    const collecting collector(*this);
    std::vector<std::thread> workers;
    std::atomic<std::size_t> left{0};
    for (unsigned t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
            std::map<std::string, std::string> mine;
            const std::string mark(1, static_cast<char>('A' + t)); // of all my values
            std::uint64_t x = 4711 + t;
            for (std::uint64_t step = 0; step < steps; ++step) {
                next_random(x);
                // At times most of the keys are there, at times few.
                const bool filling = step * 8 / steps % 2 == 0;
                const std::string& key = keys[(x >> 8) % (keys.size() / threads) * threads + t];
                const auto found = mine.find(key);
                const bool there = found != mine.end();
                const std::string value = mark + std::to_string(step);
                switch (x >> 50 & 7) {
                case 0:
                case 1:
                case 2:
                    if (filling) {
                        ASSERT_EQ(index->put(key, value), !there);
                        mine[key] = value;
                    } else {
                        ASSERT_EQ(index->erase(key), there);
                        mine.erase(key);
                    }
                    break;
                case 3:
                    ASSERT_EQ(index->erase(key), there);
                    mine.erase(key);
                    break;
                case 4:
                    ASSERT_EQ(index->modify(
                                  key, [&](std::string_view) -> std::string_view { return value; }),
                              there);
                    if (there) found->second = value;
                    break;
                case 5:
                    if (ordered()) {
                        const std::size_t limit = (x >> 40 & 15) == 0 ? SIZE_MAX : x >> 30 & 63;
                        auto next = mine.lower_bound(key);
                        std::string last;
                        std::size_t n = 0;
                        const std::size_t told =
                            index->scan(key, limit, [&](std::string_view k, std::string_view v) {
                                ASSERT_TRUE(n == 0 ? k >= key : k > last) << "not ascending";
                                last = k;
                                ++n;
                                if (v.substr(0, 1) != mark) return;
                                ASSERT_TRUE(next != mine.end() && next->first == k &&
                                            next->second == v)
                                    << "not mine, or one was missed";
                                ++next;
                            });
                        ASSERT_EQ(told, n);
                        ASSERT_LE(n, limit);
                        ASSERT_TRUE(n == limit || next == mine.end()) << "missed the end";
                        break;
                    }
                    [[fallthrough]];
                default: {
                    std::string copy = "(absent)";
                    ASSERT_EQ(index->get(key, [&](std::string_view v) { copy = v; }), there);
                    ASSERT_EQ(copy, there ? found->second : "(absent)");
                }
                }
            }
            for (const auto& [key, value] : mine) ASSERT_EQ(read(*index, key), value);
            left += mine.size();
        });
    for (auto& w : workers) w.join();
    EXPECT_EQ(index->size(), left);
}

// No stale read and no lost write, whatever the collector does meanwhile.
TEST_P(index_of, witness_finds_nothing) {
    constexpr std::size_t keys = 4096;
    constexpr unsigned writers = 2;
    obase::testing::witness witness(keys, 0, 300);
    // Few buckets, so that lists are long enough for neighbours to be deleted together.
    const auto index = open(keys / 4);
    const std::uint64_t reads =
        obase::testing::scaled_for_build(300'000, 120'000'000, 2'000'000'000);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < writers; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t x = 7 + t;
            while (!stop) {
                next_random(x);
                // Half of the writes go to a few keys; writer t owns the keys that are t mod
                // writers.
                const std::size_t range = (x & 1) != 0 ? 64 : keys;
                const std::size_t key = (x >> 8) % (range / writers) * writers + t;
                const auto ticket = witness.begin_write(key);
                const std::string name = long_key(key);
                if (ticket.erase) {
                    index->erase(name);
                } else if ((x >> 50 & 3) != 0 ||
                           !index->modify(name, [&](std::string_view) -> std::string_view {
                               return ticket.value;
                           })) {
                    index->put(name, ticket.value);
                }
                witness.end_write(ticket);
            }
        });
    }
    for (unsigned t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t x = 1000 + t;
            while (witness.reads() < reads) {
                next_random(x);
                const std::size_t range = (x & 1) != 0 ? 64 : keys;
                const std::size_t key = (x >> 8) % range;
                const auto ticket = witness.begin_read(key);
                std::string copy;
                const bool found = index->get(long_key(key), [&](std::string_view v) { copy = v; });
                witness.end_read(ticket, found, copy);
            }
            stop = true;
        });
    }
    {
        const collecting collector(*this);
        for (auto& t : threads) t.join();
    }
    std::size_t present = 0;
    for (std::size_t key = 0; key < keys; ++key) {
        const auto ticket = witness.begin_read(key);
        std::string copy;
        const bool found = index->get(long_key(key), [&](std::string_view v) { copy = v; });
        witness.end_read(ticket, found, copy);
        ASSERT_EQ(found, witness.present(key)) << "a lost write, key " << key;
        present += found;
    }
    EXPECT_EQ(index->size(), present);
    EXPECT_EQ(witness.stale(), 0u);
    EXPECT_EQ(witness.corrupt(), 0u);
    std::printf("%llu reads witnessed, %llu moves\n",
                static_cast<unsigned long long>(witness.reads()),
                static_cast<unsigned long long>(obase::testing::moves_of(runtime.statistics())));
}

// Small histories of few keys by threads that run into each other all the time, each checked.
TEST_P(index_of, histories_are_linearizable) {
    using history = std::vector<obase::testing::timed<key_operation>>;
    constexpr unsigned threads = 4;
    constexpr std::size_t keys = 2;
    constexpr std::size_t operations = 14; // of each thread in a round: 28 per key
    const std::uint64_t rounds = obase::testing::scaled_for_build(1'500, 150'000, 8'000'000);
    // Neighbours; one the prefix of the other; with a long prefix in common; with nothing.
    const std::string families[][keys] = {{long_key(0), long_key(1)},
                                          {std::string(8, 'p'), std::string(8, 'p') + '\0'},
                                          {std::string(40, 'q') + "a", std::string(40, 'q') + "b"},
                                          {"", std::string(20, '\xff')}};
    const auto family_of = [&](std::uint64_t round) {
        return round * std::size(families) / rounds;
    };
    std::uint64_t rounds_checked = 0;
    const collecting collector(*this);
    const auto index = open(4);
    std::atomic<std::uint64_t> clock{0};
    std::atomic<std::uint64_t> values{0};
    std::vector<std::vector<std::pair<std::size_t, obase::testing::timed<key_operation>>>> logs(
        threads);
    std::vector<std::set<obase::testing::key_state>> before(keys, {obase::testing::key_state{}});
    std::uint64_t bad = 0;
    const auto check = [&]() noexcept {
        for (std::size_t key = 0; key < keys && bad == 0; ++key) {
            history h;
            for (const auto& log : logs)
                for (const auto& [k, operation] : log)
                    if (k == key) h.push_back(operation);
            std::set<obase::testing::key_state> after;
            for (const auto& state : before[key])
                after.merge(
                    std::set(obase::testing::linearizability_search<obase::testing::key_state,
                                                                    key_operation>(h)
                                 .final_states(state)));
            if (after.empty() && !before[key].empty()) {
                ++bad;
                std::printf("key %zu:\n%s", key, to_text(h).c_str());
            }
            before[key] = std::move(after);
        }
        for (auto& log : logs) log.clear();
        if (family_of(rounds_checked) != family_of(rounds_checked + 1))
            before.assign(keys, {obase::testing::key_state{}});
        ++rounds_checked;
    };
    std::barrier round(threads, check);
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            std::uint64_t x = 977 + t;
            for (std::uint64_t r = 0; r < rounds; ++r) {
                for (std::size_t i = 0; i < operations; ++i) {
                    next_random(x);
                    const std::size_t key = x >> 20 & (keys - 1);
                    const std::string& name = families[family_of(r)][key];
                    obase::testing::timed<key_operation> o;
                    o.what.what = static_cast<key_operation::kind>((x >> 8) % 5);
                    o.what.stored = ++values;
                    const std::string stored = std::to_string(o.what.stored);
                    const auto saw = [&](std::string_view v) {
                        o.what.seen = std::stoull(std::string(v));
                    };
                    o.call = ++clock;
                    switch (o.what.what) {
                    case key_operation::get:
                        o.what.result = index->get(name, saw);
                        break;
                    case key_operation::put:
                        o.what.result = index->put(name, stored);
                        break;
                    case key_operation::update:
                        o.what.result = index->update(name, stored);
                        break;
                    case key_operation::modify:
                        o.what.result =
                            index->modify(name, [&](std::string_view old) -> std::string_view {
                                saw(old);
                                return stored;
                            });
                        break;
                    case key_operation::erase:
                        o.what.result = index->erase(name);
                        break;
                    }
                    o.returned = ++clock;
                    logs[t].emplace_back(key, o);
                    if ((x >> 40 & 7) == 0) std::this_thread::yield();
                }
                round.arrive_and_wait();
            }
        });
    }
    for (auto& w : workers) w.join();
    EXPECT_EQ(bad, 0u);
}

// No increment is lost.
TEST_P(index_of, modify_is_atomic) {
    constexpr std::size_t counters = 3;
    constexpr unsigned threads = 3;
    const std::uint64_t increments =
        obase::testing::scaled_for_build(8'000, 4'000'000, 200'000'000);
    const auto index = open(4);
    for (std::size_t i = 0; i < counters; ++i) index->put(long_key(i), "0");
    {
        const collecting collector(*this);
        std::vector<std::thread> workers;
        for (unsigned t = 0; t < threads; ++t) {
            workers.emplace_back([&, t] {
                std::uint64_t x = 3 + t;
                for (std::uint64_t i = 0; i < increments; ++i) {
                    std::string next;
                    ASSERT_TRUE(index->modify(
                        long_key(i % counters), [&](std::string_view old) -> std::string_view {
                            return next = std::to_string(std::stoull(std::string(old)) + 1);
                        }));
                    // Neighbours come and go.
                    const std::string other = long_key(next_random(x) % counters) + "x";
                    if ((x >> 40 & 1) != 0)
                        index->put(other, "y");
                    else
                        index->erase(other);
                }
            });
        }
        for (auto& w : workers) w.join();
    }
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < counters; ++i) sum += std::stoull(read(*index, long_key(i)));
    EXPECT_EQ(sum, increments * threads);
}

// Each key says in its value which one it is; the even ones stay, the odd ones come and go.
TEST_P(index_of, scans_miss_nothing_that_stays) {
    if (ordered()) {
        constexpr std::size_t keys = 600;
        const std::uint64_t scans = obase::testing::scaled_for_build(1'500, 1'000'000, 20'000'000);
        const auto index = open(keys);
        const auto value_of = [](std::size_t key, std::uint64_t filler) {
            return long_key(key) + std::string(filler % 60, '.');
        };
        for (std::size_t k = 0; k < keys; ++k) index->put(long_key(k), value_of(k, 0));
        const collecting collector(*this);
        std::atomic<bool> stop{false};
        std::vector<std::thread> writers;
        for (unsigned t = 0; t < 2; ++t) {
            writers.emplace_back([&, t] {
                std::uint64_t x = 5 + t;
                while (!stop) {
                    next_random(x);
                    const std::size_t key = (x >> 10) % keys;
                    if (key % 2 == 0)
                        index->put(long_key(key), value_of(key, x >> 40));
                    else if ((x >> 50 & 1) != 0)
                        index->put(long_key(key), value_of(key, x >> 40));
                    else
                        index->erase(long_key(key));
                }
            });
        }
        std::vector<std::thread> scanners;
        std::atomic<std::uint64_t> done{0};
        for (unsigned t = 0; t < 2; ++t) {
            scanners.emplace_back([&, t] {
                std::uint64_t x = 50 + t;
                while (++done <= scans) {
                    next_random(x);
                    const std::size_t from = x % keys;
                    const std::size_t limit = (x >> 40 & 3) == 0 ? SIZE_MAX : x >> 20 & 63;
                    const pairs found = scan(*index, long_key(from), limit);
                    ASSERT_LE(found.size(), limit);
                    std::size_t next_even = from + from % 2;
                    for (std::size_t i = 0; i < found.size(); ++i) {
                        const auto& [key, value] = found[i];
                        ASSERT_EQ(value.substr(0, key.size()), key);
                        ASSERT_GE(key, i == 0 ? long_key(from) : found[i - 1].first + '\0');
                        if ((key.back() - '0') % 2 != 0) continue;
                        ASSERT_EQ(key, long_key(next_even)) << "missed a key";
                        next_even += 2;
                    }
                    ASSERT_TRUE(found.size() == limit || next_even >= keys) << "missed the end";
                }
            });
        }
        for (auto& s : scanners) s.join();
        stop = true;
        for (auto& w : writers) w.join();
    } else {
        GTEST_SKIP() << "not ordered";
    }
}

// What visit_path() reports is exactly what the collector finds touched after get().
TEST_P(index_of, visit_path_reports_what_get_touches) {
    constexpr std::size_t keys = 700;
    const auto index = open(64); // lists of several keys in hash tables
    for (std::size_t i = 0; i < keys; ++i) index->put(long_key(i * 3), std::string(i % 90, 'v'));
    using object = std::pair<const void*, std::size_t>;
    for (const std::size_t key :
         {std::size_t{0}, std::size_t{300}, std::size_t{301}, 3 * keys - 3, 3 * keys}) {
        const std::string name = long_key(key);
        std::set<object> visited;
        {
            const nothing_moves meanwhile(kind);
            index->visit_path(name, [&](const void* p, std::size_t n) { visited.emplace(p, n); });
            const bool there = index->get(name, [&](std::string_view value) {
                EXPECT_EQ(visited.count({value.data() - sizeof(obase::bytes),
                                         value.size() + sizeof(obase::bytes)}),
                          1u);
            });
            EXPECT_EQ(there, key % 3 == 0 && key < 3 * keys);
        }
        if (!moves) continue;
        collect_until_idle();
        const auto touched_by = [&](const std::function<void()>& use) {
            const std::uint64_t before = runtime.statistics().touched_guides;
            use();
            EXPECT_EQ(runtime.collect_now(), obase::collect_result::done);
            return runtime.statistics().touched_guides - before;
        };
        EXPECT_EQ(touched_by([] {}), 0u);
        EXPECT_EQ(touched_by([&] { index->get(name, [](std::string_view) {}); }), visited.size());
        EXPECT_EQ(touched_by([&] { index->visit_path(name, [](const void*, std::size_t) {}); }),
                  visited.size());
    }
}

TEST_P(index_of, what_is_erased_gives_its_memory_back) {
    constexpr std::size_t keys = 3000;
    collect_until_idle();
    const std::uint64_t objects_before = live_objects();
    const auto index = open(64);
    const std::size_t empty = index->index_bytes();
    std::size_t full = 0;
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < keys; ++i)
            ASSERT_TRUE(index->put(long_key(i * 7919 % keys), std::string(100, 'v')));
        for (std::size_t i = 0; i < keys; ++i) ASSERT_FALSE(index->put(long_key(i), "new"));
        collect_until_idle();
        if (moves) {
            const std::uint64_t objects = live_objects() - objects_before;
            const std::uint64_t others = keys + index->managed_nodes();
            if (kind.keys_inline) {
                EXPECT_GE(objects, others);
                EXPECT_LE(objects, others + keys);
            } else {
                EXPECT_EQ(objects, others + keys);
            }
        }
        EXPECT_GT(index->index_bytes(), empty + keys * sizeof(void*));
        // What an index leaves behind must not add up.
        if (round == 0) full = index->index_bytes();
        EXPECT_LT(index->index_bytes(), full + full / 2);
        for (std::size_t i = 0; i < keys; ++i) ASSERT_TRUE(index->erase(long_key(i)));
        EXPECT_EQ(index->size(), 0u);
        collect_until_idle();
        if (moves) {
            EXPECT_EQ(live_objects(), objects_before);
        }
        EXPECT_LE(index->index_bytes(), empty + 4096);
    }
}

// The destructor frees what is there and what was retired, in any order with the reclamation.
TEST_P(index_of, its_end_is_the_end_of_its_objects) {
    collect_until_idle();
    const std::uint64_t objects_before = live_objects();
    {
        const auto index = open(64);
        for (std::size_t i = 0; i < 500; ++i) index->put(long_key(i), "value");
        for (std::size_t i = 0; i < 500; i += 3) index->erase(long_key(i));
        for (std::size_t i = 1; i < 500; i += 3) index->put(long_key(i), "another");
    }
    collect_until_idle();
    EXPECT_EQ(live_objects(), objects_before);
}

// A table for more keys than there is memory for is refused as memory is.
TEST_P(index_of, may_be_told_any_number_of_keys) {
    if (!obase::testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    for (const std::size_t expected_keys : {SIZE_MAX, SIZE_MAX / 2 + 2}) {
        try {
            const auto index = open(expected_keys);
            EXPECT_TRUE(index->put("a", "1"));
            EXPECT_EQ(read(*index, "a"), "1");
        } catch (const std::bad_alloc&) {
        }
    }
}

TEST_P(index_of, bad_alloc_changes_nothing) {
    const auto index = open(16);
    std::map<std::string, std::string> model;
    for (std::size_t i = 0; i < 50; ++i) {
        index->put(long_key(i), "old");
        model[long_key(i)] = "old";
    }
    const auto agree = [&] {
        ASSERT_EQ(index->size(), model.size());
        for (const auto& [key, value] : model) ASSERT_EQ(read(*index, key), value);
        if (ordered()) {
            ASSERT_EQ(scan(*index, "", SIZE_MAX), pairs(model.begin(), model.end()));
        }
    };
    // 4 GiB is more than a value can be; the bytes are not read.
    const std::string_view too_large(model.begin()->first.data(), std::size_t{1} << 32);
    EXPECT_THROW(index->put(long_key(3), too_large), std::bad_alloc);
    EXPECT_THROW(index->put(long_key(1003), too_large), std::bad_alloc);
    EXPECT_THROW(index->update(long_key(3), too_large), std::bad_alloc);
    EXPECT_THROW(index->modify(long_key(3), [&](std::string_view) { return too_large; }),
                 std::bad_alloc);
    EXPECT_FALSE(index->modify(long_key(1003), [&](std::string_view) { return too_large; }));
    agree();

    if (!obase::testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    std::vector<std::string> fresh;
    for (std::size_t i = 0; i < 500; ++i) fresh.push_back(long_key(5000 + i * 31 % 500));
    std::vector<bool> inserted(fresh.size());
    std::size_t refused = 0;
    {
        const std::string seven = long_key(7), eight = long_key(8);
        const obase::testing::heap_shortage none;
        for (std::size_t i = 0; i < fresh.size(); ++i) {
            try {
                inserted[i] = index->put(fresh[i], "new");
            } catch (const std::bad_alloc&) {
                ++refused;
            }
        }
        // Neither needs memory of the index.
        EXPECT_FALSE(index->put(seven, "newer"));
        EXPECT_TRUE(index->erase(eight));
    }
    // Where nodes are managed objects, their memory is not operator new's.
    if (index->managed_nodes() == 0) {
        EXPECT_GT(refused, 0u);
    }
    model[long_key(7)] = "newer";
    model.erase(long_key(8));
    for (std::size_t i = 0; i < fresh.size(); ++i)
        if (inserted[i]) model[fresh[i]] = "new";
    agree();
    collect_until_idle();
    agree();
    // And afterwards all goes on.
    for (const std::string& key : fresh) ASSERT_EQ(index->put(key, "now"), model.count(key) == 0);
}

} // namespace
