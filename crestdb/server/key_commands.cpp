// SPDX-License-Identifier: MIT
//
// Commands on keys of any type.
#include "crestdb/server/command.hpp"
#include "crestdb/server/instance.hpp"
#include "crestdb/server/session.hpp"
#include "crestdb/server/text.hpp"

#include <limits>

namespace crestdb::server {

namespace {

using id_type = keyspace::key_id;

std::string_view type_name(record_kind kind) {
    switch (kind) {
    case record_kind::hash:
        return "hash";
    case record_kind::sorted_set:
        return "zset";
    default:
        return "string";
    }
}

void del(call& c) {
    std::int64_t removed = 0;
    for (std::size_t i = 1; i < c.args.size(); ++i) {
        const id_type id = c.id(i);
        if (c.keys.find(id) == nullptr) continue;
        c.keys.erase(id);
        c.keys.changed(id);
        ++removed;
    }
    c.out.integer(removed);
}

void exists(call& c) {
    std::int64_t there = 0;
    for (std::size_t i = 1; i < c.args.size(); ++i) there += find_to_read(c, c.id(i)) != nullptr;
    c.out.integer(there);
}

void type(call& c) {
    record* r = c.keys.find(c.id(1));
    c.out.simple(r == nullptr ? "none" : type_name(r->kind()));
}

void expire_at(call& c, bool seconds, bool absolute) {
    bool nx = false, xx = false, gt = false, lt = false;
    for (std::size_t i = 3; i < c.args.size(); ++i) {
        if (equal_fold(c.args[i], "NX")) {
            nx = true;
        } else if (equal_fold(c.args[i], "XX")) {
            xx = true;
        } else if (equal_fold(c.args[i], "GT")) {
            gt = true;
        } else if (equal_fold(c.args[i], "LT")) {
            lt = true;
        } else {
            return c.out.error("ERR Unsupported option " + std::string(c.args[i]));
        }
    }
    if (nx && (xx || gt || lt))
        return c.out.error("ERR NX and XX, GT or LT options at the same time are not compatible");
    if (gt && lt) return c.out.error("ERR GT and LT options at the same time are not compatible");
    const auto amount = parse_integer(c.args[2]);
    if (!amount) return c.out.error(answer::not_an_integer);
    std::int64_t at = *amount;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const std::int64_t base = absolute ? 0 : now_ms();
    if ((seconds && (at > most / 1000 || at < -(most / 1000))) ||
        (at *= seconds ? 1000 : 1) > most - base)
        return c.out.error("ERR invalid expire time in '" + std::string(c.what.name) + "' command");
    at += base;
    const id_type id = c.id(1);
    record* r = c.keys.find(id);
    if (r == nullptr) return c.out.integer(0);
    const std::int64_t current = r->expiry();
    if ((nx && current >= 0) || (xx && current < 0) || (gt && (current < 0 || at <= current)) ||
        (lt && current >= 0 && at >= current))
        return c.out.integer(0);
    if (at <= now_ms())
        c.keys.erase(id);
    else
        c.keys.set_expiry(id, r, at);
    c.keys.changed(id);
    c.out.integer(1);
}
void expire(call& c) { expire_at(c, true, false); }
void pexpire(call& c) { expire_at(c, false, false); }
void expireat(call& c) { expire_at(c, true, true); }
void pexpireat(call& c) { expire_at(c, false, true); }

void remaining(call& c, bool seconds, bool absolute) {
    record* r = c.keys.find(c.id(1));
    if (r == nullptr) return c.out.integer(-2);
    if (!r->has_expiry()) return c.out.integer(-1);
    std::int64_t left = r->expiry();
    if (!absolute) left = std::max<std::int64_t>(left - now_ms(), 0);
    // Unsigned: the largest time that PEXPIREAT takes is rounded, too.
    c.out.integer(seconds
                      ? static_cast<std::int64_t>((static_cast<std::uint64_t>(left) + 500) / 1000)
                      : left);
}
void ttl(call& c) { remaining(c, true, false); }
void pttl(call& c) { remaining(c, false, false); }
void expiretime(call& c) { remaining(c, true, true); }
void pexpiretime(call& c) { remaining(c, false, true); }

void persist(call& c) {
    const id_type id = c.id(1);
    record* r = c.keys.find(id);
    if (r == nullptr || !r->has_expiry()) return c.out.integer(0);
    c.keys.set_expiry(id, r, -1);
    c.keys.changed(id);
    c.out.integer(1);
}

// A copy of a record with everything in it, under another key. `kind` is a key's.
record* copy_of(record& r, std::string_view key) {
    if (r.kind() == record_kind::string) return record::make(r.kind(), key, r.value(), r.expiry());
    if (r.kind() == record_kind::hash) {
        auto copy = std::make_unique<hash_value>();
        static_cast<hash_value*>(r.collection())->each([&](record& field) {
            copy->set(field.key(), field.value());
        });
        record* made = record::make_collection(r.kind(), key, copy.get(), r.expiry());
        copy.release();
        return made;
    }
    auto copy = std::make_unique<sorted_set>();
    for (auto* n = static_cast<sorted_set*>(r.collection())->first(); n != nullptr; n = n->next())
        copy->insert(n->name(), n->score);
    record* made = record::make_collection(r.kind(), key, copy.get(), r.expiry());
    copy.release();
    return made;
}

void rename_to(call& c, bool only_new) {
    const id_type from = c.id(1), to = c.id(2);
    record* r = c.keys.find(from);
    if (r == nullptr) return c.out.error(answer::no_such_key);
    if (c.args[1] == c.args[2]) return only_new ? c.out.integer(0) : c.out.ok();
    if (only_new && c.keys.find(to) != nullptr) return c.out.integer(0);
    record* renamed =
        r->kind() == record_kind::string
            ? record::make(r->kind(), to.key, r->value(), r->expiry())
            : record::make_collection(r->kind(), to.key, r->collection(), r->expiry());
    c.keys.rename(from, to, renamed);
    c.keys.changed(from);
    c.keys.changed(to);
    if (only_new)
        c.out.integer(1);
    else
        c.out.ok();
}
void rename(call& c) { rename_to(c, false); }
void renamenx(call& c) { rename_to(c, true); }

void copy(call& c) {
    bool replace = false;
    std::int64_t database = c.client.database;
    for (std::size_t i = 3; i < c.args.size(); ++i) {
        if (equal_fold(c.args[i], "REPLACE")) {
            replace = true;
        } else if (equal_fold(c.args[i], "DB") && i + 1 < c.args.size()) {
            const auto given = parse_integer(c.args[++i]);
            if (!given) return c.out.error(answer::not_an_integer);
            if (*given < 0 || *given >= keyspace::databases)
                return c.out.error("ERR DB index is out of range");
            database = *given;
        } else {
            return c.out.error(answer::syntax);
        }
    }
    const id_type from = c.id(1);
    const id_type to = keyspace::id_of(static_cast<unsigned>(database), c.args[2]);
    if (database == c.client.database && c.args[1] == c.args[2])
        return c.out.error("ERR source and destination objects are the same");
    record* r = find_to_read(c, from);
    if (r == nullptr) return c.out.integer(0);
    if (c.keys.find(to) != nullptr && !replace) return c.out.integer(0);
    c.keys.put(to, copy_of(*r, to.key));
    c.keys.changed(to);
    c.out.integer(1);
}

void randomkey(call& c) {
    if (c.client.found != nullptr) {
        if (c.client.found->keys.empty()) return c.out.null();
        return c.out.bulk(c.client.found->keys[0]);
    }
    // In EXEC no thread of the reader has been there before: what it comes across is read here, where an error of the
    // device is one of this command and no fatal signal.
    bool unreadable = false;
    const auto key = c.keys.random_key(c.client.database, c.held, c.server.cold(), &unreadable);
    if (key)
        c.out.bulk(*key);
    else if (unreadable)
        c.out.error("ERR the key's data could not be read from the cold file");
    else
        c.out.null();
}

void dbsize(call& c) { c.out.integer(static_cast<std::int64_t>(c.keys.size(c.client.database))); }

void flush(call& c, bool all) {
    if (c.args.size() > 2 ||
        (c.args.size() == 2 && !equal_fold(c.args[1], "ASYNC") && !equal_fold(c.args[1], "SYNC")))
        return c.out.error(answer::syntax);
    c.keys.flush(all ? std::nullopt : std::optional<unsigned>(c.client.database));
    c.out.ok();
}
void flushdb(call& c) { flush(c, false); }
void flushall(call& c) { flush(c, true); }

void scan(call& c) {
    scan_request want;
    if (!parse_cursor(c, 1, want) || !parse_scan_options(c, 1, true, want)) return;
    std::vector<std::string> found;
    std::int64_t seen = 0;
    std::uint64_t cursor = want.cursor;
    // Empty parts cost a step each: a bound on the steps bounds one call's work.
    for (std::int64_t steps = 0; seen < want.count && steps < want.count * 10 + 64; ++steps) {
        cursor = c.keys.scan(c.client.database, cursor, c.held, [&](record& r) {
            ++seen;
            if (want.has_match && !glob_match(want.match, r.key())) return;
            if (want.has_type && !equal_fold(want.type, type_name(r.kind()))) return;
            found.emplace_back(r.key());
        });
        if (cursor == 0) break;
    }
    c.out.array(2);
    c.out.bulk(std::to_string(cursor));
    c.out.array(found.size());
    for (const std::string& key : found) c.out.bulk(key);
}

void keys(call& c) {
    std::vector<std::string> here;
    if (c.client.found == nullptr) {
        std::uint64_t cursor = 0;
        do {
            cursor = c.keys.scan(c.client.database, cursor, c.held, [&](record& r) {
                if (glob_match(c.args[1], r.key())) here.emplace_back(r.key());
            });
        } while (cursor != 0);
    }
    const std::vector<std::string>& found = c.client.found == nullptr ? here : c.client.found->keys;
    c.out.array(found.size());
    for (const std::string& key : found) c.out.bulk(key);
}

std::string_view encoding(record& r) {
    if (r.kind() == record_kind::hash) return "hashtable";
    if (r.kind() == record_kind::sorted_set) return "skiplist";
    if (parse_integer(r.value())) return "int";
    return r.value_size() <= 44 ? "embstr" : "raw";
}

// How long the key was not used, by its slot, which is found by its hash: looking at the record would
// be a use.
std::optional<unsigned> idle_windows(call& c, const id_type& id) { return c.keys.idle_windows(id); }

void object(call& c) {
    const std::string_view what = c.args[1];
    if (equal_fold(what, "HELP") && c.args.size() == 2) {
        c.out.array(5);
        c.out.bulk("OBJECT <subcommand> [<arg> ...]. Subcommands are:");
        c.out.bulk("ENCODING <key>");
        c.out.bulk("FREQ <key>");
        c.out.bulk("IDLETIME <key>");
        c.out.bulk("REFCOUNT <key>");
        return;
    }
    const bool known = equal_fold(what, "ENCODING") || equal_fold(what, "REFCOUNT") ||
                       equal_fold(what, "IDLETIME") || equal_fold(what, "FREQ");
    if (!known) return answer::unknown_subcommand(c);
    if (c.args.size() != 3) return answer::wrong_arity(c.out, "object|" + lower(what));
    const id_type id = c.id(2);
    if (equal_fold(what, "IDLETIME") || equal_fold(what, "FREQ")) {
        const auto idle = idle_windows(c, id);
        if (!idle) return c.out.null();
        if (equal_fold(what, "FREQ")) return c.out.integer(*idle >= 8 ? 0 : 255 >> *idle);
        return c.out.integer(c.server.windows.since(*idle, now_ms()) / 1000);
    }
    record* r = c.keys.find(id);
    if (r == nullptr) return c.out.null();
    if (equal_fold(what, "ENCODING")) return c.out.bulk(encoding(*r));
    c.out.integer(1);
}

constexpr std::uint32_t read = command::reads, write = command::writes, fast = command::fast;

constexpr command rows[] = {
    {"copy", -3, write | command::deny_oom, 1, 2, 1, "generic", copy},
    {"dbsize", 1, read | fast, 0, 0, 0, "server", dbsize},
    {"del", -2, write, 1, -1, 1, "generic", del},
    {"exists", -2, read | fast, 1, -1, 1, "generic", exists},
    {"expire", -3, write | fast, 1, 1, 1, "generic", expire},
    {"expireat", -3, write | fast, 1, 1, 1, "generic", expireat},
    {"expiretime", 2, read | fast, 1, 1, 1, "generic", expiretime},
    {"flushall", -1, write | command::all_parts, 0, 0, 0, "server", flushall},
    {"flushdb", -1, write | command::all_parts, 0, 0, 0, "server", flushdb},
    {"keys", 2, read | command::own_locks, 0, 0, 0, "generic", keys},
    {"object", -2, read | command::family, 2, 2, 1, "generic", object},
    {"persist", 2, write | fast, 1, 1, 1, "generic", persist},
    {"pexpire", -3, write | fast, 1, 1, 1, "generic", pexpire},
    {"pexpireat", -3, write | fast, 1, 1, 1, "generic", pexpireat},
    {"pexpiretime", 2, read | fast, 1, 1, 1, "generic", pexpiretime},
    {"pttl", 2, read | fast, 1, 1, 1, "generic", pttl},
    {"randomkey", 1, read | command::own_locks, 0, 0, 0, "generic", randomkey},
    {"rename", 3, write, 1, 2, 1, "generic", rename},
    {"renamenx", 3, write | fast, 1, 2, 1, "generic", renamenx},
    {"scan", -2, read | command::own_locks, 0, 0, 0, "generic", scan},
    {"touch", -2, read | fast, 1, -1, 1, "generic", exists},
    {"ttl", 2, read | fast, 1, 1, 1, "generic", ttl},
    {"type", 2, read | fast, 1, 1, 1, "generic", type},
    {"unlink", -2, write | fast, 1, -1, 1, "generic", del},
};

} // namespace

std::span<const command> key_commands() noexcept { return rows; }

} // namespace crestdb::server
