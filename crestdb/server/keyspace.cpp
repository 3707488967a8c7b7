// SPDX-License-Identifier: MIT
#include "crestdb/server/keyspace.hpp"

#include "crestdb/server/cold_look.hpp"

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

// Where the value lies is known when the first line of the record is there. What is behind that line comes meanwhile: of
// a long record so much that the copy of a value of 1 KiB waits for little.
constexpr std::size_t cache_line = 64;
constexpr std::size_t usual_prefetch = 3 * cache_line;
constexpr std::size_t long_prefetch = 15 * cache_line;
constexpr std::size_t least_long = long_prefetch + cache_line; // so nothing beyond it is

inline void prefetch_behind(const void* r, std::size_t bytes) noexcept {
    for (std::size_t at = cache_line; at <= bytes; at += cache_line)
        __builtin_prefetch(static_cast<const char*>(r) + at);
}

bool is_collection(record_kind kind) {
    return kind == record_kind::hash || kind == record_kind::sorted_set;
}

thread_local std::int64_t thread_now = 0, thread_mark = 0;

std::atomic<std::int64_t> system_minus_steady{0}; // nanoseconds; 0: not compared yet

// Keys among which eviction chooses.
constexpr std::size_t samples = 64;

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
            if (d != nullptr) d->keys.clear([](managed_slot& slot) { free_slot(slot); });
}

unsigned keyspace::note_of(const record& r) noexcept {
    if (r.kind() != record_kind::string || r.is_large()) return read_it;
    return (r.has_expiry() ? string_with_expiry : string) |
           (managed_size(&r) >= least_long ? long_noted : 0);
}

bool keyspace::has_key::operator()(managed_slot& slot) const noexcept {
    const auto* r = static_cast<record*>(slot.get());
    const unsigned note = decltype(database_part::keys)::note_of(slot);
    prefetch_behind(r, (note & long_noted) != 0 ? long_prefetch : usual_prefetch);
    return r->key() == key;
}

