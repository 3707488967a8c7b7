// SPDX-License-Identifier: MIT
//
// Sorted sets against a std::set; temperature, expiry, eviction and snapshots of the keyspace.
#include "crestdb/server/served.hpp"
#include "crestdb/server/snapshot.hpp"
#include "crestdb/server/window_times.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sys/uio.h>

namespace crestdb::server {

namespace {

// One collector for the process, which acts only when asked.
class obase_by_hand : public testing::Environment {
  public:
    void SetUp() override {
        obase::options options;
        options.mode = obase::run_mode::move;
        options.window_seconds = 100'000;
        ASSERT_EQ(managing_runtime().configure(options), "");
        ASSERT_EQ(managing_runtime().start(), "");
    }
};
const auto* const by_hand = testing::AddGlobalTestEnvironment(new obase_by_hand);

TEST(SortedSet, IsOrderedAsASetOfPairs) {
    std::mt19937 random(1);
    sorted_set ours;
    std::set<std::pair<double, std::string>> model;
    std::map<std::string, double> scores;
    const managed_scope scope;
    for (int i = 0; i < 20'000; ++i) {
        const std::string member = "member-" + std::to_string(random() % 500);
        const double score = static_cast<double>(random() % 50);
        sorted_set::node* n = ours.find(member);
        ASSERT_EQ(n != nullptr, scores.contains(member));
        if (n == nullptr) {
            ours.insert(member, score);
        } else {
            ASSERT_EQ(n->score, scores[member]);
            model.erase({scores[member], member});
            if (random() % 3 == 0) {
                ours.erase(n);
                scores.erase(member);
                continue;
            }
            ours.set_score(n, score);
        }
        scores[member] = score;
        model.insert({score, member});
    }
    ASSERT_EQ(ours.size(), model.size());
    std::size_t rank = 0;
    sorted_set::node* n = ours.first();
    sorted_set::node* before = nullptr;
    for (const auto& [score, member] : model) {
        ASSERT_NE(n, nullptr);
        EXPECT_EQ(n->score, score);
        EXPECT_EQ(n->name(), member);
        EXPECT_EQ(n->back, before);
        EXPECT_EQ(ours.rank(n), rank);
        EXPECT_EQ(ours.at(rank), n);
        before = n;
        n = n->next();
        ++rank;
    }
    EXPECT_EQ(n, nullptr);
    EXPECT_EQ(ours.last(), before);
}

TEST(Keyspace, WhatIsNotUsedGrowsOld) {
    served s;
    s({"SET", "hot", "1"});
    s({"SET", "cold", "1"});
    s({"HSET", "h", "hot", "1", "cold", "1"});
    for (int i = 0; i < 4; ++i) {
        s.window();
        s({"GET", "hot"});
        s({"HGET", "h", "hot"});
    }
    const auto idle = [&](const std::string& key) {
        const std::string reply = s({"OBJECT", "FREQ", key});
        return std::stoi(reply.substr(1));
    };
    EXPECT_EQ(idle("hot"), 255);
    EXPECT_LT(idle("cold"), 64);
    EXPECT_LT(idle("cold"), 64) << "asking is no use";
    // The members of a hash have temperatures of their own.
    const keyspace::key_id id = keyspace::id_of(0, "h");
    const std::lock_guard hold(s.server.keys.lock_of(id.part));
    const managed_scope scope;
    auto* h = static_cast<hash_value*>(s.server.keys.find(id)->collection());
    EXPECT_EQ(h->slot_of_hash("hot")->idle_windows(s.server.keys.window), 0u);
    EXPECT_GE(h->slot_of_hash("cold")->idle_windows(s.server.keys.window), 3u);
}

// A table that grows, or gives memory back, puts slots elsewhere: their objects are as old as before.
TEST(Keyspace, WhatIsNotUsedStaysOldWhenTheTableGrows) {
    served s;
    for (int i = 0; i < 2000; ++i) s({"SET", "old" + std::to_string(i), "v"});
    for (int i = 0; i < 4; ++i) s.window();
    const auto slot_of = [&](int i) {
        const std::string key = "old" + std::to_string(i);
        const keyspace::key_id id = keyspace::id_of(0, key);
        const std::lock_guard hold(s.server.keys.lock_of(id.part));
        return s.server.keys.slot_of_hash(id);
    };
    const auto check = [&](unsigned least) {
        int young = 0;
        for (int i = 0; i < 2000; ++i)
            young += slot_of(i)->idle_windows(s.server.keys.window) < least;
        EXPECT_LE(young, 2) << "but for hashes that are alike";
    };
    check(3);
    std::vector<managed_slot*> before;
    for (int i = 0; i < 2000; ++i) before.push_back(slot_of(i));
    const auto moved = [&] {
        int count = 0;
        for (int i = 0; i < 2000; ++i) count += slot_of(i) != before[static_cast<std::size_t>(i)];
        return count;
    };
    for (int i = 0; i < 20'000; ++i) s({"SET", "new" + std::to_string(i), "v"});
    EXPECT_GT(moved(), 1500);
    check(3);
    s.window();
    check(4);
    for (int i = 0; i < 20'000; ++i) s({"DEL", "new" + std::to_string(i)});
    check(4);
    s.window();
    check(5);
    EXPECT_EQ(s({"GET", "old7"}), "$1\r\nv\r\n");
    EXPECT_EQ(slot_of(7)->idle_windows(s.server.keys.window), 0u);
}

TEST(Keyspace, EvictionTakesWhatIsNotUsed) {
    served s;
    const std::string value(1000, 'v');
    for (int i = 0; i < 4000; ++i) s({"SET", "key-" + std::to_string(i), value});
    for (int w = 0; w < 5; ++w) {
        s.window();
        for (int i = 0; i < 400; ++i) s({"GET", "key-" + std::to_string(i)});
    }
    const std::int64_t used = s.server.keys.used_bytes();
    EXPECT_EQ(s({"CONFIG", "SET", "maxmemory", std::to_string(used / 2), "maxmemory-policy",
                 "noeviction"}),
              "+OK\r\n");
    EXPECT_TRUE(s({"SET", "more", value}).starts_with("-OOM command not allowed"));
    EXPECT_EQ(s({"GET", "more"}), "$-1\r\n");
    s({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
    EXPECT_EQ(s({"SET", "more", value}), "+OK\r\n");
    EXPECT_LE(s.server.keys.used_bytes(), used / 2 + 2000);
    int hot = 0;
    for (int i = 0; i < 400; ++i) hot += s({"EXISTS", "key-" + std::to_string(i)}) == ":1\r\n";
    EXPECT_EQ(hot, 400) << "half of the keys went, none of those in use";
    s({"CONFIG", "SET", "maxmemory-policy", "volatile-lru", "maxmemory", "1000"});
    EXPECT_TRUE(s({"SET", "x", "y"}).starts_with("-OOM")) << "no key ends";
}

TEST(Keyspace, UsedBytesReturnToZero) {
    served s;
    const std::int64_t empty = s.server.keys.used_bytes();
    std::mt19937 random(2);
    for (int i = 0; i < 3000; ++i) {
        const std::string key = "key-" + std::to_string(random() % 300);
        const std::string n = std::to_string(random() % 20);
        switch (random() % 10) {
        case 0:
            s({"SET", key, std::string(random() % 40'000, 'x'), "EX", "100"});
            break;
        case 1:
            s({"HSET", key, n, std::string(random() % 100, 'x')});
            break;
        case 2:
            s({"ZADD", key, n, std::string(1 + random() % 20, 'x')});
            break;
        case 3:
            s({"APPEND", key, std::string(random() % 9000, 'y')});
            break;
        case 4:
            s({"PERSIST", key});
            break;
        case 5:
            s({"PEXPIRE", key, "100000"});
            break;
        case 6:
            s({"DEL", key});
            break;
        case 7:
            s({"RENAME", key, "key-" + n});
            break;
        case 8:
            s({"COPY", key, "key-" + n, "REPLACE"});
            break;
        default:
            s({"SETRANGE", key, std::to_string(random() % 20'000), "zz"});
        }
    }
    for (int i = 0; i < 300; ++i) s({"DEL", "key-" + std::to_string(i)});
    EXPECT_EQ(s({"DBSIZE"}), ":0\r\n");
    // Tables keep their smallest size.
    EXPECT_LE(s.server.keys.used_bytes(), empty + 256 * 512);
    EXPECT_EQ(s({"FLUSHALL"}), "+OK\r\n");
    EXPECT_EQ(s.server.keys.used_bytes(), 0);
}

TEST(ExpiryIndex, IsASortedSequence) {
    std::mt19937 random(4);
    expiry_index ours;
    std::multiset<std::pair<expiry_index::step, std::uint32_t>> model;
    // At random, then all behind each other, then one hash many times: each has a way to split of its own.
    const auto time_of = [&](int i) -> std::int64_t {
        if (i < 20'000) return static_cast<std::int64_t>(random() % 50'000'000);
        return i < 30'000 ? 60'000'000 + i * 10 : 77'000'000;
    };
    for (int i = 0; i < 31'000; ++i) {
        const std::int64_t at = time_of(i);
        const auto hash = static_cast<std::uint32_t>(i < 30'000 ? random() % 1000 : 7);
        ours.add(hash, at);
        model.emplace(expiry_index::step_of(at), hash);
        if (random() % 3 == 0 && i < 30'000) {
            auto gone = model.lower_bound({static_cast<expiry_index::step>(random() % 60'000), 0});
            if (gone == model.end()) gone = model.begin();
            ours.remove(gone->second, expiry_index::time_of(gone->first));
            model.erase(gone);
        }
        ASSERT_EQ(ours.size(), model.size());
    }
    std::vector<std::pair<expiry_index::step, std::uint32_t>> seen;
    ours.each_ended(INT64_MAX, SIZE_MAX, [&](std::uint32_t hash, expiry_index::step step) {
        seen.emplace_back(step, hash);
    });
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), model.begin(), model.end()));
    EXPECT_LT(ours.bytes(), ours.size() * 16) << "each alone, in any order";
    std::size_t sampled = 0;
    ours.sample(12'345, 100, [&](std::uint32_t hash, expiry_index::step step) {
        ++sampled;
        EXPECT_TRUE(model.contains({step, hash}));
    });
    EXPECT_EQ(sampled, 100u);
    for (int i = 0; i < 100'000; ++i) {
        const auto step = static_cast<expiry_index::step>(random() % 60'000);
        const auto hash = static_cast<std::uint32_t>(random() % 1000);
        ASSERT_EQ(ours.contains(hash, step), model.contains({step, hash}));
    }
    while (!model.empty()) {
        const auto step = model.begin()->first;
        const auto hash = model.begin()->second;
        ours.remove(hash, expiry_index::time_of(step));
        model.erase(model.begin());
    }
    EXPECT_EQ(ours.size(), 0u);
    EXPECT_EQ(ours.bytes(), 0u);
    EXPECT_FALSE(ours.contains(7, 1));
}

// What is removed without being asked for may be cold, and is not read. Here whoever reads it dies: it looks like a
// sorted set.
TEST(Keyspace, WhatIsRemovedUnaskedIsNotRead) {
    served s;
    keyspace& keys = s.server.keys;
    const auto id_of = [](const std::string& key) { return keyspace::id_of(0, key); };
    const auto unreadable = [&](const std::string& key) {
        const managed_scope scope;
        auto* r =
            static_cast<unsigned char*>(const_cast<void*>(keys.find_slot(id_of(key))->peek()));
        std::memset(r, 0x77, 100);
        r[0] = static_cast<unsigned char>(record_kind::sorted_set);
        r[1] = 0;
    };
    std::size_t bytes = 1200; // long ones and short ones
    const auto fill = [&](int from, int to, const std::vector<std::string>& how) {
        for (int i = from; i < to; ++i) {
            std::vector<std::string> words{"SET", "key-" + std::to_string(i),
                                           std::string(bytes, 'v')};
            words.insert(words.end(), how.begin(), how.end());
            EXPECT_EQ(s(words), "+OK\r\n");
            unreadable(words[1]);
        }
    };
    const std::string later = std::to_string(now_ms() + 100'000);
    const auto size = [&] { return keys.size(0); };
    // Expiry, of those whose time has come.
    fill(0, 100, {"PXAT", later});
    bytes = 100;
    fill(100, 120, {"PXAT", std::to_string(now_ms() + 200'000)});
    EXPECT_EQ(keys.expire_some(1000, now_ms() + 105'000), 100u);
    EXPECT_EQ(size(), 20u);
    EXPECT_EQ(keys.expiring(0), 20u);
    EXPECT_EQ(keys.expire_some(1000, now_ms() + 205'000), 20u);
    EXPECT_EQ(keys.expiring(0), 0u);
    EXPECT_EQ(keys.count.expired, 120u);
    // Eviction.
    for (const eviction policy :
         {eviction::allkeys_lru, eviction::allkeys_random, eviction::volatile_lru,
          eviction::volatile_random, eviction::volatile_ttl}) {
        SCOPED_TRACE(name_of(policy));
        bytes = 1300 - bytes;
        const std::int64_t empty = keys.used_bytes();
        const auto flush = [&](const std::string& how) {
            s({how});
            for (int i = 0; i < 10'000 && keys.used_bytes() > empty; ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            EXPECT_LE(keys.used_bytes(), empty);
        };
        fill(0, 100, {});
        if (policy >= eviction::volatile_lru) {
            flush("FLUSHALL");
            fill(0, 100, {"PXAT", later});
        }
        const auto evicted = keys.count.evicted.load();
        EXPECT_TRUE(keys.make_room(keys.used_bytes() / 2, policy));
        EXPECT_GT(keys.count.evicted, evicted + 40);
        EXPECT_EQ(size(), 100 - (keys.count.evicted - evicted));
        EXPECT_EQ(keys.expiring(0), policy >= eviction::volatile_lru ? size() : 0u);
        flush("FLUSHDB");
    }
    // All of a database, and all, by the thread that frees them.
    bytes = 1200;
    fill(0, 100, {});
    bytes = 100;
    fill(100, 200, {"PXAT", later});
    s({"HSET", "hash", "field", "value"});
    s({"SELECT", "1"});
    s({"SET", "other", "v"});
    const std::int64_t used = keys.used_bytes();
    s({"SELECT", "0"});
    s({"FLUSHDB"});
    for (int i = 0; i < 10'000 && keys.used_bytes() > used / 20; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_LE(keys.used_bytes(), used / 20);
    EXPECT_GT(keys.used_bytes(), 0);
    fill(0, 100, {});
    s({"FLUSHALL"});
    EXPECT_EQ(keys.used_bytes(), 0);
}

// And what must be read is: by its place the server cannot know it.
TEST(Keyspace, WhatIsRemovedUnaskedIsTheRightOne) {
    served s;
    keyspace& keys = s.server.keys;
    const std::int64_t soon = now_ms() + 100'000, late = now_ms() + 10'000'000;
    const auto at = [](std::int64_t when) { return std::to_string(when); };
    const auto expire = [&] { return keys.expire_some(1000, soon + 10'000); };
    const std::string value(100, 'v'), large(20'000, 'v');
    // As many ways as there are in which a key gets or loses its end.
    s({"SET", "ends", value, "PXAT", at(soon)});
    s({"SET", "longer", value, "PXAT", at(soon)});
    s({"PEXPIREAT", "longer", at(late)});
    s({"SET", "sooner", value, "PXAT", at(late)});
    s({"PEXPIREAT", "sooner", at(soon)});
    s({"SET", "persists", value, "PXAT", at(soon)});
    s({"PERSIST", "persists"});
    s({"SET", "again", value, "PXAT", at(soon)});
    s({"SET", "again", value});
    s({"SET", "from", value, "PXAT", at(soon)});
    s({"RENAME", "from", "to"});
    s({"SET", "large", large, "PXAT", at(soon)});
    s({"SET", "grows", value, "PXAT", at(soon)});
    s({"SETRANGE", "grows", "19000", "v"});
    s({"HSET", "hash", "f", value});
    s({"PEXPIREAT", "hash", at(soon)});
    s({"SET", "was a hash", value, "PXAT", at(soon)});
    s({"DEL", "was a hash"});
    s({"HSET", "was a hash", "f", value});
    EXPECT_EQ(expire(), 6u);
    for (const char* gone : {"ends", "sooner", "to", "large", "grows", "hash"})
        EXPECT_EQ(s({"EXISTS", gone}), ":0\r\n") << gone;
    for (const char* stays : {"longer", "persists", "again", "was a hash"})
        EXPECT_EQ(s({"EXISTS", stays}), ":1\r\n") << stays;
    EXPECT_EQ(keys.expiring(0), 1u);
    EXPECT_EQ(expire(), 0u);
    // A collection in the place of a string ends with all that it has.
    s({"SET", "was a string", value, "PXAT", at(soon)});
    const std::int64_t used = keys.used_bytes();
    s({"HSET", "other", "f", std::string(5000, 'v')});
    s({"PEXPIREAT", "other", at(soon)});
    s({"RENAME", "other", "was a string"});
    EXPECT_EQ(expire(), 1u);
    EXPECT_LT(keys.used_bytes(), used + 4000);
    // By eviction, too.
    s({"SET", "begins to", value});
    s({"PEXPIREAT", "begins to", at(soon)});
    EXPECT_EQ(keys.expiring(0), 2u);
    while (keys.size(0) != 0)
        ASSERT_TRUE(keys.make_room(keys.used_bytes() - 1, eviction::allkeys_lru)) << keys.size(0);
    EXPECT_EQ(keys.expiring(0), 0u);
    // A transaction learns of the key it watches.
    s({"SET", "watched", value, "PXAT", at(soon)});
    s({"WATCH", "watched"});
    EXPECT_EQ(expire(), 1u);
    s({"MULTI"});
    s({"PING"});
    EXPECT_EQ(s({"EXEC"}), "*-1\r\n");
    EXPECT_EQ(s({"FLUSHALL"}), "+OK\r\n");
    EXPECT_EQ(keys.used_bytes(), 0);
}

// What a key takes is the same wherever its object lies, or the accounts would drift.
TEST(Keyspace, AccountsDoNotChangeWhereObjectsMove) {
    served s;
    for (int i = 0; i < 400; ++i)
        s({"SET", "k" + std::to_string(i), std::string(static_cast<std::size_t>(i * i), 'v')});
    const auto moved = [] { return managing_runtime().statistics().moved_objects; };
    const auto before = moved();
    for (int i = 0; i < 12; ++i) s.window();
    EXPECT_GT(moved(), before + 300);
    s({"SELECT", "1"});
    s({"SET", "other", "v"});
    const std::int64_t others = s.server.keys.used_bytes();
    s({"SELECT", "0"});
    for (int i = 0; i < 400; ++i) s({"DEL", "k" + std::to_string(i)});
    s({"FLUSHDB"});
    s({"SELECT", "1"});
    s({"DEL", "other"});
    EXPECT_LT(others, std::int64_t{1} << 30);
    s({"FLUSHDB"});
    for (int i = 0; i < 1000 && s.server.keys.used_bytes() != 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(s.server.keys.used_bytes(), 0);
}

TEST(Keyspace, WhatExpiryTakesIsCounted) {
    served s;
    const auto used_by = [&](bool ends) {
        const std::int64_t before = s.server.keys.used_bytes();
        for (int i = 0; i < 20'000; ++i) {
            // Each in a step of its own.
            const std::string at = std::to_string(9'000'000'000'000 + i * 5000);
            if (ends)
                s({"SET", "key-" + std::to_string(i), "v", "PXAT", at});
            else
                s({"SET", "key-" + std::to_string(i), "v"});
        }
        const std::int64_t used = s.server.keys.used_bytes() - before;
        s({"FLUSHALL"});
        return used / 20'000;
    };
    const std::int64_t without = used_by(false);
    const std::int64_t with = used_by(true);
    EXPECT_GT(with, without + 8 + 8) << "the time in the record, and the index";
    EXPECT_LT(with, without + 8 + 24);
}

TEST(Keyspace, KeysEndByThemselves) {
    served s;
    for (int i = 0; i < 500; ++i) s({"SET", "key-" + std::to_string(i), "v", "PX", "1"});
    s({"SET", "stays", "v", "EX", "1000"});
    EXPECT_EQ(s.server.keys.expire_some(10'000, now_ms() + 10'000), 500u);
    EXPECT_EQ(s({"DBSIZE"}), ":1\r\n");
    EXPECT_EQ(s.server.keys.expiring(0), 1u);
}

TEST(Output, WhatIsSentStaysAsItWas) {
    served s;
    const std::string value(100'000, 'a');
    s({"SET", "k", value});
    const std::vector<std::string_view> get{"GET", "k"};
    output out;
    s.server.execute(s.client, get, out);
    s.server.execute(s.client, get, out);
    // While a slow client reads: the value is changed, moved, removed, and its memory used again.
    s({"SETRANGE", "k", "10", "zzz"});
    s.window();
    s.window();
    s({"APPEND", "k", "more"});
    s({"DEL", "k"});
    for (int i = 0; i < 50; ++i)
        s({"SET", "other-" + std::to_string(i), std::string(100'000, 'b')});
    managing_runtime().reclaim_now();
    std::string text;
    while (!out.empty()) {
        iovec pieces[3];
        const std::size_t n = out.pieces(pieces, 3);
        ASSERT_GT(n, 0u);
        const std::size_t some = std::min<std::size_t>(pieces[0].iov_len, 7777);
        text.append(static_cast<const char*>(pieces[0].iov_base), some);
        out.sent(some);
    }
    const std::string one = "$100000\r\n" + value + "\r\n";
    EXPECT_TRUE(text == one + one);
}

TEST(Snapshot, ComesBackWholeOrNotAtAll) {
    served s;
    s.directory();
    const std::string path = s.server.snapshot_path();
    s({"SET", "string", std::string("a\0b", 3)});
    s({"SET", "ends", "v", "PXAT", "99999999999999"});
    s({"SET", "large", std::string(600'000, 'L')});
    for (int i = 0; i < 5000; ++i) {
        s({"HSET", "hash", "field-" + std::to_string(i), std::string(40, 'h')});
        s({"ZADD", "zset", std::to_string(i % 100) + ".5", "member-" + std::to_string(i)});
    }
    s({"SELECT", "3"});
    s({"SET", "elsewhere", "3"});
    s({"SELECT", "0"});
    ASSERT_EQ(s({"SAVE"}), "+OK\r\n");

    served other;
    const auto loaded = snapshot::read(other.server.keys, path);
    EXPECT_EQ(loaded.error, "");
    EXPECT_EQ(loaded.keys, 6u);
    for (const auto& words :
         std::vector<std::vector<std::string>>{{"GET", "string"},
                                               {"PEXPIRETIME", "ends"},
                                               {"GET", "large"},
                                               {"HLEN", "hash"},
                                               {"HGET", "hash", "field-4999"},
                                               {"ZRANGE", "zset", "0", "-1", "WITHSCORES"},
                                               {"DBSIZE"}})
        EXPECT_TRUE(other(words) == s(words)) << words[0] << " " << words.back();
    other({"SELECT", "3"});
    EXPECT_EQ(other({"GET", "elsewhere"}), "$1\r\n3\r\n");
    EXPECT_EQ(other.server.keys.used_bytes() > 0, true);

    std::ifstream in(path, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto refused = [&](const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        served nothing;
        const auto result = snapshot::read(nothing.server.keys, path);
        EXPECT_NE(result.error.find("is damaged at byte"), std::string::npos) << result.error;
        EXPECT_EQ(nothing({"DBSIZE"}), ":0\r\n") << "not half loaded";
        return result.error;
    };
    std::mt19937 random(5);
    for (int i = 0; i < 40; ++i) {
        std::string damaged = whole;
        damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
        refused(damaged);
        refused(whole.substr(0, random() % whole.size()));
    }
    refused(whole + "x");
    std::filesystem::remove_all(s.options.directory);
}

TEST(Transactions, WatchesAreBounded) {
    served s;
    ASSERT_EQ(s({"CONFIG", "SET", "client-query-buffer-limit", "1mb"}), "+OK\r\n");
    std::string reply;
    int watched = 0;
    for (; watched < 100'000; ++watched) {
        reply = s({"WATCH", "key-" + std::to_string(watched)});
        if (reply != "+OK\r\n") break;
        // Again is no more.
        ASSERT_EQ(s({"WATCH", "key-0"}), "+OK\r\n") << watched;
        if (watched == 3000) break;
    }
    EXPECT_EQ(watched, 3000) << reply;
    for (; watched < 100'000 && reply == "+OK\r\n"; ++watched)
        reply = s({"WATCH", "key-" + std::to_string(watched)});
    EXPECT_EQ(reply, "-ERR the watched keys are larger than client-query-buffer-limit\r\n");
    // Those that were watched still are.
    s({"MULTI"});
    s({"SET", "key-5", "x"});
    session second{2, "test:1", "test:1", -1};
    output out;
    const std::vector<std::string_view> set{"SET", "key-7", "v"};
    s.server.execute(second, set, out);
    EXPECT_EQ(s({"EXEC"}), "*-1\r\n");
    EXPECT_EQ(s({"WATCH", "key-1"}), "+OK\r\n");
    EXPECT_EQ(s({"UNWATCH"}), "+OK\r\n");
}

TEST(Settings, RefuseLimitsThatServeNobody) {
    served s;
    EXPECT_TRUE(s({"CONFIG", "SET", "client-query-buffer-limit", "0"}).starts_with("-ERR"));
    EXPECT_TRUE(s({"CONFIG", "SET", "client-query-buffer-limit", "1000"}).starts_with("-ERR"));
    EXPECT_EQ(s({"CONFIG", "SET", "client-query-buffer-limit", "1mb"}), "+OK\r\n");
}

TEST(Transactions, SeeWatchedKeysChange) {
    served s;
    session second{2, "test:1", "test:1", -1};
    const auto as_second = [&](std::vector<std::string_view> args) {
        output out;
        s.server.execute(second, args, out);
        return out.text();
    };
    s({"SET", "k", "1"});
    s({"WATCH", "k"});
    s({"MULTI"});
    s({"INCR", "k"});
    as_second({"SET", "k", "5"});
    EXPECT_EQ(s({"EXEC"}), "*-1\r\n");
    EXPECT_EQ(s({"GET", "k"}), "$1\r\n5\r\n");
    s({"WATCH", "k"});
    as_second({"FLUSHALL"});
    s({"MULTI"});
    s({"PING"});
    EXPECT_EQ(s({"EXEC"}), "*-1\r\n");
    s({"WATCH", "k"});
    as_second({"SET", "other", "5"});
    s({"MULTI"});
    s({"SET", "k", "6"});
    s({"UNWATCH"});
    s({"KEYS", "*"});
    EXPECT_EQ(s({"EXEC"}).substr(0, 11), "*3\r\n+OK\r\n+O");
}

TEST(WindowTimes, TellHowLongAKeyWasNotUsed) {
    window_times times;
    EXPECT_EQ(times.since(3, 1000), 0) << "no window has ended";
    times.note(1, 1000);
    EXPECT_EQ(times.since(0, 1500), 0) << "it is in use";
    EXPECT_EQ(times.since(1, 1500), 500);
    EXPECT_EQ(times.since(7, 1500), 500) << "all that is known";
    times.note(1, 1500);
    times.note(2, 3000); // a longer one
    times.note(4, 4000); // two between two looks
    EXPECT_EQ(times.since(1, 4000), 0);
    EXPECT_EQ(times.since(2, 4000), 0);
    EXPECT_EQ(times.since(3, 4000), 1000);
    EXPECT_EQ(times.since(4, 4100), 3100);
    EXPECT_EQ(times.since(6, 4100), 3100 + 2 * 1000) << "as long as those known are on average";
    for (std::uint64_t w = 5; w < 200; ++w)
        times.note(w, 4000 + static_cast<std::int64_t>(w - 4) * 10);
    const std::int64_t now = 4000 + 195 * 10;
    EXPECT_EQ(times.since(window_times::known, now), (window_times::known - 1) * 10);
    EXPECT_EQ(times.since(window_times::known + 5, now), (window_times::known + 4) * 10);
    times.note(1000, now + 5);
    EXPECT_EQ(times.since(window_times::known, now + 7), 2) << "many at once";
}

} // namespace

} // namespace crestdb::server
