// SPDX-License-Identifier: MIT
//
// Commands on hashes.
#include "crestdb/server/command.hpp"
#include "crestdb/server/text.hpp"

#include <cmath>

namespace crestdb::server {

namespace {

using id_type = keyspace::key_id;

hash_value& fields_of(record& r) { return *static_cast<hash_value*>(r.collection()); }

// The hash that is to be read; null without one, then `ok` says whether the key is only missing.
hash_value* hash_to_read(call& c, bool& ok) {
    record* r = find_to_read(c, c.id(1));
    ok = r == nullptr || r->kind() == record_kind::hash;
    if (!ok) c.out.error(answer::wrong_type);
    return ok && r != nullptr ? &fields_of(*r) : nullptr;
}

// The hash that is to be written, made if there is none; null: an error was sent. In `made`: whether.
record* hash_to_write(call& c, const id_type& id) {
    record* r = c.keys.find(id);
    if (r != nullptr) {
        if (r->kind() == record_kind::hash) return r;
        c.out.error(answer::wrong_type);
        return nullptr;
    }
    auto collection = std::make_unique<hash_value>();
    record* made = record::make_collection(record_kind::hash, id.key, collection.get());
    collection.release();
    c.keys.put(id, made);
    return made;
}

// Nothing is left of a hash without fields, also where memory ran out before the first.
class removed_if_empty {
  public:
    removed_if_empty(call& c, const id_type& id, hash_value& hash) : c_(c), id_(id), hash_(hash) {}
    ~removed_if_empty() {
        if (hash_.size() == 0) c_.keys.erase(id_);
    }
    removed_if_empty(const removed_if_empty&) = delete;
    removed_if_empty& operator=(const removed_if_empty&) = delete;

