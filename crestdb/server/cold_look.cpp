// SPDX-License-Identifier: MIT
#include "crestdb/server/cold_look.hpp"

#include "crestdb/server/text.hpp"

namespace crestdb::server {

namespace {

// Slots that are looked at before the part's lock is given back.
constexpr std::size_t step = 256;

// In the part and a scope: f(record&) for the record of the key, if it is resident. True if there is none.
template <class Function>
bool with_record(keyspace& keys, cold_probe& probe, const keyspace::key_id& id, Function&& f) {
    const std::lock_guard hold(keys.lock_of(id.part));
    const managed_scope scope;
    managed_slot* slot = keys.slot_of_hash(id);
    if (slot == nullptr) return true;
    if (!probe.look(*slot)) return false;
    return f(*static_cast<record*>(slot->get()));
}

bool has_ended(const record& r) { return r.has_expiry() && r.expiry() <= now_ms(); }

bool look_at_key(keyspace& keys, cold_probe& probe, const keyspace::key_id& id) {
    return with_record(keys, probe, id, [](record&) { return true; });
}

template <class Collection>
std::uint32_t look_at_some(cold_probe& probe, Collection& of, std::uint32_t cursor,
                           std::size_t most, bool& all) {
    std::size_t looked = 0;
    do {
        cursor = of.scan_slots(cursor, [&](managed_slot& slot) {
            ++looked;
            // All of them, also behind one that is cold: they do not hide each other.
            if (!probe.look(slot) && !probe.goes_on()) all = false;
        });
    } while (cursor != 0 && looked < most);
    return cursor;
}

// From `cursor` on until `most` were seen, in steps.
bool look_at_members(keyspace& keys, cold_probe& probe, const keyspace::key_id& id,
                     std::uint32_t cursor, std::size_t most) {
    bool all = true;
    for (std::size_t seen = 0; seen < most && all; seen += step) {
        const bool there = with_record(keys, probe, id, [&](record& r) {
            const std::size_t some = std::min(most - seen, step);
            if (r.kind() == record_kind::hash)
                cursor = look_at_some(probe, *static_cast<hash_value*>(r.collection()), cursor,
                                      some, all);
            else if (r.kind() == record_kind::sorted_set)
                cursor = look_at_some(probe, *static_cast<sorted_set*>(r.collection()), cursor,
                                      some, all);
            else
                cursor = 0;
            return true;
        });
        if (!there) return false;
        probe.read_noted();
        if (cursor == 0) break;
    }
    return all;
}

std::size_t count_of_scan(arguments args, std::size_t from) {
    for (std::size_t i = from; i + 1 < args.size(); i += 2)
        if (equal_fold(args[i], "COUNT"))
            if (const auto count = parse_integer(args[i + 1]); count && *count > 0)
                return static_cast<std::size_t>(*count);
    return 10;
}

bool look_at_hash(keyspace& keys, cold_probe& probe, const command& what, unsigned database,
                  arguments args) {
    const keyspace::key_id id = keyspace::id_of(database, args[1]);
    if (what.name == "hgetall" || what.name == "hkeys" || what.name == "hvals")
        return look_at_members(keys, probe, id, 0, SIZE_MAX);
    if (what.name == "hscan") {
        const auto cursor = parse_unsigned(args[2]);
        if (!cursor || *cursor > UINT32_MAX) return look_at_key(keys, probe, id);
        return look_at_members(keys, probe, id, static_cast<std::uint32_t>(*cursor),
                               count_of_scan(args, 3));
    }
    const bool pairs = what.name == "hset" || what.name == "hmset";
    const bool many = pairs || what.name == "hmget" || what.name == "hdel";
    const std::size_t end = what.name == "hlen" ? 2 : many ? args.size() : 3;
    return with_record(keys, probe, id, [&](record& r) {
        if (r.kind() != record_kind::hash) return true;
        auto* hash = static_cast<hash_value*>(r.collection());
        for (std::size_t i = 2; i < end; i += pairs ? 2 : 1) {
            managed_slot* field = hash->slot_of_hash(args[i]);
            if (field != nullptr && !probe.look(*field) && !probe.goes_on()) return false;
        }
        return true;
    });
}

bool look_at_set(keyspace& keys, cold_probe& probe, const command& what, unsigned database,
                 arguments args) {
    const keyspace::key_id id = keyspace::id_of(database, args[1]);
    if (what.name == "zscan") {
        const auto cursor = parse_unsigned(args[2]);
        if (!cursor || *cursor > UINT32_MAX) return look_at_key(keys, probe, id);
        return look_at_members(keys, probe, id, static_cast<std::uint32_t>(*cursor),
                               count_of_scan(args, 3));
    }
    bool all = true;
    for (std::size_t from = 0; from != SIZE_MAX && all;) {
        const bool there = with_record(keys, probe, id, [&](record& r) {
            if (r.kind() != record_kind::sorted_set) {
                from = SIZE_MAX;
                return true;
            }
            all = look_at_sorted_set(probe, what, args, *static_cast<sorted_set*>(r.collection()),
                                     from);
            return true;
        });
        if (!there) return false;
        probe.read_noted();
        // The key is gone.
        if (from == 0) break;
    }
    return all;
}

bool look_at_scan(keyspace& keys, cold_probe& probe, unsigned database, arguments args) {
    const auto first = parse_unsigned(args[1]);
    if (!first) return true;
    std::uint64_t cursor = *first;
    const std::size_t most = count_of_scan(args, 2);
    bool all = true;
    // As the command counts its steps.
    std::size_t seen = 0;
    for (std::size_t steps = 0; seen < most && steps < most * 10 + 64 && all; ++steps) {
        cursor = keys.scan_slots(database, cursor, [&](managed_slot& slot) {
            ++seen;
            if (!probe.look(slot) && !probe.goes_on()) all = false;
        });
        probe.read_noted();
        if (cursor == 0) break;
    }
    return all;
}

// For EXEC, whose KEYS is one with the commands around it.
bool look_at_all_names(keyspace& keys, cold_probe& probe, unsigned database) {
    bool all = true;
    std::uint64_t cursor = 0;
    do {
        cursor = keys.scan_slots(database, cursor, [&](managed_slot& slot) {
            if (!look_at_name(probe, slot)) all = false;
        });
        const bool found = probe.found_cold();
        probe.read_noted();
        if (found && !probe.goes_on()) return false;
    } while (cursor != 0 && probe.goes_on());
    return all && cursor == 0;
}

} // namespace

bool look_at_name(cold_probe& probe, managed_slot& slot) {
    // What is before the key is within this, and usually the key.
    constexpr std::size_t beginning = 256;
    if (!probe.look(slot, beginning)) return false;
    auto* r = static_cast<record*>(slot.get());
    const std::size_t bytes =
        static_cast<std::size_t>(r->key().data() - reinterpret_cast<char*>(r)) + r->key().size();
    return bytes <= beginning || probe.look(slot, bytes);
}

bool gather_keys(keyspace& keys, cold_memory& cold, unsigned database, std::uint64_t& cursor,
                 std::size_t most, const std::function<void(std::string_view)>& visit) {
    std::vector<std::string> some;
    std::size_t seen = 0;
    do {
        std::uint64_t next = 0;
        // What was read leaves again only where memory is far too small: then it is read when it is met.
        for (int tries = 0; tries < 64; ++tries) {
            some.clear();
            cold_probe probe(cold);
            next = keys.scan_slots(database, cursor, [&](managed_slot& slot) {
                if (!look_at_name(probe, slot) && tries < 63) return;
                const auto& r = *static_cast<record*>(slot.get());
                if (!has_ended(r)) some.emplace_back(r.key());
            });
            if (!probe.found_cold()) break;
            probe.read_noted();
            if (!probe.readable()) return false;
        }
        for (const std::string& key : some) visit(key);
        // A step without keys is work, too.
        seen += some.size() + 1;
        cursor = next;
    } while (cursor != 0 && seen < most);
    return true;
}

bool look_at(keyspace& keys, cold_probe& probe, const command& what, unsigned database,
             arguments args) {
    if (what.name == "scan") return look_at_scan(keys, probe, database, args);
    if (what.name == "keys") return look_at_all_names(keys, probe, database);
    if (what.first_key == 0) return true;
    if (what.group == "hash") return look_at_hash(keys, probe, what, database, args);
    if (what.group == "sorted-set") return look_at_set(keys, probe, what, database, args);
    // These two read the slot only.
    if (what.name == "object" && args.size() > 1 &&
        (equal_fold(args[1], "FREQ") || equal_fold(args[1], "IDLETIME")))
        return true;
    const auto n = static_cast<int>(args.size());
    const int last = what.last_key < 0 ? n + what.last_key : what.last_key;
    bool all = true;
    for (int i = what.first_key; i <= last && i < n; i += what.step) {
        const keyspace::key_id id = keyspace::id_of(database, args[static_cast<std::size_t>(i)]);
        if (!look_at_key(keys, probe, id)) all = false;
        if (!probe.goes_on() && (!all || i + what.step <= last)) return false;
    }
    if (what.name == "copy") {
        if (!look_at_members(keys, probe, keyspace::id_of(database, args[1]), 0, SIZE_MAX))
            all = false;
        for (std::size_t i = 3; i + 1 < args.size(); ++i)
            if (const auto other = parse_unsigned(args[i + 1]);
                equal_fold(args[i], "DB") && other && *other < keyspace::databases)
                all &= look_at_key(keys, probe,
                                   keyspace::id_of(static_cast<unsigned>(*other), args[2]));
    }
    return all;
}

} // namespace crestdb::server
