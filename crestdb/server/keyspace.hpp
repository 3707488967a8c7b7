// SPDX-License-Identifier: MIT
//
// server::keyspace: all keys of all databases.
//
// 256 parts by hash, each with a mutex and, for each database, a scan_table of slots and an index of
// expiries. A command holds the mutexes of the parts that its keys are in, taken in ascending order,
// for as long as it runs; EXEC those of all its commands. So commands are atomic as in Redis, also
// those of several keys, and threads wait for each other only where they use the same part. What
// needs no atomicity over all keys (SCAN, KEYS, expiry, eviction) takes one part at a time.
// FLUSHALL and the fork of BGSAVE take all.
//
// Where the words "in the part" stand, the caller holds the part's lock (part_locks below) and is in a
// managed_scope.
//
// Memory: `used_bytes` counts records, by what the heap gives them, collections and tables.
//
// What is removed without being asked for (FLUSHALL, expiry, eviction) is not read for that where it is a string of its
// own, or a field or a member: it may be cold, and all of it would come back into DRAM. The place of a key says what its
// record is (`note`).
//
// Errors: std::bad_alloc; the keyspace is then as before.
#pragma once

#include "crestdb/server/collections.hpp"
#include "crestdb/server/expiry_index.hpp"
#include "crestdb/server/record.hpp"
#include "crestdb/server/scan_table.hpp"

#include <array>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace crestdb::server {

class cold_memory;

enum class eviction : std::uint8_t {
    none,
    allkeys_lru,
    allkeys_lfu,
    allkeys_random,
    volatile_lru,
    volatile_lfu,
    volatile_random,
    volatile_ttl,
};

std::optional<eviction> parse_eviction(std::string_view name) noexcept;
std::string_view name_of(eviction policy) noexcept;

// Set by the keyspace when a watched key changes, read by EXEC.
using watch_flag = std::shared_ptr<std::atomic<bool>>;

class keyspace {
  public:
    static constexpr unsigned parts = 256;
    static constexpr unsigned databases = 16;
    // A collection of more members than this is freed by another thread.
    static constexpr std::size_t free_at_once = 64;
    using part_set = std::bitset<parts>;

    struct key_id {
        std::string_view key;
        std::uint32_t hash;
        std::uint16_t part;
        std::uint16_t database;
    };
    static key_id id_of(unsigned database, std::string_view key) noexcept {
        const std::uint64_t hash = key_hash(key);
        return {key, static_cast<std::uint32_t>(hash), static_cast<std::uint16_t>(hash >> 56),
                static_cast<std::uint16_t>(database)};
    }

    struct counters {
        std::atomic<std::uint64_t> hits{0}, misses{0}, expired{0}, evicted{0}, dirty{0};
    };

    keyspace();
    ~keyspace();
    keyspace(const keyspace&) = delete;
    keyspace& operator=(const keyspace&) = delete;

    std::mutex& lock_of(unsigned part) noexcept { return parts_[part].lock; }

    // In the part: the key's record; null if there is none, or if it has ended, which removes it.
    record* find(const key_id& id);
    // The key's slot, without looking at its expiry and without an access.
    managed_slot* find_slot(const key_id& id);
    // In the part: a slot with that hash, without looking at its key.
    managed_slot* slot_of_hash(const key_id& id) {
        database_part* p = in(id);
        return p == nullptr ? nullptr : p->keys.find(id.hash, [](managed_slot&) { return true; });
    }
    // In the part: windows since the key was used, without using it; nothing if there is no key. It is
    // found by its part and 32 bits of hash, since comparing the key itself would be a use.
    std::optional<unsigned> idle_windows(const key_id& id);
    // In the part: the key refers to `made` from now on; an earlier record is freed. Takes `made` over
    // also when it throws.
    void put(const key_id& id, record* made);
    // In the part: true if the key was there.
    bool erase(const key_id& id);
    // In the part: `at` < 0: the key does not end. `r` is the key's record; the one that
    // it has afterwards is returned. Keeps value and collection.
    record* set_expiry(const key_id& id, record* r, std::int64_t at);
    // Both in their parts: the record of `from` goes, its collection stays, and `to` refers to `made`, which
    // has that collection, or the same value. When it throws nothing has changed, and `made` is
    // freed without its collection.
    void rename(const key_id& from, const key_id& to, record* made);
    // In the part: the key changed: watches are told, and the count of changes grows. It needs no memory: what
    // ran out of it half-way is told, too.
    void changed(const key_id& id) noexcept;
    void add_used(std::int64_t bytes) noexcept { used_.fetch_add(bytes); }

