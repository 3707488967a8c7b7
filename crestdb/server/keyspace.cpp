// SPDX-License-Identifier: MIT
#include "crestdb/server/keyspace.hpp"

#include <chrono>
#include <random>
#include <utility>

namespace crestdb::server {

namespace {

constexpr std::pair<std::string_view, eviction> eviction_names[] = {
    {"noeviction", eviction::none},
    {"allkeys-lru", eviction::allkeys_lru},
    {"allkeys-lfu", eviction::allkeys_lfu},
    {"allkeys-random", eviction::allkeys_random},
    {"volatile-lru", eviction::volatile_lru},
    {"volatile-lfu", eviction::volatile_lfu},
    {"volatile-random", eviction::volatile_random},
    {"volatile-ttl", eviction::volatile_ttl},
};

auto key_is(std::string_view key) {
    return [key](managed_slot& slot) { return static_cast<record*>(slot.get())->key() == key; };
}

bool is_collection(record_kind kind) {
    return kind == record_kind::hash || kind == record_kind::sorted_set;
}

thread_local std::int64_t thread_now = 0, thread_mark = 0;

std::atomic<std::int64_t> system_minus_steady{0}; // nanoseconds; 0: not compared yet

// Keys among which eviction chooses.
constexpr std::size_t samples = 64;

// A collection of more members than this is freed by another thread.
constexpr std::size_t free_at_once = 64;

} // namespace

std::optional<eviction> parse_eviction(std::string_view name) noexcept {
    for (const auto& [text, policy] : eviction_names)
        if (text == name) return policy;
    return std::nullopt;
}

std::string_view name_of(eviction policy) noexcept {
    for (const auto& [text, named] : eviction_names)
        if (named == policy) return text;
    return "";
}

std::int64_t now_ms() noexcept { return thread_now; }

std::int64_t mark() noexcept {
    thread_mark = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count();
    return thread_mark;
}

std::int64_t last_mark() noexcept { return thread_mark; }

void compare_clocks() noexcept {
    const std::int64_t system = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::system_clock::now().time_since_epoch())
                                    .count();
    system_minus_steady = system - mark();
}

void update_now() noexcept {
    if (system_minus_steady == 0) compare_clocks();
    thread_now = (mark() + system_minus_steady) / 1'000'000;
}

part_locks::part_locks(keyspace& keys, const keyspace::part_set& wanted)
    : keys_(keys), held_(wanted) {
    for (std::size_t p = held_._Find_first(); p < held_.size(); p = held_._Find_next(p))
        keys_.lock_of(static_cast<unsigned>(p)).lock();
}

part_locks::~part_locks() {
    for (std::size_t p = held_._Find_first(); p < held_.size(); p = held_._Find_next(p))
        keys_.lock_of(static_cast<unsigned>(p)).unlock();
}

keyspace::keyspace() : later_thread_([this] { work_off(); }) {}

keyspace::~keyspace() {
    {
        const std::lock_guard hold(later_lock_);
        ending_ = true;
    }
    later_wake_.notify_one();
    later_thread_.join();
    const managed_scope scope;
    for (guarded_part& p : parts_)
        for (auto& d : p.in)
            if (d != nullptr)
                d->keys.clear([](managed_slot& slot) {
                    auto* old = static_cast<record*>(slot.get());
                    if (is_collection(old->kind()))
                        destroy_collection(old->kind(), old->collection());
                    record::destroy(static_cast<record*>(slot.end()));
                });
}

void keyspace::work_off() {
    for (;;) {
        std::function<void()> job;
        {
            std::unique_lock hold(later_lock_);
            later_wake_.wait(hold, [this] { return ending_ || !later_.empty(); });
            if (later_.empty()) return;
            job = std::move(later_.front());
            later_.pop_front();
        }
        job();
    }
}

void keyspace::destroy_collection(record_kind kind, void* collection) noexcept {
    if (kind == record_kind::hash)
        delete static_cast<hash_value*>(collection);
    else
        delete static_cast<sorted_set*>(collection);
}

