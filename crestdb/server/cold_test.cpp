// SPDX-License-Identifier: MIT
//
// What commands touch is read in before they run; no lock is held while the disk is waited for; what cannot
// be read stands in nobody's way. The disk is played by `disk`: everything is on it until it is read.
#include "crestdb/server/begun_reads.hpp"
#include "crestdb/server/cold_reader.hpp"
#include "crestdb/server/served.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <set>

namespace crestdb::server {

namespace {

constexpr std::uintptr_t page = 4096;

class disk final : public cold_memory {
  public:
    explicit disk(keyspace& its_keys) : keys(its_keys) {}
    bool any_may_leave() const noexcept override { return true; }
    bool may_leave(const void* object) const noexcept override {
        return managing_runtime().heap_of(object) >= 0;
    }
    bool is_resident(const void* begin, std::size_t bytes) const noexcept override {
        const auto at = reinterpret_cast<std::uintptr_t>(begin);
        for (std::uintptr_t p = at; p < at + bytes; p += page)
            if (!resident.contains(p)) return false;
        return true;
    }
    bool read_in(void* begin, std::size_t bytes) noexcept override {
        ++reads;
        if (at_read) at_read();
        for (unsigned p = 0; p < keyspace::parts; ++p) {
            if (!keys.lock_of(p).try_lock()) {
                ++reads_under_a_lock;
                continue;
            }
            keys.lock_of(p).unlock();
        }
        const auto at = reinterpret_cast<std::uintptr_t>(begin);
        if (reads == broken_read || broken) return false;
        if (forgets) return true;
        for (std::uintptr_t p = at; p < at + bytes; p += page) resident.insert(p);
        return true;
    }
    bool begin_read(void* begin, std::size_t bytes) noexcept override {
        if (refuses) return false;
        begun.push_back({begin, bytes});
        return true;
    }
    // What was begun first is there.
    void ends_one() {
        const auto at = reinterpret_cast<std::uintptr_t>(begun.front().begin);
        for (std::uintptr_t p = at; p < at + begun.front().bytes; p += page) resident.insert(p);
        begun.erase(begun.begin());
    }
    bool has(const managed_slot& slot) const {
        const auto at = reinterpret_cast<std::uintptr_t>(slot.peek());
        const std::uintptr_t begin = at & ~(page - 1);
        return is_resident(reinterpret_cast<void*>(begin), page);
    }

    keyspace& keys;
    std::set<std::uintptr_t> resident;
    int reads = 0, reads_under_a_lock = 0, broken_read = -1;
    std::function<void()> at_read; // what others do meanwhile
    bool broken = false;
    bool refuses = false; // to begin a read
    std::vector<page_range> begun;
    bool forgets = false; // memory is far too small: what was read has left again
};

// Objects so large that each has pages of its own.
std::string wide(const std::string& name) { return name + std::string(9000, '.'); }

struct cold_server : served {
    cold_server() { forget(); }
    void forget() {
        auto made = std::make_unique<disk>(server.keys);
        cold = made.get();
        reader.emplace(server.keys, options, std::move(made), [this] { return server.save(); });
    }
    std::optional<cold_reader::wanted> look(const std::vector<std::string>& words,
                                            const page_range* begun = nullptr) {
        const std::vector<std::string_view> args(words.begin(), words.end());
        return reader->look(client, args, begun);
    }
    // Slots of keys and members whose objects were used since the last window, `used`, and are not resident.
    // Not those of objects that are new since all_grow_old().
    int touched_on_disk(int* used = nullptr) {
        int wrong = 0, all = 0;
        const std::uint64_t window = server.keys.window;
        const auto count = [&](managed_slot& slot) {
            if (slot.idle_windows(window) > 0) return false;
            if (!old.contains({slot.peek(), &slot})) return true;
            ++all;
            wrong += !cold->has(slot);
            return true;
        };
        std::vector<managed_slot*> keys;
        each_key([&](managed_slot& slot) {
            if (count(slot)) keys.push_back(&slot);
        });
        const managed_scope scope;
        for (managed_slot* slot : keys) {
            auto* r = static_cast<record*>(slot->get());
            if (r->kind() != record_kind::string) each_member(r->kind(), r->collection(), count);
        }
        if (used != nullptr) *used = all;
        return wrong;
    }
    template <class Visit>
    void each_key(Visit&& visit) {
        std::uint64_t cursor = 0;
        do {
            cursor = server.keys.scan_slots(0, cursor, visit);
        } while (cursor != 0);
    }
    template <class Visit>
    static void each_member(record_kind kind, void* collection, Visit&& visit) {
        const auto members = [&](auto& of) {
            std::uint32_t at = 0;
            do {
                at = of.scan_slots(at, visit);
            } while (at != 0);
        };
        if (kind == record_kind::hash) members(*static_cast<hash_value*>(collection));
        if (kind == record_kind::sorted_set) members(*static_cast<sorted_set*>(collection));
    }
    void all_grow_old() {
        std::vector<std::pair<record_kind, void*>> collections;
        each_key([&](managed_slot& slot) {
            auto* r = static_cast<record*>(slot.get());
            if (r->kind() != record_kind::string)
                collections.emplace_back(r->kind(), r->collection());
        });
        for (int i = 0; i < 3; ++i) window();
        old.clear();
        const auto note = [&](managed_slot& slot) { old.emplace(slot.peek(), &slot); };
        each_key(note);
        for (const auto& [kind, collection] : collections) each_member(kind, collection, note);
    }

