// SPDX-License-Identifier: MIT
//
// Commands on strings.
#include "crestdb/server/command.hpp"
#include "crestdb/server/text.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace crestdb::server {

namespace {

using id_type = keyspace::key_id;

// The string of a key to be changed; null and `ok` if there is none. Not ok: an error was sent.
record* string_to_write(call& c, const id_type& id, bool& ok) {
    record* r = c.keys.find(id);
    ok = r == nullptr || r->kind() == record_kind::string;
    if (!ok) c.out.error(answer::wrong_type);
    return ok ? r : nullptr;
}

void set_value(call& c, const id_type& id, record* old, std::string_view value,
               std::int64_t expiry) {
    // A value of the same size is written where it lies: the record stays where its temperature put it.
    if (old != nullptr && old->kind() == record_kind::string && old->value_size() == value.size() &&
        old->expiry() == expiry && old->is_writable()) {
        std::memmove(old->value_data(), value.data(), value.size());
    } else {
        c.keys.put(id, record::make(record_kind::string, id.key, value, expiry));
    }
    c.keys.changed(id);
}

void get(call& c) {
    record* r = find_to_read(c, c.id(1));
    if (r == nullptr) return c.out.null();
    if (r->kind() != record_kind::string) return c.out.error(answer::wrong_type);
    c.out.value(*r);
}

void set(call& c) {
    bool nx = false, xx = false, get_old = false, keep = false, persist_or_expiry = false;
    bool seconds = false, absolute = false;
    std::string_view amount;
    for (std::size_t i = 3; i < c.args.size(); ++i) {
        const std::string_view option = c.args[i];
        const bool last = i + 1 == c.args.size();
        if (equal_fold(option, "NX") && !xx) {
            nx = true;
        } else if (equal_fold(option, "XX") && !nx) {
            xx = true;
        } else if (equal_fold(option, "GET")) {
            get_old = true;
        } else if (equal_fold(option, "KEEPTTL") && !persist_or_expiry) {
            keep = persist_or_expiry = true;
        } else if (!persist_or_expiry && !last &&
                   (equal_fold(option, "EX") || equal_fold(option, "PX") ||
                    equal_fold(option, "EXAT") || equal_fold(option, "PXAT"))) {
            persist_or_expiry = true;
            seconds = (option[0] | 32) == 'e';
            absolute = option.size() == 4;
            amount = c.args[++i];
        } else {
            return c.out.error(answer::syntax);
        }
    }
    std::int64_t expiry = -1;
    if (!amount.empty() || (persist_or_expiry && !keep))
        if (!parse_expiry(c, amount, seconds, absolute, expiry)) return;
    const id_type id = c.id(1);
    record* old = c.keys.find(id);
    if (get_old) {
        if (old != nullptr && old->kind() != record_kind::string)
            return c.out.error(answer::wrong_type);
        if (old != nullptr)
            c.out.value(*old);
        else
            c.out.null();
    }
    if ((nx && old != nullptr) || (xx && old == nullptr)) {
        if (!get_old) c.out.null();
        return;
    }
    if (keep && old != nullptr) expiry = old->expiry();
    set_value(c, id, old, c.args[2], expiry);
    if (!get_old) c.out.ok();
}

void setnx(call& c) {
    const id_type id = c.id(1);
    if (c.keys.find(id) != nullptr) return c.out.integer(0);
    set_value(c, id, nullptr, c.args[2], -1);
    c.out.integer(1);
}

void set_with_expiry(call& c, bool seconds) {
    std::int64_t expiry = -1;
    if (!parse_expiry(c, c.args[2], seconds, false, expiry)) return;
    const id_type id = c.id(1);
    set_value(c, id, c.keys.find(id), c.args[3], expiry);
    c.out.ok();
}
void setex(call& c) { set_with_expiry(c, true); }
void psetex(call& c) { set_with_expiry(c, false); }

void mget(call& c) {
    c.out.array(c.args.size() - 1);
    for (std::size_t i = 1; i < c.args.size(); ++i) {
        record* r = find_to_read(c, c.id(i));
        if (r == nullptr || r->kind() != record_kind::string)
            c.out.null();
        else
            c.out.value(*r);
    }
}

void mset_all(call& c) {
    for (std::size_t i = 1; i < c.args.size(); i += 2) {
        const id_type id = c.id(i);
        set_value(c, id, c.keys.find(id), c.args[i + 1], -1);
    }
}
void mset(call& c) {
    if (c.args.size() % 2 == 0) return answer::wrong_arity(c.out, c.what.name);
    mset_all(c);
    c.out.ok();
}
void msetnx(call& c) {
    if (c.args.size() % 2 == 0) return answer::wrong_arity(c.out, c.what.name);
    for (std::size_t i = 1; i < c.args.size(); i += 2)
        if (c.keys.find(c.id(i)) != nullptr) return c.out.integer(0);
    mset_all(c);
    c.out.integer(1);
}

void getset(call& c) {
    const id_type id = c.id(1);
    bool ok = false;
    record* old = string_to_write(c, id, ok);
    if (!ok) return;
    if (old != nullptr)
        c.out.value(*old);
    else
        c.out.null();
    set_value(c, id, old, c.args[2], -1);
}

void getdel(call& c) {
    const id_type id = c.id(1);
    record* old = find_to_read(c, id);
    if (old == nullptr) return c.out.null();
    if (old->kind() != record_kind::string) return c.out.error(answer::wrong_type);
    c.out.value(*old);
    c.keys.erase(id);
    c.keys.changed(id);
}

void getex(call& c) {
    bool persist = false, any = false, seconds = false, absolute = false, timed = false;
    std::string_view amount;
    for (std::size_t i = 2; i < c.args.size(); ++i) {
        const std::string_view option = c.args[i];
        const bool last = i + 1 == c.args.size();
        if (equal_fold(option, "PERSIST") && !any) {
            persist = any = true;
        } else if (!any && !last &&
                   (equal_fold(option, "EX") || equal_fold(option, "PX") ||
                    equal_fold(option, "EXAT") || equal_fold(option, "PXAT"))) {
            any = timed = true;
            seconds = (option[0] | 32) == 'e';
            absolute = option.size() == 4;
            amount = c.args[++i];
        } else {
            return c.out.error(answer::syntax);
        }
    }
    const id_type id = c.id(1);
    record* r = find_to_read(c, id);
    if (r == nullptr) return c.out.null();
    if (r->kind() != record_kind::string) return c.out.error(answer::wrong_type);
    std::int64_t at = -1;
    if (timed && !parse_expiry(c, amount, seconds, absolute, at)) return;
    c.out.value(*r);
    if (timed && at <= now_ms()) {
        c.keys.erase(id);
        c.keys.changed(id);
    } else if (timed || (persist && r->has_expiry())) {
        c.keys.set_expiry(id, r, at);
        c.keys.changed(id);
    }
}

bool size_allowed(call& c, std::size_t size) {
    if (size <= record::most_value) return true;
    c.out.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

// The value made `size` long, zeros where it was shorter, and `text` written at `offset`.
void write_range(call& c, const id_type& id, record* old, std::size_t size, std::size_t offset,
                 std::string_view text) {
    const std::size_t had = old == nullptr ? 0 : old->value_size();
    record* into = old;
    if (old == nullptr || size > old->capacity() || !old->is_writable() ||
        (size != had && !old->is_large())) {
        // Large values get room for more of the same, so that appending stays linear.
        const std::size_t capacity = size >= record::large_value && old != nullptr
                                         ? std::min(record::most_value, size + size / 2)
                                         : size;
        into = record::make_unset(record_kind::string, id.key, size,
                                  old == nullptr ? -1 : old->expiry(), capacity);
        if (had > 0) std::memcpy(into->value_data(), old->value().data(), had);
    } else {
        into->set_value_size(size);
    }
    if (offset > had) std::memset(into->value_data() + had, 0, offset - had);
    if (!text.empty()) std::memcpy(into->value_data() + offset, text.data(), text.size());
    if (into != old) c.keys.put(id, into);
    c.keys.changed(id);
}

void append(call& c) {
    const id_type id = c.id(1);
    bool ok = false;
    record* old = string_to_write(c, id, ok);
    if (!ok) return;
    const std::size_t had = old == nullptr ? 0 : old->value_size();
    if (!size_allowed(c, had + c.args[2].size())) return;
    write_range(c, id, old, had + c.args[2].size(), had, c.args[2]);
    c.out.integer(static_cast<std::int64_t>(had + c.args[2].size()));
}

void strlen(call& c) {
    record* r = find_to_read(c, c.id(1));
    if (r == nullptr) return c.out.integer(0);
    if (r->kind() != record_kind::string) return c.out.error(answer::wrong_type);
    c.out.integer(static_cast<std::int64_t>(r->value_size()));
}

void getrange(call& c) {
    const auto first = parse_integer(c.args[2]);
    const auto last = parse_integer(c.args[3]);
    if (!first || !last) return c.out.error(answer::not_an_integer);
    record* r = find_to_read(c, c.id(1));
    if (r == nullptr) return c.out.bulk("");
    if (r->kind() != record_kind::string) return c.out.error(answer::wrong_type);
    const auto size = static_cast<std::int64_t>(r->value_size());
    std::int64_t begin = *first, end = *last;
    if (begin < 0 && end < 0 && begin > end) return c.out.bulk("");
    if (begin < 0) begin = std::max<std::int64_t>(begin + size, 0);
    if (end < 0) end = std::max<std::int64_t>(end + size, 0);
    end = std::min(end, size - 1);
    if (begin > end || size == 0) return c.out.bulk("");
    c.out.bulk(r->value().substr(static_cast<std::size_t>(begin),
                                 static_cast<std::size_t>(end - begin + 1)));
}

void setrange(call& c) {
    const auto offset = parse_integer(c.args[2]);
    if (!offset) return c.out.error(answer::not_an_integer);
    if (*offset < 0) return c.out.error("ERR offset is out of range");
    const id_type id = c.id(1);
    bool ok = false;
    record* old = string_to_write(c, id, ok);
    if (!ok) return;
    const std::size_t had = old == nullptr ? 0 : old->value_size();
    const std::string_view text = c.args[3];
    if (text.empty()) return c.out.integer(static_cast<std::int64_t>(had));
    const auto at = static_cast<std::size_t>(*offset);
    if (at > record::most_value || !size_allowed(c, at + text.size())) {
        if (at > record::most_value)
            c.out.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        return;
    }
    const std::size_t size = std::max(had, at + text.size());
    write_range(c, id, old, size, at, text);
    c.out.integer(static_cast<std::int64_t>(size));
}

void add_integer(call& c, std::int64_t by) {
    const id_type id = c.id(1);
    bool ok = false;
    record* old = string_to_write(c, id, ok);
    if (!ok) return;
    std::int64_t value = 0;
    if (old != nullptr) {
        const auto parsed = parse_integer(old->value());
        if (!parsed) return c.out.error(answer::not_an_integer);
        value = *parsed;
    }
    if (__builtin_add_overflow(value, by, &value)) return c.out.error(answer::overflow);
    set_value(c, id, old, std::to_string(value), old == nullptr ? -1 : old->expiry());
    c.out.integer(value);
}
void incr(call& c) { add_integer(c, 1); }
void decr(call& c) { add_integer(c, -1); }
void incrby(call& c) {
    const auto by = parse_integer(c.args[2]);
    if (!by) return c.out.error(answer::not_an_integer);
    add_integer(c, *by);
}
void decrby(call& c) {
    const auto by = parse_integer(c.args[2]);
    if (!by) return c.out.error(answer::not_an_integer);
    if (*by == std::numeric_limits<std::int64_t>::min())
        return c.out.error("ERR decrement would overflow");
    add_integer(c, -*by);
}

void incrbyfloat(call& c) {
    const id_type id = c.id(1);
    bool ok = false;
    record* old = string_to_write(c, id, ok);
    if (!ok) return;
    std::optional<long double> value = 0;
    if (old != nullptr) value = parse_long_double(old->value());
    const auto by = parse_long_double(c.args[2]);
    if (!value || !by) return c.out.error(answer::not_a_float);
    const long double sum = *value + *by;
    if (std::isnan(sum) || std::isinf(sum)) return c.out.error(answer::not_finite);
    const std::string text = format_long_double(sum);
    set_value(c, id, old, text, old == nullptr ? -1 : old->expiry());
    c.out.bulk(text);
}

constexpr std::uint32_t read = command::reads, write = command::writes | command::deny_oom;

constexpr command rows[] = {
    {"append", 3, write | command::fast, 1, 1, 1, "string", append},
    {"decr", 2, write | command::fast, 1, 1, 1, "string", decr},
    {"decrby", 3, write | command::fast, 1, 1, 1, "string", decrby},
    {"get", 2, read | command::fast, 1, 1, 1, "string", get},
    {"getdel", 2, command::writes | command::fast, 1, 1, 1, "string", getdel},
    {"getex", -2, command::writes | command::fast, 1, 1, 1, "string", getex},
    {"getrange", 4, read, 1, 1, 1, "string", getrange},
    {"getset", 3, write | command::fast, 1, 1, 1, "string", getset},
    {"incr", 2, write | command::fast, 1, 1, 1, "string", incr},
    {"incrby", 3, write | command::fast, 1, 1, 1, "string", incrby},
    {"incrbyfloat", 3, write | command::fast, 1, 1, 1, "string", incrbyfloat},
    {"mget", -2, read | command::fast, 1, -1, 1, "string", mget},
    {"mset", -3, write, 1, -1, 2, "string", mset},
    {"msetnx", -3, write, 1, -1, 2, "string", msetnx},
    {"psetex", 4, write, 1, 1, 1, "string", psetex},
    {"set", -3, write, 1, 1, 1, "string", set},
    {"setex", 4, write, 1, 1, 1, "string", setex},
    {"setnx", 3, write | command::fast, 1, 1, 1, "string", setnx},
    {"setrange", 4, write, 1, 1, 1, "string", setrange},
    {"strlen", 2, read | command::fast, 1, 1, 1, "string", strlen},
    {"substr", 4, read, 1, 1, 1, "string", getrange},
};

} // namespace

std::span<const command> string_commands() noexcept { return rows; }

} // namespace crestdb::server