std::size_t keyspace::collection_bytes(const record& r) noexcept {
    if (r.kind() == record_kind::hash) return static_cast<hash_value*>(r.collection())->bytes();
    if (r.kind() == record_kind::sorted_set)
        return static_cast<sorted_set*>(r.collection())->bytes();
    return 0;
}

std::size_t keyspace::memory_of(record& r) const noexcept {
    constexpr std::size_t place = 64 / 5 + 4; // of a table two thirds full
    return r.bytes() + place + collection_bytes(r);
}

void keyspace::free_later(record_kind kind, void* collection) {
    {
        const std::lock_guard hold(later_lock_);
        later_.emplace_back([kind, collection] { destroy_collection(kind, collection); });
    }
    later_wake_.notify_one();
}

void keyspace::free_record(record* old) noexcept {
    if (is_collection(old->kind())) {
        void* collection = old->collection();
        const std::size_t members = old->kind() == record_kind::hash
                                        ? static_cast<hash_value*>(collection)->size()
                                        : static_cast<sorted_set*>(collection)->size();
        bool later = members > free_at_once;
        if (later) {
            try {
                free_later(old->kind(), collection);
            } catch (...) {
                later = false; // no memory for the list: here, then
            }
        }
        if (!later) destroy_collection(old->kind(), collection);
    }
    record::destroy(old);
}

void keyspace::account_out(database_part& p, const key_id& id, record* old) noexcept {
    if (old->has_expiry()) {
        p.expiries.remove(id.hash, old->expiry());
        --expiring_[id.database];
    }
    add_used(-static_cast<std::int64_t>(old->bytes() + collection_bytes(*old)));
}

managed_slot* keyspace::find_slot(const key_id& id) {
    database_part* p = in(id);
    return p == nullptr ? nullptr : p->keys.find(id.hash, key_is(id.key));
}

std::optional<unsigned> keyspace::idle_windows(const key_id& id) {
    managed_slot* slot = slot_of_hash(id);
    if (slot == nullptr) return std::nullopt;
    return slot->idle_windows(window);
}

record* keyspace::find(const key_id& id) {
    managed_slot* slot = find_slot(id);
    if (slot == nullptr) return nullptr;
    auto* r = static_cast<record*>(slot->get());
    if (r->has_expiry() && r->expiry() <= now_ms()) [[unlikely]] {
        ++count.expired;
        erase(id);
        changed(id);
        return nullptr;
    }
    return r;
}

void keyspace::put(const key_id& id, record* made) {
    try {
        std::unique_ptr<database_part>& owner = parts_[id.part].in[id.database];
        if (owner == nullptr) owner = std::make_unique<database_part>();
        database_part& p = *owner;
        if (made->has_expiry()) {
            p.expiries.add(id.hash, made->expiry());
            ++expiring_[id.database];
        }
        managed_slot* slot = p.keys.find(id.hash, key_is(id.key));
        if (slot != nullptr) {
            auto* old = static_cast<record*>(slot->get());
            account_out(p, id, old);
            slot->exchange(made);
            free_record(old);
        } else {
            const std::size_t before = p.keys.bytes();
            try {
                slot = p.keys.insert(id.hash);
            } catch (...) {
                if (made->has_expiry()) {
                    p.expiries.remove(id.hash, made->expiry());
                    --expiring_[id.database];
                }
                throw;
            }
            slot->begin(made);
            add_used(static_cast<std::int64_t>(p.keys.bytes()) - static_cast<std::int64_t>(before));
            ++sizes_[id.database];
        }
        add_used(static_cast<std::int64_t>(made->bytes() + collection_bytes(*made)));
    } catch (...) {
        free_record(made);
        throw;
    }
}

record* keyspace::take(const key_id& id) {
    database_part* p = in(id);
    if (p == nullptr) return nullptr;
    record* taken = nullptr;
    const std::size_t before = p->keys.bytes();
    const managed_scope scope;
    if (!p->keys.erase(id.hash, key_is(id.key), [&](managed_slot& slot) {
            taken = static_cast<record*>(slot.end());
            account_out(*p, id, taken);
        }))
        return nullptr;
    add_used(static_cast<std::int64_t>(p->keys.bytes()) - static_cast<std::int64_t>(before));
    --sizes_[id.database];
    return taken;
}