    // Where objects and their slots lie since. A slot that a table has put elsewhere says nothing of its use.
    std::set<std::pair<const void*, managed_slot*>> old;
    disk* cold = nullptr;
    std::optional<cold_reader> reader;
    gathered found;
};

void fill(cold_server& s) {
    for (int i = 0; i < 300; ++i) {
        const std::string n = std::to_string(i);
        s({"HSET", "hash", "f" + n, wide(n)});
        s({"ZADD", "ties", "1", wide("member-" + n)});
        s({"ZADD", "scores", n, wide("m" + n)});
        s({"SET", "k" + n, wide(n)});
        if (i < 20) s({"HSET", "small", "f" + n, wide(n)});
        if (i < 20) s({"ZADD", "smallset", n, wide("m" + n)});
    }
}

TEST(ColdData, IsReadBeforeACommandTouchesIt) {
    cold_server s;
    fill(s);
    const std::string m7 = wide("member-7"), m250 = wide("member-250");
    const std::vector<std::vector<std::string>> requests{
        {"GET", "k1"},
        {"MGET", "k1", "k2", "k3"},
        {"SET", "k4", "short"},
        {"APPEND", "k5", "x"},
        {"TTL", "k6"},
        {"TYPE", "hash"},
        {"EXPIRE", "k7", "1000"},
        {"EXPIRE", "hash", "1000"},
        {"RENAME", "k8", "k9"},
        {"COPY", "k10", "copied"},
        {"COPY", "hash", "copied2"},
        {"COPY", "scores", "copied3"},
        {"OBJECT", "FREQ", "k11"},
        {"OBJECT", "ENCODING", "k11"},
        {"MEMORY", "USAGE", "k12"},
        {"HGET", "hash", "f1"},
        {"HMGET", "hash", "f2", "f3", "nothing"},
        {"HSET", "hash", "f4", "v", "f5", "v", "new", "v"},
        {"HDEL", "hash", "f6", "f7"},
        {"HINCRBY", "hash", "f8", "1"},
        {"HSTRLEN", "hash", "f9"},
        {"HLEN", "hash"},
        {"HSCAN", "hash", "0", "COUNT", "30"},
        {"HKEYS", "hash"},
        {"HGETALL", "hash"},
        {"ZSCORE", "ties", m7},
        {"ZMSCORE", "ties", m7, m250},
        {"ZRANK", "ties", m7},
        {"ZREVRANK", "ties", m250},
        {"ZADD", "ties", "1", wide("member-500"), "2", m7},
        {"ZADD", "scores", "GT", "500", wide("m1"), "17", wide("m2")},
        {"ZINCRBY", "ties", "0.5", m250},
        {"ZREM", "ties", m250, wide("member-9")},
        {"ZCOUNT", "scores", "10", "20"},
        {"ZLEXCOUNT", "ties", "[member-1", "[member-2"},
        {"ZRANGE", "scores", "10", "20"},
        {"ZREVRANGE", "scores", "10", "20"},
        {"ZRANGE", "scores", "-5", "-1", "WITHSCORES"},
        {"ZRANGEBYSCORE", "scores", "10", "(50", "LIMIT", "5", "7"},
        {"ZREVRANGEBYSCORE", "scores", "50", "10", "LIMIT", "5", "7"},
        {"ZRANGE", "ties", "[member-1", "[member-15", "BYLEX"},
        {"ZRANGE", "ties", "[member-15", "[member-1", "BYLEX", "REV", "LIMIT", "3", "4"},
        {"ZRANGEBYLEX", "ties", "[member-1", "+", "LIMIT", "2", "3"},
        {"ZRANGE", "ties", "0", "-1"},
        {"ZSCAN", "scores", "0", "COUNT", "30"},
        {"SCAN", "0", "COUNT", "50"},
        {"DEL", "small"},
        {"SET", "smallset", "a string now"},
    };
    for (const auto& request : requests) {
        SCOPED_TRACE(request[0] + " " + request[1]);
        s.forget();
        s.all_grow_old();
        int used = 0;
        ASSERT_EQ(s.touched_on_disk(&used), 0);
        ASSERT_EQ(used, 0) << "all are old";
        if (const auto wanted = s.look(request)) {
            EXPECT_TRUE(s.reader->read_now(*wanted, s.found));
        }
        EXPECT_EQ(s.cold->reads_under_a_lock, 0);
        // Looking is a use of what leads somewhere only.
        EXPECT_EQ(s.touched_on_disk(), 0) << "by the look itself";
        s(request);
        EXPECT_EQ(s.touched_on_disk(&used), 0) << "of " << used;
        EXPECT_FALSE(s.look({"GET", "nothing"}).has_value());
        if (request[0] == "GET" || request[0] == "HGET") {
            EXPECT_LE(s.cold->reads, 2);
        }
        if (request[0] == "HGETALL") {
            EXPECT_GT(used, 290);
        }
    }
    s.forget();
    s.all_grow_old();
    s({"MULTI"});
    s({"KEYS", "k*"});
    ASSERT_TRUE(s.look({"EXEC"}).has_value());
    EXPECT_TRUE(s.reader->read_now(*s.look({"EXEC"}), s.found));
    EXPECT_EQ(s.cold->reads_under_a_lock, 0);
    EXPECT_GT(s({"EXEC"}).size(), 2000u);
    EXPECT_EQ(s.touched_on_disk(), 0);
    s.forget();
    s.all_grow_old();
    s({"WATCH", "k20"});
    s({"MULTI"});
    s({"HGETALL", "hash"});
    s({"GET", "k21"});
    s({"ZRANK", "ties", m7});
    EXPECT_FALSE(s.look({"GET", "k22"}).has_value()) << "it is only queued";
    const auto wanted = s.look({"EXEC"});
    ASSERT_TRUE(wanted.has_value());
    EXPECT_TRUE(s.reader->read_now(*wanted, s.found));
    EXPECT_EQ(s.cold->reads_under_a_lock, 0);
    EXPECT_TRUE(s({"EXEC"}).starts_with("*3"));
    int used = 0;
    EXPECT_EQ(s.touched_on_disk(&used), 0);
    EXPECT_GT(used, 290);
}

// KEYS and RANDOMKEY come across more than may be resident: they are done where the disk is waited for.
TEST(ColdData, KeysAreFoundByTheReader) {
    cold_server s;
    fill(s);
    s({"SET", wide("a long key"), "v"});
    s({"SET", "over", wide("v"), "PX", "1"});
    const auto gathered_by = [&](const std::vector<std::string>& request) {
        s.forget();
        s.all_grow_old();
        const auto wanted = s.look(request);
        EXPECT_TRUE(wanted.has_value());
        s.found = {};
        EXPECT_TRUE(s.reader->read_now(*wanted, s.found));
        EXPECT_TRUE(s.found.complete);
        EXPECT_EQ(s.cold->reads_under_a_lock, 0);
        EXPECT_EQ(s.touched_on_disk(), 0);
        s.client.found = &s.found;
        const std::string reply = s(request);
        s.client.found = nullptr;
        EXPECT_EQ(s.touched_on_disk(), 0) << "by the command";
        return reply;
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    update_now();
    EXPECT_TRUE(gathered_by({"KEYS", "*"}).starts_with("*306\r\n")); // all but the one that is over
    EXPECT_EQ(gathered_by({"KEYS", "k12?"}).substr(0, 5), "*10\r\n");
    EXPECT_EQ(gathered_by({"KEYS", "a long*"}), "*1\r\n$9010\r\n" + wide("a long key") + "\r\n");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(gathered_by({"RANDOMKEY"})[0], '$');
    EXPECT_LE(s.cold->reads, 4) << "of the one key, and of the one that is over";
    // What cannot be read is an error of the request, and of no other.
    s.forget();
    s.cold->broken = true;
    s.found = {};
    EXPECT_FALSE(s.reader->read_now(*s.look({"KEYS", "*"}), s.found));
    EXPECT_FALSE(s.reader->read_now(*s.look({"RANDOMKEY"}), s.found));
    s({"FLUSHALL"});
    EXPECT_TRUE(s.reader->read_now(*s.look({"RANDOMKEY"}), s.found));
    EXPECT_TRUE(s.found.keys.empty());
}

// In EXEC it reads what it comes across itself: an error of the device is one of that command.
TEST(ColdData, ThatCannotBeReadIsAnErrorOfRandomkeyInExec) {
    cold_server s;
    for (int i = 0; i < 200; ++i) s({"SET", "k" + std::to_string(i), wide("v")});
    const auto exec = [&](bool cold_is_broken) {
        s({"MULTI"});
        s({"DBSIZE"});
        s({"RANDOMKEY"});
        s.forget();
        s.all_grow_old();
        s.cold->broken = cold_is_broken;
        s.server.cold = [&] { return s.reader->memory(); };
        const std::string reply = s({"EXEC"});
        EXPECT_EQ(s.touched_on_disk(), 0);
        return reply;
    };
    EXPECT_TRUE(exec(false).starts_with("*2\r\n:200\r\n$"));
    EXPECT_EQ(exec(true),
              "*2\r\n:200\r\n-ERR the key's data could not be read from the cold file\r\n");
    s.cold->broken = false;
    EXPECT_TRUE(exec(false).starts_with("*2\r\n:200\r\n$")) << "no lock is kept";
}

// A stop does not wait until enough is evicted, in whichever thread that is.
TEST(ColdData, EvictionEndsWhenTheServerStops) {
    cold_server s;
    for (int i = 0; i < 200; ++i) s({"SET", "k" + std::to_string(i), wide("v")});
    s.all_grow_old();
    const std::int64_t used = s.server.keys.used_bytes();
    s({"CONFIG", "SET", "maxmemory", std::to_string(used / 2), "maxmemory-policy", "allkeys-lru"});
    s.server.stopping = true;
    EXPECT_TRUE(s({"SET", "new", "v"}).starts_with("-OOM"));
    EXPECT_EQ(s.server.keys.count.evicted, 0u) << "by the I/O thread";
    const auto wanted = s.look({"SET", "new", "v"});
    ASSERT_TRUE(wanted.has_value());
    s.reader->stop();
    s.reader->read_now(*wanted, s.found);
    EXPECT_EQ(s.server.keys.count.evicted, 0u) << "by the reader";
    s.server.stopping = false;
    EXPECT_EQ(s({"SET", "new", "v"}), "+OK\r\n");
    EXPECT_GT(s.server.keys.count.evicted, 90u);
}

TEST(ColdData, OfOneKeyIsReadWithoutAThread) {
    cold_server s;
    s({"SET", "k", "v"});
    s({"SET", "wide", std::string(17000, '.')});
    for (int i = 0; i < 3; ++i) s({"HSET", "h", "f" + std::to_string(i), wide("v")});
    s.all_grow_old();
    const page_range none{nullptr, 0};
    const auto begins = [&](const std::vector<std::string>& words) {
        const auto wanted = s.look(words, &none);
        EXPECT_TRUE(wanted.has_value()) << words[0];
        if (!wanted.has_value()) return false;
        EXPECT_NE(wanted->pages.bytes == 0, wanted->parts.empty()) << "one or the other";
        return wanted->pages.bytes != 0;
    };
    EXPECT_TRUE(begins({"GET", "k"}));
    EXPECT_TRUE(begins({"SET", "k", "w"}));
    EXPECT_TRUE(begins({"HGET", "h", "f1"}));
    EXPECT_FALSE(begins({"MGET", "k", "h"})) << "several keys";
    EXPECT_FALSE(begins({"GET", "wide"})) << "many pages";
    EXPECT_FALSE(begins({"HGETALL", "h"})) << "many objects";
    EXPECT_FALSE(begins({"HMGET", "h", "f0", "f1", "f2", "f3", "f4", "f5", "f6"})) << "many words";
    EXPECT_EQ(s.look({"GET", "k"})->pages.bytes, 0u) << "nobody would begin it";
    s({"MULTI"});
    s({"GET", "k"});
    EXPECT_FALSE(begins({"EXEC"}));
    s({"DISCARD"});
    s.options.maxmemory = 1;
    s.options.policy_of_eviction = eviction::allkeys_lru;
    EXPECT_FALSE(begins({"SET", "k", "w"})) << "it needs room";
    s.options.maxmemory = 0;
    // First the key, and when that is there, the field. What was read is not looked at again.
    page_range pages = s.look({"HGET", "h", "f1"}, &none)->pages;
    const auto field = s.look({"HGET", "h", "f1"}, &pages);
    ASSERT_TRUE(field.has_value());
    EXPECT_NE(field->pages.begin, pages.begin);
    pages = s.look({"GET", "k"}, &none)->pages;
    EXPECT_FALSE(s.look({"GET", "k"}, &pages).has_value());
    pages.bytes += page;
    EXPECT_TRUE(s.look({"GET", "k"}, &pages).has_value()) << "others were read";
    EXPECT_EQ(s.cold->reads, 0);
}

TEST(BegunReads, OfARequestAreFewAndEndWithOneThatIsLate) {
    begun_for_request reads;
    EXPECT_FALSE(reads.any());
    char memory[1];
    for (std::size_t bytes = 1; bytes <= begun_for_request::most; ++bytes) {
        ASSERT_NE(reads.last(), nullptr);
        EXPECT_EQ(reads.last()->bytes, bytes - 1);
        reads.add({memory, bytes});
        EXPECT_TRUE(reads.any());
    }
    EXPECT_EQ(reads.last(), nullptr);
    reads = {};
    EXPECT_FALSE(reads.any());
    EXPECT_NE(reads.last(), nullptr);
    reads.add({memory, 1});
    reads.was_late();
    EXPECT_EQ(reads.last(), nullptr);
}

TEST(BegunReads, AreNotTooManyAndNotOfADiskThatIsSlow) {
    cold_server s;
    begun_reads reads(*s.cold);
    const auto pages_of = [](std::uint64_t client) {
        return page_range{reinterpret_cast<void*>(client * page), page};
    };
    auto now = begun_reads::clock::time_point{} + std::chrono::hours(1);
    const auto begins = [&](std::uint64_t client) {
        return reads.begin(pages_of(client), client, now);
    };
    const auto all_end = [&](bool in_time) {
        while (in_time && !s.cold->begun.empty()) s.cold->ends_one();
        s.cold->begun.clear();
        if (!in_time) now += begun_reads::patience;
        reads.poll(now, [&](std::uint64_t, bool is_here) { EXPECT_EQ(is_here, in_time); });
        EXPECT_TRUE(reads.empty());
    };
    std::uint64_t client = 1;
    while (begins(client)) ++client;
    EXPECT_EQ(client, 1 + begun_reads::most_at_once);
    all_end(true);
    // Those that are late, but for one.
    for (unsigned i = 1; i < 2 * begun_reads::late_in_a_row; ++i) {
        ASSERT_TRUE(begins(++client));
        all_end(i == begun_reads::late_in_a_row);
    }
    ASSERT_TRUE(begins(++client));
    all_end(false);
    EXPECT_FALSE(begins(++client)) << "the disk is slow";
    const auto earlier_ones_are_there = [&] {
        for (std::uint64_t i = 1; i < client; ++i) s.cold->resident.insert(i * page);
    };
    const auto refuses_for = [&](std::chrono::milliseconds pause) {
        earlier_ones_are_there();
        now += pause - std::chrono::milliseconds(1);
        EXPECT_FALSE(begins(client)) << pause.count() << " ms";
        now += std::chrono::milliseconds(1);
        ASSERT_TRUE(begins(client)) << "not for ever";
        all_end(false);
    };
    const auto more_are_late = [&](unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            ASSERT_TRUE(begins(++client));
            all_end(false);
        }
    };
    // Each time twice as long.
    auto pause = begun_reads::least_pause;
    for (; pause < begun_reads::most_pause; pause *= 2) {
        refuses_for(pause);
        more_are_late(begun_reads::late_in_a_row - 1);
        EXPECT_FALSE(begins(++client));
    }
    EXPECT_EQ(pause, begun_reads::most_pause);
    refuses_for(pause);
    more_are_late(begun_reads::late_in_a_row - 1);
    refuses_for(pause);
    // Until the disk is as fast as it was. Then a moment in which it stops makes many late: that is once.
    ASSERT_TRUE(begins(++client));
    all_end(true);
    const unsigned together = 3 * begun_reads::late_in_a_row + 1;
    for (unsigned i = 0; i < together; ++i) ASSERT_TRUE(begins(++client));
    all_end(false);
    ++client;
    refuses_for(begun_reads::least_pause);
    more_are_late(begun_reads::late_in_a_row - 2);
    ASSERT_TRUE(begins(++client)) << "those of the pause count for nothing after it";
    all_end(false);
    // What the disk has not done is still in its queue: the pause begins anew, twice as long.
    EXPECT_FALSE(begins(++client));
    earlier_ones_are_there();
    s.cold->resident.erase(page * (client - 3));
    pause = 2 * begun_reads::least_pause;
    const auto since = now;
    for (; now - since < begun_reads::most_pause / 2; pause *= 2) {
        now += pause;
        EXPECT_FALSE(begins(client)) << pause.count();
    }
    now += pause;
    EXPECT_TRUE(begins(client)) << "a page that cannot be read is not waited for";
}

// Of reads that were begun before a pause, one that is in time says nothing of the disk after it.
TEST(BegunReads, BeforeAPauseDoNotEndIt) {
    cold_server s;
    begun_reads reads(*s.cold);
    auto now = begun_reads::clock::time_point{} + std::chrono::hours(1);
    std::uint64_t client = 0;
    const auto begin = [&] {
        ++client;
        return reads.begin({reinterpret_cast<void*>(client * page), page}, client, now);
    };
    const auto poll = [&] { reads.poll(now, [](std::uint64_t, bool) {}); };
    for (int pauses = 0; pauses < 3; ++pauses) {
        for (unsigned i = 0; i < begun_reads::late_in_a_row; ++i) ASSERT_TRUE(begin()) << pauses;
        now += begun_reads::patience / 2;
        ASSERT_TRUE(begin()) << "in time";
        now += begun_reads::patience / 2;
        poll();
        EXPECT_FALSE(reads.empty());
        s.cold->resident.insert(client * page);
        poll();
        EXPECT_TRUE(reads.empty());
        for (std::uint64_t i = 1; i <= client; ++i) s.cold->resident.insert(i * page);
        now += begun_reads::least_pause * (1 << pauses) - std::chrono::milliseconds(1);
        EXPECT_FALSE(begin()) << pauses;
        now += std::chrono::milliseconds(1);
    }
}

TEST(BegunReads, EndWhenTheyAreThereOrTakeTooLong) {
    cold_server s;
    begun_reads reads(*s.cold);
    std::vector<std::pair<std::uint64_t, bool>> ended;
    std::uint64_t again = 0; // begins another when it ends
    const auto pages_of = [](std::uint64_t client) {
        return page_range{reinterpret_cast<void*>(client * page), page};
    };
    const auto now = begun_reads::clock::time_point{} + std::chrono::hours(1);
    const auto poll = [&](std::chrono::microseconds after) {
        ended.clear();
        reads.poll(now + after, [&](std::uint64_t client, bool is_here) {
            ended.emplace_back(client, is_here);
            if (client == again) {
                EXPECT_TRUE(reads.begin(pages_of(9), 9, now + after));
            }
        });
    };
    using std::chrono::microseconds;
    EXPECT_TRUE(reads.empty());
    for (std::uint64_t client = 1; client <= 3; ++client)
        EXPECT_TRUE(reads.begin(pages_of(client), client, now));
    s.cold->refuses = true;
    EXPECT_FALSE(reads.begin(pages_of(4), 4, now));
    s.cold->refuses = false;
    EXPECT_EQ(s.cold->begun.size(), 3u);
    poll(microseconds(1));
    EXPECT_TRUE(ended.empty());
    s.cold->ends_one();
    again = 1;
    poll(microseconds(2));
    EXPECT_EQ(ended, (std::vector<std::pair<std::uint64_t, bool>>{{1, true}}));
    poll(microseconds(3));
    EXPECT_TRUE(ended.empty()) << "each ends once";
    poll(begun_reads::patience - microseconds(1));
    EXPECT_TRUE(ended.empty());
    s.cold->ends_one();
    poll(begun_reads::patience + microseconds(1));
    std::sort(ended.begin(), ended.end());
    EXPECT_EQ(ended, (std::vector<std::pair<std::uint64_t, bool>>{{2, true}, {3, false}}));
    EXPECT_FALSE(reads.empty()) << "one was begun by another's end";
    s.cold->begun.erase(s.cold->begun.begin());
    s.cold->ends_one();
    poll(begun_reads::patience);
    EXPECT_EQ(ended, (std::vector<std::pair<std::uint64_t, bool>>{{9, true}}));
    EXPECT_TRUE(reads.empty());
}

TEST(ColdData, IsNotReadForWhomTheServerDoesNotKnow) {
    cold_server s;
    s({"SET", "k", wide("v")});
    s.all_grow_old();
    ASSERT_TRUE(s.look({"GET", "k"}).has_value());
    s.options.set_password("secret");
    s.client.authenticated = false;
    EXPECT_FALSE(s.look({"GET", "k"}).has_value());
}

TEST(ColdData, ThatCannotBeReadIsAnErrorOfItsKey) {
    cold_server s;
    s({"SET", "a", wide("v")});
    s.all_grow_old();
    s.cold->broken = true;
    const auto wanted = s.look({"GET", "a"});
    ASSERT_TRUE(wanted.has_value());
    EXPECT_FALSE(s.reader->read_now(*wanted, s.found));
    // And what ends behind it ends. A hash: its record says where the rest is.
    for (int i = 0; i < 50; ++i) {
        const std::string key = wide("ends-" + std::to_string(i));
        s({"HSET", key, "f", "v"});
        s({"PEXPIRE", key, "600000"});
    }
    s.all_grow_old();
    s.cold->broken = false;
    s.cold->reads = 0;
    s.cold->broken_read = 7;
    const std::int64_t later = now_ms() + 1'000'000;
    EXPECT_EQ(s.server.keys.expire_some(1000, later, s.cold), 49u);
    EXPECT_EQ(s.server.keys.expire_some(1000, later, s.cold), 0u);
    EXPECT_EQ(s({"DBSIZE"}), ":2\r\n") << "a, and the one that cannot be read";
    EXPECT_EQ(s.cold->reads_under_a_lock, 0);
}

// While the disk is read for one key, another that had ended begins anew.
TEST(ColdData, ThatBeginsAnewDoesNotEnd) {
    cold_server s;
    const std::int64_t soon = now_ms() + 100'000;
    const std::string key = wide("hash"), end = std::to_string(soon);
    // A key that must be read, and in its part, which is looked at in one go, one that need not be and ends after it.
    s({"HSET", key, "f", "v"});
    s({"PEXPIREAT", key, end});
    std::string other;
    for (int i = 0;
         other.empty() || keyspace::id_of(0, other).part != keyspace::id_of(0, key).part;)
        other = "k" + std::to_string(i++);
    s({"SET", other, "v", "PXAT", std::to_string(soon + 5000)});
    s.all_grow_old();
    s.cold->at_read = [&] { s({"PEXPIREAT", other, std::to_string(soon + 10'000'000)}); };
    EXPECT_EQ(s.server.keys.expire_some(1000, soon + 10'000, s.cold), 1u);
    EXPECT_GT(s.cold->reads, 0);
    EXPECT_EQ(s({"EXISTS", other}), ":1\r\n");
    EXPECT_EQ(s.server.keys.expiring(0), 1u);
    s.cold->at_read = nullptr;
}

TEST(ColdData, IsEvictedWithoutALockWhileTheDiskIsRead) {
    cold_server s;
    // When they end is in their records, and what has an end must be taken out of that order.
    for (int i = 0; i < 200; ++i) s({"SET", "k" + std::to_string(i), wide("v"), "PX", "100000000"});
    s.all_grow_old();
    const std::int64_t used = s.server.keys.used_bytes();
    s.cold->broken = true;
    EXPECT_FALSE(s.server.keys.make_room(used / 2, eviction::allkeys_lru, s.cold));
    EXPECT_EQ(s.server.keys.count.evicted, 0u);
    s.cold->broken = false;
    // A request that writes waits until a thread of the reader has made room.
    s({"CONFIG", "SET", "maxmemory", std::to_string(used / 2), "maxmemory-policy", "allkeys-lru"});
    const auto wanted = s.look({"SET", "new", "v"});
    ASSERT_TRUE(wanted.has_value());
    EXPECT_TRUE(wanted->room);
    EXPECT_TRUE(s.reader->read_now(*wanted, s.found));
    EXPECT_GT(s.server.keys.count.evicted, 90u);
    EXPECT_LE(s.server.keys.used_bytes(), used / 2);
    EXPECT_EQ(s.cold->reads_under_a_lock, 0);
}

// A device error of what a command comes across, or of what EXEC does, is an error of that request.
TEST(ColdData, ThatCannotBeReadIsAnErrorOfWhatNeedsIt) {
    cold_server s;
    fill(s);
    for (const std::vector<std::string>& request : std::vector<std::vector<std::string>>{
             {"HGETALL", "hash"}, {"ZRANGE", "scores", "0", "-1"}, {"SCAN", "0"}}) {
        SCOPED_TRACE(request[0]);
        s.forget();
        s.all_grow_old();
        s.cold->broken_read = 4; // behind the key's record
        const auto wanted = s.look(request);
        ASSERT_TRUE(wanted.has_value());
        EXPECT_FALSE(s.reader->read_now(*wanted, s.found));
        EXPECT_EQ(s.cold->reads_under_a_lock, 0);
    }
    s.forget();
    s.all_grow_old();
    s({"MULTI"});
    s({"SET", "k1", "short"});
    s({"HGETALL", "hash"});
    s.cold->broken_read = 50;
    EXPECT_FALSE(s.reader->read_now(*s.look({"EXEC"}), s.found));
    s({"DISCARD"});
    EXPECT_TRUE(s({"GET", "k1"}).starts_with("$900")) << "nothing of it was done";
}

// KEYS in EXEC of a keyspace that memory cannot hold: reading all of it again and again would not help.
TEST(ColdData, ThatDoesNotFitIsNotReadForEver) {
    cold_server s;
    for (int i = 0; i < 600; ++i) s({"SET", "k" + std::to_string(i), wide("v")});
    s.all_grow_old();
    s.cold->forgets = true;
    s({"MULTI"});
    s({"KEYS", "*"});
    const auto wanted = s.look({"EXEC"});
    ASSERT_TRUE(wanted.has_value());
    EXPECT_TRUE(s.reader->read_now(*wanted, s.found));
    EXPECT_GE(s.cold->reads, 600);
    EXPECT_LE(s.cold->reads, 3 * 600);
    s({"DISCARD"});
}

// In pages that the kernel reads one by one when they are touched, as those of the file of COLD are.
TEST(ColdData, OfManyPagesIsNotReadPageByPage) {
    constexpr std::size_t pages = 256, bytes = pages * page;
    const std::string name = testing::TempDir() + "crestdb-pages-" + std::to_string(::getpid());
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ::unlink(name.c_str());
    const std::string text(bytes, 'x');
    ASSERT_EQ(::write(file, text.data(), bytes), static_cast<ssize_t>(bytes));
    ASSERT_EQ(::fsync(file), 0);
    void* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    ASSERT_NE(begin, MAP_FAILED);
    ASSERT_EQ(::madvise(begin, bytes, MADV_RANDOM), 0);
    ASSERT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    const std::unique_ptr<cold_memory> memory = kernel_cold_memory();
    const bool has_left = !memory->is_resident(begin, page);
    rusage before{}, after{};
    ASSERT_EQ(::getrusage(RUSAGE_THREAD, &before), 0);
    EXPECT_TRUE(memory->begin_read(begin, page));
    for (int tries = 0; tries < 100'000 && !memory->is_resident(begin, page); ++tries)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    EXPECT_TRUE(memory->is_resident(begin, page)) << "nobody waits, and it is read";
    EXPECT_TRUE(memory->read_in(begin, bytes));
    ASSERT_EQ(::getrusage(RUSAGE_THREAD, &after), 0);
    EXPECT_TRUE(memory->is_resident(begin, bytes));
    ::munmap(begin, bytes);
    ::close(file);
    if (!has_left) GTEST_SKIP() << testing::TempDir() << " has no disk";
    EXPECT_LE(after.ru_majflt - before.ru_majflt, static_cast<long>(pages / 8));
}

// A disk for several threads, which reads nothing but one object before it is told to, or before `all` threads wait.
class gated_disk final : public cold_memory {
  public:
    explicit gated_disk(unsigned all) : all_(all) {}
    bool any_may_leave() const noexcept override { return true; }
    bool may_leave(const void* object) const noexcept override {
        return managing_runtime().heap_of(object) >= 0;
    }
    bool is_resident(const void* begin, std::size_t) const noexcept override {
        const std::lock_guard hold(lock_);
        return is_open_ || begin == ready_;
    }
    bool read_in(void* begin, std::size_t) noexcept override {
        std::unique_lock hold(lock_);
        if (begin == soon_) {
            ready_ = begin;
            return true;
        }
        // Nobody is left who could read the other one: the test fails, and ends.
        if (++waits_ == all_) open_now();
        changed_.notify_all();
        changed_.wait(hold, [this] { return is_open_; });
        return true;
    }
    void open() {
        const std::lock_guard hold(lock_);
        open_now();
    }
    void wait_for_readers(unsigned count) {
        std::unique_lock hold(lock_);
        changed_.wait(hold, [&] { return is_open_ || waits_ >= count; });
    }
    bool is_open() const {
        const std::lock_guard hold(lock_);
        return is_open_;
    }
    void read_soon(const managed_slot& slot) {
        const auto at = reinterpret_cast<std::uintptr_t>(slot.peek());
        soon_ = reinterpret_cast<const void*>(at & ~(page - 1));
    }

  private:
    void open_now() {
        is_open_ = true;
        changed_.notify_all();
    }
    mutable std::mutex lock_;
    std::condition_variable changed_;
    const void *soon_ = nullptr, *ready_ = nullptr;
    bool is_open_ = false;
    unsigned waits_ = 0;
    const unsigned all_;
};

// Who was told, in turn.
struct told {
    std::mutex lock;
    std::condition_variable changed;
    std::vector<std::string> names;

    std::unique_ptr<cold_reader::waiter> waiter(const std::string& name) {
        struct one final : cold_reader::waiter {
            one(told& its, std::string of) : to(its), name(std::move(of)) {}
            void is_here(std::unique_ptr<cold_reader::waiter>, bool) noexcept override {
                const std::lock_guard hold(to.lock);
                to.names.push_back(name);
                to.changed.notify_all();
            }
            told& to;
            std::string name;
        };
        return std::make_unique<one>(*this, name);
    }
    void wait(std::size_t count) {
        std::unique_lock hold(lock);
        changed.wait(hold, [&] { return names.size() >= count; });
    }
};

struct threaded_cold_server : served {
    threaded_cold_server(unsigned threads, unsigned open_at) {
        for (int i = 0; i < 4000; ++i) (*this)({"SET", "k" + std::to_string(i), wide("v")});
        for (int i = 0; i < 3; ++i) window();
        auto made = std::make_unique<gated_disk>(open_at);
        cold = made.get();
        const keyspace::key_id id = keyspace::id_of(0, "k17");
        cold->read_soon(*server.keys.slot_of_hash(id));
        reader.emplace(server.keys, options, std::move(made), [this] { return server.save(); });
        reader->start(threads);
    }
    void ask(const std::vector<std::string>& words, const std::string& name) {
        const std::vector<std::string_view> args(words.begin(), words.end());
        auto wanted = reader->look(client, args);
        ASSERT_TRUE(wanted.has_value()) << name;
        ASSERT_TRUE(reader->read(std::move(*wanted), who.waiter(name)));
    }

    gated_disk* cold = nullptr;
    told who;
    std::optional<cold_reader> reader; // first to end
};

TEST(ColdData, OfOneKeyDoesNotWaitForThoseOfMany) {
    threaded_cold_server s(4, 4);
    for (int i = 0; i < 6; ++i) s.ask({"KEYS", "*"}, "keys");
    s.ask({"SCAN", "0", "COUNT", "1000"}, "scan");
    s.cold->wait_for_readers(2);
    s.ask({"GET", "k17"}, "get");
    s.who.wait(1);
    EXPECT_EQ(s.who.names[0], "get");
    EXPECT_FALSE(s.cold->is_open()) << "all threads had something long to do";
    s.cold->open();
    s.who.wait(8);
}

TEST(ColdData, KeysGiveTheirThreadBackNowAndThen) {
    threaded_cold_server s(1, 2);
    s.ask({"KEYS", "*"}, "keys");
    s.cold->wait_for_readers(1);
    s.ask({"GET", "k17"}, "get");
    s.cold->open();
    s.who.wait(2);
    EXPECT_EQ(s.who.names, (std::vector<std::string>{"get", "keys"}));
}

} // namespace

} // namespace crestdb::server