    // In the part. A watch is known by its name, by which the session keeps it. watch() throws std::bad_alloc;
    // nothing is watched then that was not.
    static std::string watch_name(const key_id& id);
    static key_id id_of_watch(std::string_view name) noexcept;
    void watch(const key_id& id, const std::string& name, const watch_flag& flag);
    void unwatch(const key_id& id, const std::string& name, const watch_flag& flag) noexcept;

    // One part's SCAN step from `cursor` of that database: visit(record&) for keys that have not
    // ended. Takes the part's lock unless `held` has it. Returns the next cursor, 0 at the end.
    std::uint64_t scan(unsigned database, std::uint64_t cursor, const part_set& held,
                       const std::function<void(record&)>& visit);
    // The same by slots, without looking at keys: visit(managed_slot&), also of those that have ended.
    std::uint64_t scan_slots(unsigned database, std::uint64_t cursor,
                             const std::function<void(managed_slot&)>& visit);
    // In the part.
    std::size_t size_in(unsigned part, unsigned database) const noexcept;
    std::size_t size(unsigned database) const noexcept { return sizes_[database].load(); }
    std::size_t expiring(unsigned database) const noexcept { return expiring_[database].load(); }
    // A key of the database, or nothing. Takes locks as scan() does. With `cold`, what it touches is read in first,
    // while it holds no lock of its own; a key that cannot be read is not chosen.
    // `unreadable`: set where a key that was tried could not be read from the cold file.
    std::optional<std::string> random_key(unsigned database, const part_set& held,
                                          cold_memory* cold = nullptr, bool* unreadable = nullptr);

    // All parts held: drops every key of the database, or of all; frees them in another thread.
    void flush(std::optional<unsigned> database);

    // All parts held, or in the child of a fork: visits every record; visit(database, record&).
    void each(const std::function<void(unsigned, record&)>& visit);
    // In the part.
    void each_in(unsigned part, const std::function<void(unsigned, record&)>& visit);

    // Removes keys that have ended, up to `most` of them; takes one part's lock at a time. Returns how
    // many. With `cold`, what it touches is read in first, while no lock is held; a key that cannot be read
    // stays until it is asked for.
    std::size_t expire_some(std::size_t most, std::int64_t now, cold_memory* cold = nullptr);

    std::int64_t used_bytes() const noexcept { return used_.load(); }
    // Removes keys by the policy until at most `limit` bytes are used. Takes one lock at a time: the
    // caller holds none. False: nothing more can be removed, or `given_up` is true. With `cold` as above.
    bool make_room(std::int64_t limit, eviction policy, cold_memory* cold = nullptr,
                   const std::atomic<bool>* given_up = nullptr);

    // The number of windows of the collector, for ages; kept by the timer of the server.
    std::atomic<std::uint64_t> window{0};
    counters count;

    // Bytes that a key takes, its record, table place and collection.
    std::size_t memory_of(record& r) const noexcept;

    static void destroy_collection(record_kind kind, void* collection) noexcept;
    // For commands that change collections: bytes it takes now.
    static std::size_t collection_bytes(const record& r) noexcept;

  private:
    struct database_part {
        scan_table<managed_slot> keys;
        expiry_index expiries;
    };
    // Noted of a key's place. `read_it`: it has a collection, or is sent to clients from where it lies.
    enum note : unsigned { read_it, string, string_with_expiry };
    // And, beside it, whether the record is long.
    static constexpr unsigned kind_noted = 3, long_noted = 4;
    static unsigned note_of(const record& r) noexcept;
    struct has_key {
        std::string_view key;
        bool operator()(managed_slot& slot) const noexcept;
    };
    // Watches by watch_name(), found also by the key itself.
    struct watch_hash {
        using is_transparent = void;
        std::size_t operator()(const key_id& id) const noexcept { return id.hash + id.database; }
        std::size_t operator()(std::string_view name) const noexcept {
            return (*this)(id_of_watch(name));
        }
    };
    struct watch_equal {
        using is_transparent = void;
        bool operator()(std::string_view a, std::string_view b) const noexcept { return a == b; }
        bool operator()(const key_id& id, std::string_view name) const noexcept {
            return static_cast<unsigned char>(name[0]) == id.database && name.substr(1) == id.key;
        }
        bool operator()(std::string_view name, const key_id& id) const noexcept {
            return (*this)(id, name);
        }
    };
    // Whoever takes the lock goes on to `in`: they are in one line, which no other part has.
    struct alignas(64) guarded_part {
        std::mutex lock;
        std::array<std::unique_ptr<database_part>, databases> in;
        std::unordered_map<std::string, std::unordered_set<watch_flag>, watch_hash, watch_equal>
            watches;
    };