  private:
    call& c_;
    const id_type& id_;
    hash_value& hash_;
};

std::int64_t set_fields(call& c, bool& ok) {
    ok = false;
    if (c.args.size() % 2 != 0) {
        answer::wrong_arity(c.out, c.what.name);
        return 0;
    }
    const id_type id = c.id(1);
    record* r = hash_to_write(c, id);
    if (r == nullptr) return 0;
    hash_value& hash = fields_of(*r);
    const removed_if_empty guard(c, id, hash);
    const counted_growth growth(c.keys, *r);
    std::int64_t added = 0;
    try {
        for (std::size_t i = 2; i < c.args.size(); i += 2)
            added += hash.set(c.args[i], c.args[i + 1]);
    } catch (...) {
        c.keys.changed(id); // the first fields are there
        throw;
    }
    c.keys.changed(id);
    ok = true;
    return added;
}
void hset(call& c) {
    bool ok = false;
    const std::int64_t added = set_fields(c, ok);
    if (ok) c.out.integer(added);
}
void hmset(call& c) {
    bool ok = false;
    set_fields(c, ok);
    if (ok) c.out.ok();
}

void hsetnx(call& c) {
    const id_type id = c.id(1);
    record* r = hash_to_write(c, id);
    if (r == nullptr) return;
    hash_value& hash = fields_of(*r);
    const removed_if_empty guard(c, id, hash);
    const counted_growth growth(c.keys, *r);
    if (hash.find(c.args[2]) != nullptr) return c.out.integer(0);
    hash.set(c.args[2], c.args[3]);
    c.keys.changed(id);
    c.out.integer(1);
}

void hget(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    record* field = hash == nullptr ? nullptr : hash->find(c.args[2]);
    if (field == nullptr) return c.out.null();
    c.out.bulk(field->value());
}

void hmget(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    c.out.array(c.args.size() - 2);
    for (std::size_t i = 2; i < c.args.size(); ++i) {
        record* field = hash == nullptr ? nullptr : hash->find(c.args[i]);
        if (field == nullptr)
            c.out.null();
        else
            c.out.bulk(field->value());
    }
}

void hgetall(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    c.out.map(hash == nullptr ? 0 : hash->size());
    if (hash != nullptr)
        hash->each([&](record& field) {
            c.out.bulk(field.key());
            c.out.bulk(field.value());
        });
}
void hkeys(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    c.out.array(hash == nullptr ? 0 : hash->size());
    if (hash != nullptr) hash->each([&](record& field) { c.out.bulk(field.key()); });
}
void hvals(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    c.out.array(hash == nullptr ? 0 : hash->size());
    if (hash != nullptr) hash->each([&](record& field) { c.out.bulk(field.value()); });
}

void hdel(call& c) {
    const id_type id = c.id(1);
    record* r = c.keys.find(id);
    if (r == nullptr) return c.out.integer(0);
    if (r->kind() != record_kind::hash) return c.out.error(answer::wrong_type);
    hash_value& hash = fields_of(*r);
    std::int64_t removed = 0;
    {
        const counted_growth growth(c.keys, *r);
        for (std::size_t i = 2; i < c.args.size(); ++i) removed += hash.erase(c.args[i]);
    }
    if (hash.size() == 0) c.keys.erase(id);
    if (removed > 0) c.keys.changed(id);
    c.out.integer(removed);
}

void hexists(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (ok) c.out.integer(hash != nullptr && hash->find(c.args[2]) != nullptr);
}
void hlen(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (ok) c.out.integer(hash == nullptr ? 0 : static_cast<std::int64_t>(hash->size()));
}
void hstrlen(call& c) {
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    record* field = hash == nullptr ? nullptr : hash->find(c.args[2]);
    c.out.integer(field == nullptr ? 0 : static_cast<std::int64_t>(field->value_size()));
}

void hincrby(call& c) {
    const auto by = parse_integer(c.args[3]);
    if (!by) return c.out.error(answer::not_an_integer);
    const id_type id = c.id(1);
    record* r = hash_to_write(c, id);
    if (r == nullptr) return;
    hash_value& hash = fields_of(*r);
    const removed_if_empty guard(c, id, hash);
    const counted_growth growth(c.keys, *r);
    std::int64_t value = 0;
    if (record* field = hash.find(c.args[2]); field != nullptr) {
        const auto parsed = parse_integer(field->value());
        if (!parsed) return c.out.error("ERR hash value is not an integer");
        value = *parsed;
    }
    if (__builtin_add_overflow(value, *by, &value)) return c.out.error(answer::overflow);
    hash.set(c.args[2], std::to_string(value));
    c.keys.changed(id);
    c.out.integer(value);
}

void hincrbyfloat(call& c) {
    const auto by = parse_long_double(c.args[3]);
    if (!by) return c.out.error(answer::not_a_float);
    if (std::isinf(*by)) return c.out.error("ERR value is NaN or Infinity");
    const id_type id = c.id(1);
    record* r = hash_to_write(c, id);
    if (r == nullptr) return;
    hash_value& hash = fields_of(*r);
    const removed_if_empty guard(c, id, hash);
    const counted_growth growth(c.keys, *r);
    std::optional<long double> value = 0;
    if (record* field = hash.find(c.args[2]); field != nullptr) {
        value = parse_long_double(field->value());
        if (!value) return c.out.error("ERR hash value is not a float");
    }
    const long double sum = *value + *by;
    if (std::isnan(sum) || std::isinf(sum)) return c.out.error(answer::not_finite);
    const std::string text = format_long_double(sum);
    hash.set(c.args[2], text);
    c.keys.changed(id);
    c.out.bulk(text);
}

void hscan(call& c) {
    scan_request want;
    if (!parse_cursor(c, 2, want)) return;
    bool ok = false;
    hash_value* hash = hash_to_read(c, ok);
    if (!ok) return;
    // As in Redis: options of a key that is not there are not looked at.
    if (hash != nullptr && !parse_scan_options(c, 2, false, want)) return;
    std::vector<record*> found;
    auto cursor = static_cast<std::uint32_t>(want.cursor);
    std::int64_t seen = 0;
    if (hash == nullptr || want.cursor > UINT32_MAX) {
        cursor = 0;
    } else {
        do {
            cursor = hash->scan(cursor, [&](record& field) {
                ++seen;
                if (!want.has_match || glob_match(want.match, field.key())) found.push_back(&field);
            });
        } while (cursor != 0 && seen < want.count);
    }
    c.out.array(2);
    c.out.bulk(std::to_string(cursor));
    c.out.array(2 * found.size());
    for (record* field : found) {
        c.out.bulk(field->key());
        c.out.bulk(field->value());
    }
}

constexpr std::uint32_t read = command::reads, write = command::writes | command::deny_oom,
                        fast = command::fast;

constexpr command rows[] = {
    {"hdel", -3, command::writes | fast, 1, 1, 1, "hash", hdel},
    {"hexists", 3, read | fast, 1, 1, 1, "hash", hexists},
    {"hget", 3, read | fast, 1, 1, 1, "hash", hget},
    {"hgetall", 2, read, 1, 1, 1, "hash", hgetall},
    {"hincrby", 4, write | fast, 1, 1, 1, "hash", hincrby},
    {"hincrbyfloat", 4, write | fast, 1, 1, 1, "hash", hincrbyfloat},
    {"hkeys", 2, read, 1, 1, 1, "hash", hkeys},
    {"hlen", 2, read | fast, 1, 1, 1, "hash", hlen},
    {"hmget", -3, read | fast, 1, 1, 1, "hash", hmget},
    {"hmset", -4, write | fast, 1, 1, 1, "hash", hmset},
    {"hscan", -3, read, 1, 1, 1, "hash", hscan},
    {"hset", -4, write | fast, 1, 1, 1, "hash", hset},
    {"hsetnx", 4, write | fast, 1, 1, 1, "hash", hsetnx},
    {"hstrlen", 3, read | fast, 1, 1, 1, "hash", hstrlen},
    {"hvals", 2, read, 1, 1, 1, "hash", hvals},
};

} // namespace

std::span<const command> hash_commands() noexcept { return rows; }

} // namespace crestdb::server