bool keyspace::erase(const key_id& id) {
    record* old = take(id);
    if (old != nullptr) free_record(old);
    return old != nullptr;
}

record* keyspace::set_expiry(const key_id& id, record* r, std::int64_t at) {
    if (!r->has_expiry() && at < 0) return r;
    database_part& p = *in(id);
    if (r->has_expiry() && at >= 0) {
        p.expiries.add(id.hash, at);
        p.expiries.remove(id.hash, r->expiry());
        r->set_expiry(at);
        return r;
    }
    // With or without the field: another object, which takes the collection over.
    record* made =
        record::make(r->kind(), r->key(), r->value(), at, r->is_large() ? r->capacity() : 0);
    if (at >= 0) {
        try {
            p.expiries.add(id.hash, at);
        } catch (...) {
            record::destroy(made);
            throw;
        }
        ++expiring_[id.database];
    } else {
        p.expiries.remove(id.hash, r->expiry());
        --expiring_[id.database];
    }
    add_used(static_cast<std::int64_t>(made->bytes()) - static_cast<std::int64_t>(r->bytes()));
    find_slot(id)->exchange(made);
    record::destroy(r);
    return made;
}

std::string keyspace::watch_name(const key_id& id) {
    std::string name(1, static_cast<char>(id.database));
    return name.append(id.key);
}

void keyspace::changed(const key_id& id) {
    ++count.dirty;
    guarded_part& p = parts_[id.part];
    if (p.watches.empty()) [[likely]]
        return;
    const auto found = p.watches.find(watch_name(id));
    if (found == p.watches.end()) return;
    for (const watch_flag& flag : found->second) *flag = true;
}

void keyspace::watch(const key_id& id, const watch_flag& flag) {
    parts_[id.part].watches[watch_name(id)].push_back(flag);
}

void keyspace::unwatch(const key_id& id, const watch_flag& flag) {
    auto& watches = parts_[id.part].watches;
    const auto found = watches.find(watch_name(id));
    if (found == watches.end()) return;
    std::erase(found->second, flag);
    if (found->second.empty()) watches.erase(found);
}

std::size_t keyspace::size_in(unsigned part, unsigned database) const noexcept {
    const auto& p = parts_[part].in[database];
    return p == nullptr ? 0 : p->keys.size();
}

std::uint64_t keyspace::scan(unsigned database, std::uint64_t cursor, const part_set& held,
                             const std::function<void(record&)>& visit) {
    auto p = static_cast<unsigned>(cursor >> 32);
    if (p >= parts) return 0;
    std::unique_lock<std::mutex> hold;
    if (!held[p]) hold = std::unique_lock(parts_[p].lock);
    const managed_scope scope;
    std::uint32_t next = 0;
    if (database_part* d = parts_[p].in[database].get(); d != nullptr)
        next = d->keys.scan(static_cast<std::uint32_t>(cursor),
                            [&](managed_slot& slot, std::uint32_t) {
                                auto& r = *static_cast<record*>(slot.get());
                                if (r.has_expiry() && r.expiry() <= now_ms()) return;
                                visit(r);
                            });
    if (next != 0) return std::uint64_t{p} << 32 | next;
    return p + 1 < parts ? std::uint64_t{p + 1} << 32 : 0;
}

std::optional<std::string> keyspace::random_key(unsigned database, const part_set& held) {
    thread_local std::mt19937 random{std::random_device{}()};
    const auto first = static_cast<unsigned>(random() % parts);
    for (unsigned i = 0; i < 2 * parts; ++i) {
        const unsigned p = (first + i) % parts;
        std::unique_lock<std::mutex> hold;
        if (!held[p]) hold = std::unique_lock(parts_[p].lock);
        database_part* d = parts_[p].in[database].get();
        if (d == nullptr) continue;
        const managed_scope scope;
        std::vector<managed_slot*> seen;
        d->keys.sample(static_cast<std::uint32_t>(random()), 8,
                       [&](managed_slot& slot, std::uint32_t) { seen.push_back(&slot); });
        for (std::size_t n = seen.size(); n > 0; --n) {
            const std::size_t chosen = random() % n;
            auto* r = static_cast<record*>(seen[chosen]->get());
            if (!r->has_expiry() || r->expiry() > now_ms()) return std::string(r->key());
            std::swap(seen[chosen], seen[n - 1]);
        }
    }
    return std::nullopt;
}