    database_part* in(const key_id& id) noexcept { return parts_[id.part].in[id.database].get(); }
    // As put(), but `made` stays the caller's when it throws.
    void put_or_leave(const key_id& id, record* made);
    // In the part: takes the record out, with its collection.
    record* take(const key_id& id);
    // What a table has gained or lost until the end of the scope is in the accounts, also when it throws.
    template <class Table>
    class counted_table {
      public:
        counted_table(keyspace& keys, const Table& table) noexcept
            : keys_(keys), table_(table), before_(table.bytes()) {}
        ~counted_table() {
            keys_.add_used(static_cast<std::int64_t>(table_.bytes()) -
                           static_cast<std::int64_t>(before_));
        }
        counted_table(const counted_table&) = delete;
        counted_table& operator=(const counted_table&) = delete;

      private:
        keyspace& keys_;
        const Table& table_;
        std::size_t before_;
    };
    // In the part: with the index in the accounts.
    void add_expiry(database_part& p, const key_id& id, std::int64_t at);
    void remove_expiry(database_part& p, const key_id& id, std::int64_t at) noexcept;
    // In the part and a scope: removes the key with that hash without reading its record, where that can be done:
    // there is one, its place says enough, and no key of the part is watched. `at_step`: when it ends, as the index
    // had it. False: nothing was done.
    bool erase_unread(const key_id& id, std::optional<expiry_index::step> at_step) noexcept;
    // In no part: what removing the keys with that hash touches is read in. False: it cannot be.
    bool read_in(cold_memory& cold, const key_id& id);
    // Ends what `old` was: expiry, accounts, collection.
    void account_out(database_part& p, const key_id& id, record* old) noexcept;
    void free_record(record* old) noexcept;
    // In a scope: ends a key's place that is in no table any more, or whose table ends, and frees what it had. Returns
    // the bytes of that, which are taken off the accounts by the caller.
    static std::size_t free_slot(managed_slot& slot) noexcept;
    void free_later(record_kind kind, void* collection);
    void work_off();
    struct candidate {
        managed_slot* slot = nullptr;
        unsigned database = 0;
        std::uint32_t hash = 0;
        int idle = -1;
        std::optional<expiry_index::step> ends; // where the policy goes by that
    };
    // In the part: the one that was not used for longest, of some; `seen` counts them.
    candidate coldest_in(unsigned part, eviction policy, std::uint32_t random, std::size_t& seen);
    bool evict_one(eviction policy, std::uint32_t random, cold_memory* cold);

    std::array<guarded_part, parts> parts_;
    std::array<std::atomic<std::size_t>, databases> sizes_{};
    std::array<std::atomic<std::size_t>, databases> expiring_{};
    std::atomic<std::int64_t> used_{0};

    // Whether no FLUSHALL has come since.
    bool still(std::uint64_t flushes) {
        const std::lock_guard hold(later_lock_);
        return flushes == flushes_;
    }

    // What takes long to free.
    std::mutex later_lock_;
    std::uint64_t flushes_ = 0; // FLUSHALLs; under later_lock_
    std::condition_variable later_wake_;
    std::deque<std::function<void()>> later_;
    bool ending_ = false;
    std::thread later_thread_;
};

// The locks of a set of parts, taken in ascending order. `held` of an enclosing one are not taken again.
class part_locks {
  public:
    part_locks(keyspace& keys, const keyspace::part_set& wanted);
    ~part_locks();
    part_locks(const part_locks&) = delete;
    part_locks& operator=(const part_locks&) = delete;

  private:
    keyspace& keys_;
    keyspace::part_set held_;
};

// While it lives, the memory that a collection gains or loses is counted.
class counted_growth {
  public:
    counted_growth(keyspace& keys, const record& of) noexcept
        : keys_(keys), kind_(of.kind()), collection_(of.collection()), before_(now()) {}
    ~counted_growth() {
        keys_.add_used(static_cast<std::int64_t>(now()) - static_cast<std::int64_t>(before_));
    }
    counted_growth(const counted_growth&) = delete;
    counted_growth& operator=(const counted_growth&) = delete;

  private:
    std::size_t now() const noexcept {
        return kind_ == record_kind::hash ? static_cast<hash_value*>(collection_)->bytes()
                                          : static_cast<sorted_set*>(collection_)->bytes();
    }
    keyspace& keys_;
    record_kind kind_;
    void* collection_;
    std::size_t before_;
};

// Unix time in milliseconds as this command and everything in it sees it.
std::int64_t now_ms() noexcept;
// Reads the clock again; by every thread when it has received something.
void update_now() noexcept;
// The steady clock in nanoseconds: mark() reads it, last_mark() is what this thread read last. A command takes
// from the end of the one before it, or from the read that brought it, to its own end: one look at the
// clock for each.
std::int64_t mark() noexcept;
std::int64_t last_mark() noexcept;
// By the timer: how the two clocks differ. A change of the system's clock is seen by the next call.
void compare_clocks() noexcept;

} // namespace crestdb::server