std::size_t keyspace::free_slot(managed_slot& slot) noexcept {
    if (decltype(database_part::keys)::note_of(slot) != read_it) {
        void* const object = slot.end();
        const std::size_t bytes = managed_size(object);
        free_managed(object);
        return bytes;
    }
    auto* old = static_cast<record*>(slot.get());
    const std::size_t bytes = managed_size(old) + collection_bytes(*old);
    if (is_collection(old->kind())) destroy_collection(old->kind(), old->collection());
    record::destroy(static_cast<record*>(slot.end()));
    return bytes;
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
    constexpr std::size_t ends = 12;          // in the index of expiries
    return managed_size(&r) + place + (r.has_expiry() ? ends : 0) + collection_bytes(r);
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

void keyspace::add_expiry(database_part& p, const key_id& id, std::int64_t at) {
    const counted_table growth(*this, p.expiries);
    p.expiries.add(id.hash, at);
    ++expiring_[id.database];
}

void keyspace::remove_expiry(database_part& p, const key_id& id, std::int64_t at) noexcept {
    const counted_table growth(*this, p.expiries);
    p.expiries.remove(id.hash, at);
    --expiring_[id.database];
}

void keyspace::account_out(database_part& p, const key_id& id, record* old) noexcept {
    if (old->has_expiry()) remove_expiry(p, id, old->expiry());
    add_used(-static_cast<std::int64_t>(managed_size(old) + collection_bytes(*old)));
}

managed_slot* keyspace::find_slot(const key_id& id) {
    database_part* p = in(id);
    return p == nullptr ? nullptr : p->keys.find(id.hash, has_key{id.key});
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

void keyspace::put_or_leave(const key_id& id, record* made) {
    std::unique_ptr<database_part>& owner = parts_[id.part].in[id.database];
    if (owner == nullptr) owner = std::make_unique<database_part>();
    database_part& p = *owner;
    if (made->has_expiry()) add_expiry(p, id, made->expiry());
    managed_slot* slot = p.keys.find(id.hash, has_key{id.key});
    if (slot != nullptr) {
        auto* old = static_cast<record*>(slot->get());
        account_out(p, id, old);
        slot->exchange(made);
        free_record(old);
    } else {
        const counted_table growth(*this, p.keys);
        try {
            slot = p.keys.insert(id.hash);
        } catch (...) {
            if (made->has_expiry()) remove_expiry(p, id, made->expiry());
            throw;
        }
        slot->begin(made);
        ++sizes_[id.database];
    }
    p.keys.note(*slot, note_of(*made));
    add_used(static_cast<std::int64_t>(managed_size(made) + collection_bytes(*made)));
}

void keyspace::put(const key_id& id, record* made) {
    try {
        put_or_leave(id, made);
    } catch (...) {
        free_record(made);
        throw;
    }
}

void keyspace::rename(const key_id& from, const key_id& to, record* made) {
    try {
        put_or_leave(to, made);
    } catch (...) {
        record::destroy(made);
        throw;
    }
    record::destroy(take(from));
}

record* keyspace::take(const key_id& id) {
    database_part* p = in(id);
    if (p == nullptr) return nullptr;
    record* taken = nullptr;
    const counted_table growth(*this, p->keys);
    const managed_scope scope;
    if (!p->keys.erase(id.hash, has_key{id.key}, [&](managed_slot& slot) {
            taken = static_cast<record*>(slot.end());
            account_out(*p, id, taken);
        }))
        return nullptr;
    --sizes_[id.database];
    return taken;
}

bool keyspace::erase_unread(const key_id& id, std::optional<expiry_index::step> at_step) noexcept {
    database_part* p = in(id);
    if (p == nullptr || !parts_[id.part].watches.empty()) return false;
    managed_slot* const slot = p->keys.find_only(id.hash);
    if (slot == nullptr) return false;
    switch (p->keys.note_of(*slot) & kind_noted) {
    case string:
        if (at_step) return false;
        break;
    case string_with_expiry:
        // An entry of the index is of a key that is there, so of this one.
        if (!at_step || !p->expiries.contains(id.hash, *at_step)) return false;
        remove_expiry(*p, id, expiry_index::time_of(*at_step));
        break;
    default:
        return false;
    }
    const counted_table growth(*this, p->keys);
    p->keys.erase(
        id.hash, [slot](const managed_slot& its) { return &its == slot; },
        [this](managed_slot& its) {
            void* const object = its.end();
            add_used(-static_cast<std::int64_t>(managed_size(object)));
            free_managed(object);
        });
    --sizes_[id.database];
    ++count.dirty;
    return true;
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
        add_expiry(p, id, at);
        remove_expiry(p, id, r->expiry());
        r->set_expiry(at);
        return r;
    }
    // With or without the field: another object, which takes the collection over.
    record* made =
        record::make(r->kind(), r->key(), r->value(), at, r->is_large() ? r->capacity() : 0);
    if (at >= 0) {
        try {
            add_expiry(p, id, at);
        } catch (...) {
            record::destroy(made);
            throw;
        }
    } else {
        remove_expiry(p, id, r->expiry());
    }
    add_used(static_cast<std::int64_t>(managed_size(made)) -
             static_cast<std::int64_t>(managed_size(r)));
    managed_slot* slot = find_slot(id);
    slot->exchange(made);
    p.keys.note(*slot, note_of(*made));
    record::destroy(r);
    return made;
}

std::string keyspace::watch_name(const key_id& id) {
    std::string name(1, static_cast<char>(id.database));
    return name.append(id.key);
}

keyspace::key_id keyspace::id_of_watch(std::string_view name) noexcept {
    return id_of(static_cast<unsigned char>(name[0]), name.substr(1));
}

void keyspace::changed(const key_id& id) noexcept {
    ++count.dirty;
    guarded_part& p = parts_[id.part];
    if (p.watches.empty()) [[likely]]
        return;
    const auto found = p.watches.find(id);
    if (found == p.watches.end()) return;
    for (const watch_flag& flag : found->second) *flag = true;
}

void keyspace::watch(const key_id& id, const std::string& name, const watch_flag& flag) {
    auto& watches = parts_[id.part].watches;
    const auto found = watches.try_emplace(name).first;
    try {
        found->second.insert(flag);
    } catch (...) {
        if (found->second.empty()) watches.erase(found);
        throw;
    }
}

void keyspace::unwatch(const key_id& id, const std::string& name, const watch_flag& flag) noexcept {
    auto& watches = parts_[id.part].watches;
    const auto found = watches.find(name);
    if (found == watches.end()) return;
    found->second.erase(flag);
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

std::uint64_t keyspace::scan_slots(unsigned database, std::uint64_t cursor,
                                   const std::function<void(managed_slot&)>& visit) {
    const auto p = static_cast<unsigned>(cursor >> 32);
    if (p >= parts) return 0;
    const std::lock_guard hold(parts_[p].lock);
    const managed_scope scope;
    std::uint32_t next = 0;
    if (database_part* d = parts_[p].in[database].get(); d != nullptr)
        next = d->keys.scan(static_cast<std::uint32_t>(cursor),
                            [&](managed_slot& slot, std::uint32_t) { visit(slot); });
    if (next != 0) return std::uint64_t{p} << 32 | next;
    return p + 1 < parts ? std::uint64_t{p + 1} << 32 : 0;
}

std::optional<std::string> keyspace::random_key(unsigned database, const part_set& held,
                                                cold_memory* cold, bool* unreadable) {
    thread_local std::mt19937 random{std::random_device{}()};
    const auto first = static_cast<unsigned>(random() % parts);
    std::vector<managed_slot*> seen;
    for (unsigned i = 0; i < 2 * parts; ++i) {
        const unsigned p = (first + i) % parts;
        // The same choice again when what it met has been read.
        const std::minstd_rand choice(static_cast<std::uint32_t>(random()));
        for (int tries = 0; tries < 64; ++tries) {
            std::minstd_rand draw = choice;
            std::optional<cold_probe> probe;
            if (cold != nullptr) probe.emplace(*cold);
            {
                std::unique_lock<std::mutex> hold;
                if (!held[p]) hold = std::unique_lock(parts_[p].lock);
                database_part* d = parts_[p].in[database].get();
                if (d == nullptr) break;
                const managed_scope scope;
                seen.clear();
                d->keys.sample(static_cast<std::uint32_t>(draw()), 8,
                               [&](managed_slot& slot, std::uint32_t) { seen.push_back(&slot); });
                for (std::size_t n = seen.size(); n > 0; --n) {
                    const std::size_t chosen = draw() % n;
                    if (probe && !look_at_name(*probe, *seen[chosen])) break;
                    auto* r = static_cast<record*>(seen[chosen]->get());
                    if (!r->has_expiry() || r->expiry() > now_ms()) return std::string(r->key());
                    std::swap(seen[chosen], seen[n - 1]);
                }
            }
            if (!probe || !probe->found_cold()) break;
            probe->read_noted();
            if (probe->readable()) continue;
            if (unreadable != nullptr) *unreadable = true;
            break;
        }
    }
    return std::nullopt;
}

void keyspace::flush(std::optional<unsigned> database) {
    auto dropped = std::make_shared<std::vector<std::unique_ptr<database_part>>>();
    dropped->reserve(parts * databases);
    for (guarded_part& p : parts_) {
        for (auto& [name, flags] : p.watches) {
            const key_id id = id_of_watch(name);
            if (database && id.database != *database) continue;
            // Only keys that are there change.
            if (p.in[id.database] == nullptr || find_slot(id) == nullptr) continue;
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
        for (auto& d : *dropped)
            bytes += static_cast<std::int64_t>(d->keys.bytes() + d->expiries.bytes());
        add_used(-bytes); // the records are taken off as they are freed
    }
    const bool all = !database;
    const auto free_all = [this, dropped, all, generation] {
        for (auto& d : *dropped) {
            d->keys.clear([&](managed_slot& slot) {
                const managed_scope scope; // one record: the collector does not wait for the rest
                const std::size_t bytes = free_slot(slot);
                if (!all && still(generation)) add_used(-static_cast<std::int64_t>(bytes));
            });
            d.reset();
        }
    };
    try {
        const std::lock_guard hold(later_lock_);
        later_.emplace_back(free_all);
    } catch (const std::bad_alloc&) {
        free_all(); // no memory for the list: here, then
        return;
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

bool keyspace::read_in(cold_memory& cold, const key_id& id) {
    cold_probe probe(cold);
    {
        const std::lock_guard hold(parts_[id.part].lock);
        const managed_scope scope;
        if (database_part* p = in(id); p != nullptr)
            p->keys.find(id.hash, [&](managed_slot& slot) {
                probe.look(slot);
                return false;
            });
    }
    probe.read_noted();
    return probe.readable();
}

std::size_t keyspace::expire_some(std::size_t most, std::int64_t now, cold_memory* cold) {
    // Of one database of a part at a time: its lock is not held for long.
    constexpr std::size_t at_once = 64;
    std::size_t ended = 0;
    // Goes on where the last call ended, so that no part waits for the others for ever.
    static std::atomic<unsigned> next{0};
    std::vector<std::pair<std::uint32_t, expiry_index::step>> over;
    for (unsigned i = 0; i < parts && ended < most; ++i) {
        const unsigned p = next++ % parts;
        for (unsigned d = 0; d < databases; ++d) {
            over.clear();
            {
                const std::lock_guard hold(parts_[p].lock);
                if (parts_[p].in[d] == nullptr) continue;
                parts_[p].in[d]->expiries.each_ended(
                    now, at_once, [&](std::uint32_t hash, expiry_index::step step) {
                        over.emplace_back(hash, step);
                    });
            }
            for (const auto& [hash, step] : over) {
                key_id id{{}, hash, static_cast<std::uint16_t>(p), static_cast<std::uint16_t>(d)};
                {
                    const std::lock_guard hold(parts_[p].lock);
                    const managed_scope scope;
                    if (erase_unread(id, step)) {
                        ++count.expired;
                        ++ended;
                        continue;
                    }
                }
                const bool readable = cold == nullptr || read_in(*cold, id);
                const std::lock_guard hold(parts_[p].lock);
                const managed_scope scope;
                database_part* in_database = parts_[p].in[d].get();
                if (in_database == nullptr) break;
                record* found = nullptr;
                if (readable)
                    in_database->keys.find(hash, [&](managed_slot& slot) {
                        auto* r = static_cast<record*>(slot.get());
                        if (r->has_expiry() && r->expiry() <= now &&
                            expiry_index::step_of(r->expiry()) == step)
                            found = r;
                        return found != nullptr;
                    });
                if (found == nullptr) {
                    // Changed since, or it cannot be read: whoever asks for it is told, and it must not
                    // stand before the others.
                    if (!readable) {
                        remove_expiry(*in_database, id, expiry_index::time_of(step));
                        ++expiring_[d];
                    }
                    continue;
                }
                const std::string key(found->key());
                id.key = key;
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
        const auto look = [&](managed_slot& slot, std::uint32_t hash,
                              std::optional<expiry_index::step> ends) {
            ++seen;
            const int its = by_age ? static_cast<int>(slot.idle_windows(now)) : 0;
            if (its > best.idle) best = {&slot, d, hash, its, ends};
        };
        if (policy >= eviction::volatile_lru) {
            const auto by_hash = [&](std::uint32_t hash, expiry_index::step ends) {
                managed_slot* slot =
                    candidates->keys.find(hash, [](managed_slot&) { return true; });
                if (slot != nullptr) look(*slot, hash, ends);
            };
            if (policy == eviction::volatile_ttl)
                candidates->expiries.soonest(1, by_hash);
            else
                candidates->expiries.sample(random, by_age ? samples : 1, by_hash);
        } else {
            candidates->keys.sample(
                random, by_age ? samples : 1,
                [&](managed_slot& slot, std::uint32_t hash) { look(slot, hash, {}); });
        }
    }
    return best;
}

bool keyspace::evict_one(eviction policy, std::uint32_t random, cold_memory* cold) {
    // Where parts are small, several are looked at, so that the choice is among enough keys.
    const bool by_age = policy != eviction::allkeys_random && policy != eviction::volatile_random &&
                        policy != eviction::volatile_ttl;
    unsigned chosen = random % parts;
    if (by_age) {
        std::size_t seen = 0;
        int idle = -1;
        // More of them where all seem to be in use.
        for (unsigned i = 0; i < 8 && (seen < samples || (idle <= 0 && i < 4)); ++i) {
            const unsigned p = (random + i * 37) % parts;
            const std::lock_guard hold(parts_[p].lock);
            const candidate its = coldest_in(p, policy, random * 2654435761u, seen);
            if (its.idle <= idle) continue;
            idle = its.idle;
            chosen = p;
        }
    }
    std::unique_lock hold(parts_[chosen].lock);
    std::optional<managed_scope> scope(std::in_place);
    std::size_t seen = 0;
    candidate best = coldest_in(chosen, policy, random * 2654435761u, seen);
    if (best.slot == nullptr) return false;
    const key_id wanted{{},
                        best.hash,
                        static_cast<std::uint16_t>(chosen),
                        static_cast<std::uint16_t>(best.database)};
    if (erase_unread(wanted, best.ends)) {
        ++count.evicted;
        return true;
    }
    if (cold != nullptr) {
        scope.reset();
        hold.unlock();
        if (!read_in(*cold, wanted)) return false; // others can be
        hold.lock();
        scope.emplace();
        best.slot = slot_of_hash(wanted);
        if (best.slot == nullptr) return false;
    }
    auto* r = static_cast<record*>(best.slot->get());
    if (policy >= eviction::volatile_lru && !r->has_expiry()) return false;
    const std::string key(r->key());
    const key_id id = id_of(best.database, key);
    erase(id);
    changed(id);
    ++count.evicted;
    return true;
}

bool keyspace::make_room(std::int64_t limit, eviction policy, cold_memory* cold,
                         const std::atomic<bool>* given_up) {
    if (used_bytes() <= limit) return true;
    if (policy == eviction::none) return false;
    thread_local std::mt19937 random{std::random_device{}()};
    // Tables give their memory back late, so it may take more than the bytes that are too many.
    unsigned in_vain = 0;
    while (used_bytes() > limit) {
        if (given_up != nullptr && *given_up) return false;
        if (evict_one(policy, static_cast<std::uint32_t>(random()), cold)) {
            in_vain = 0;
        } else if (++in_vain >= 8 * parts) {
            return false;
        }
    }
    return true;
}

} // namespace crestdb::server