void keyspace::flush(std::optional<unsigned> database) {
    auto dropped = std::make_shared<std::vector<std::unique_ptr<database_part>>>();
    dropped->reserve(parts * databases);
    for (guarded_part& p : parts_) {
        for (auto& [name, flags] : p.watches) {
            const auto db = static_cast<unsigned char>(name[0]);
            if (database && db != *database) continue;
            // Only keys that are there change.
            const key_id id = id_of(db, std::string_view(name).substr(1));
            if (p.in[db] == nullptr || find_slot(id) == nullptr) continue;
            for (const watch_flag& flag : flags) *flag = true;
        }
        for (unsigned d = 0; d < databases; ++d) {
            if (database && d != *database) continue;
            if (p.in[d] != nullptr) dropped->push_back(std::move(p.in[d]));
        }
    }
    for (unsigned d = 0; d < databases; ++d) {
        if (database && d != *database) continue;
        count.dirty += sizes_[d];
        sizes_[d] = 0;
        expiring_[d] = 0;
    }
    // What an earlier FLUSHDB has not freed yet is taken off by the later FLUSHALL.
    std::uint64_t generation = 0;
    {
        const std::lock_guard hold(later_lock_);
        if (!database) {
            ++flushes_;
            used_ = 0;
        }
        generation = flushes_;
    }
    if (database) {
        std::int64_t bytes = 0;
        for (auto& d : *dropped) bytes += static_cast<std::int64_t>(d->keys.bytes());
        add_used(-bytes); // the records are taken off as they are freed
    }
    const bool all = !database;
    {
        const std::lock_guard hold(later_lock_);
        later_.emplace_back([this, dropped, all, generation] {
            for (auto& d : *dropped) {
                d->keys.clear([&](managed_slot& slot) {
                    const managed_scope
                        scope; // one record: the collector does not wait for the rest
                    auto* old = static_cast<record*>(slot.get());
                    if (!all && still(generation))
                        add_used(-static_cast<std::int64_t>(old->bytes() + collection_bytes(*old)));
                    if (is_collection(old->kind()))
                        destroy_collection(old->kind(), old->collection());
                    record::destroy(static_cast<record*>(slot.end()));
                });
                d.reset();
            }
        });
    }
    later_wake_.notify_one();
}

void keyspace::each_in(unsigned p, const std::function<void(unsigned, record&)>& visit) {
    for (unsigned d = 0; d < databases; ++d) {
        database_part* in_database = parts_[p].in[d].get();
        if (in_database == nullptr) continue;
        std::uint32_t cursor = 0;
        do {
            const managed_scope scope;
            cursor = in_database->keys.scan(cursor, [&](managed_slot& slot, std::uint32_t) {
                visit(d, *static_cast<record*>(slot.get()));
            });
        } while (cursor != 0);
    }
}

void keyspace::each(const std::function<void(unsigned, record&)>& visit) {
    for (unsigned p = 0; p < parts; ++p) each_in(p, visit);
}

std::size_t keyspace::expire_some(std::size_t most, std::int64_t now) {
    std::size_t ended = 0;
    // Goes on where the last call ended, so that no part waits for the others for ever.
    static std::atomic<unsigned> next{0};
    for (unsigned i = 0; i < parts && ended < most; ++i) {
        const unsigned p = next++ % parts;
        const std::lock_guard hold(parts_[p].lock);
        const managed_scope scope;
        for (unsigned d = 0; d < databases; ++d) {
            database_part* in_database = parts_[p].in[d].get();
            if (in_database == nullptr) continue;
            std::uint32_t hash = 0;
            std::int64_t begin = 0;
            // A few of a part at a time: its lock is not held for long.
            for (unsigned n = 0; n < 64 && in_database->expiries.ended(now, hash, begin); ++n) {
                record* found = nullptr;
                in_database->keys.find(hash, [&](managed_slot& slot) {
                    auto* r = static_cast<record*>(slot.get());
                    if (r->has_expiry() && r->expiry() >> 10 == begin >> 10) found = r;
                    return found != nullptr;
                });
                if (found == nullptr) { // cannot be; but a wrong entry must not stop the others
                    in_database->expiries.remove(hash, begin);
                    continue;
                }
                const std::string key(found->key());
                const key_id id{key, hash, static_cast<std::uint16_t>(p),
                                static_cast<std::uint16_t>(d)};
                erase(id);
                changed(id);
                ++count.expired;
                ++ended;
            }
        }
    }
    return ended;
}

keyspace::candidate keyspace::coldest_in(unsigned p, eviction policy, std::uint32_t random,
                                         std::size_t& seen) {
    const bool by_age = policy != eviction::allkeys_random && policy != eviction::volatile_random &&
                        policy != eviction::volatile_ttl;
    candidate best;
    for (unsigned d = 0; d < databases; ++d) {
        database_part* candidates = parts_[p].in[d].get();
        if (candidates == nullptr) continue;
        const std::uint64_t now = window;
        // The words of the slots say how long the keys were not used; the keys are not touched.
        const auto look = [&](managed_slot& slot) {
            ++seen;
            const int its = by_age ? static_cast<int>(slot.idle_windows(now)) : 0;
            if (its > best.idle) best = {&slot, d, its};
        };
        if (policy >= eviction::volatile_lru) {
            const auto by_hash = [&](std::uint32_t hash) {
                managed_slot* slot =
                    candidates->keys.find(hash, [](managed_slot&) { return true; });
                if (slot != nullptr) look(*slot);
            };
            if (policy == eviction::volatile_ttl)
                candidates->expiries.soonest(1, by_hash);
            else
                candidates->expiries.sample(random, by_age ? samples : 1, by_hash);
        } else {
            candidates->keys.sample(random, by_age ? samples : 1,
                                    [&](managed_slot& slot, std::uint32_t) { look(slot); });
        }
    }
    return best;
}

bool keyspace::evict_one(eviction policy, std::uint32_t random) {
    // Where parts are small, several are looked at, so that the choice is among enough keys.
    const bool by_age = policy != eviction::allkeys_random && policy != eviction::volatile_random &&
                        policy != eviction::volatile_ttl;
    unsigned chosen = random % parts;
    if (by_age) {
        std::size_t seen = 0;
        int idle = -1;
        for (unsigned i = 0; i < 8 && seen < samples; ++i) {
            const unsigned p = (random + i * 37) % parts;
            const std::lock_guard hold(parts_[p].lock);
            const candidate its = coldest_in(p, policy, random * 2654435761u, seen);
            if (its.idle <= idle) continue;
            idle = its.idle;
            chosen = p;
        }
    }
    const std::lock_guard hold(parts_[chosen].lock);
    const managed_scope scope;
    std::size_t seen = 0;
    const candidate best = coldest_in(chosen, policy, random * 2654435761u, seen);
    if (best.slot == nullptr) return false;
    auto* r = static_cast<record*>(best.slot->get());
    if (policy >= eviction::volatile_lru && !r->has_expiry()) return false;
    const std::string key(r->key());
    const key_id id = id_of(best.database, key);
    erase(id);
    changed(id);
    ++count.evicted;
    return true;
}

bool keyspace::make_room(std::int64_t limit, eviction policy) {
    if (used_bytes() <= limit) return true;
    if (policy == eviction::none) return false;
    thread_local std::mt19937 random{std::random_device{}()};
    // Tables give their memory back late, so it may take more than the bytes that are too many.
    unsigned in_vain = 0;
    while (used_bytes() > limit) {
        if (evict_one(policy, static_cast<std::uint32_t>(random()))) {
            in_vain = 0;
        } else if (++in_vain >= 8 * parts) {
            return false;
        }
    }
    return true;
}

} // namespace crestdb::server
