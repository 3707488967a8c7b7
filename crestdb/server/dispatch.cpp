// SPDX-License-Identifier: MIT
//
// How a request becomes a call: the table of commands, their locks, MULTI and EXEC.
#include "crestdb/server/instance.hpp"
#include "crestdb/server/text.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <new>

namespace crestdb::server {

namespace {

struct command_table {
    std::vector<command> rows;
    std::unordered_map<std::string_view, std::size_t> places;
    std::vector<command_counters> counters;

    command_table() {
        for (const auto some : {string_commands(), key_commands(), hash_commands(),
                                sorted_set_commands(), server_commands(), transaction_commands()})
            rows.insert(rows.end(), some.begin(), some.end());
        std::sort(rows.begin(), rows.end(),
                  [](const command& a, const command& b) { return a.name < b.name; });
        counters = std::vector<command_counters>(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) places.emplace(rows[i].name, i);
    }
};

const command_table& table() {
    static const command_table all;
    return all;
}

// Commands that are families: what there is in each, and with how many arguments (as command::arity).
struct subcommand {
    std::string_view family, name;
    int arity;
};
constexpr subcommand subcommands[] = {
    {"client", "getname", 2},  {"client", "help", 2},    {"client", "id", 2},
    {"client", "info", 2},     {"client", "kill", -3},   {"client", "list", -2},
    {"client", "no-evict", 3}, {"client", "reply", 3},   {"client", "setname", 3},
    {"command", "count", 2},   {"command", "docs", -2},  {"command", "getkeys", -4},
    {"command", "help", 2},    {"command", "info", -2},  {"command", "list", 2},
    {"config", "get", -3},     {"config", "help", 2},    {"config", "resetstat", 2},
    {"config", "set", -4},     {"latency", "help", 2},   {"latency", "history", 3},
    {"latency", "latest", 2},  {"latency", "reset", -2}, {"memory", "help", 2},
    {"memory", "stats", 2},    {"memory", "usage", -3},  {"object", "encoding", 3},
    {"object", "freq", 3},     {"object", "help", 2},    {"object", "idletime", 3},
    {"object", "refcount", 3}, {"slowlog", "get", -2},   {"slowlog", "help", 2},
    {"slowlog", "len", 2},     {"slowlog", "reset", 2},
};

// "" or why there is no such command in the family; what is no family has none.
std::string wrong_subcommand(const command& what, arguments args) {
    if (!what.is(command::family) || args.size() < 2) return "";
    for (const subcommand& s : subcommands) {
        if (s.family != what.name || !equal_fold(s.name, args[1])) continue;
        const auto n = static_cast<int>(args.size());
        if (s.arity >= 0 ? n == s.arity : n >= -s.arity) return "";
        return "ERR wrong number of arguments for '" + std::string(what.name) + "|" +
               std::string(s.name) + "' command";
    }
    std::string name(what.name);
    for (char& letter : name) letter = static_cast<char>(letter - ('a' - 'A'));
    return "ERR unknown subcommand '" + std::string(args[1].substr(0, 128)) + "'. Try " + name +
           " HELP.";
}

// An error before the command ran: in a transaction it must not be executed any more.
void reject(session& client, const command* what, reply& out, std::string_view why) {
    if (what != nullptr) ++counters_of(*what).rejected;
    if (client.in_multi) client.multi_failed = true;
    out.error(why);
}

keyspace::part_set parts_of(const command& what, unsigned database, arguments args) {
    keyspace::part_set parts;
    if (what.is(command::all_parts)) return parts.set();
    if (what.first_key == 0) return parts;
    const auto n = static_cast<int>(args.size());
    const int last = what.last_key < 0 ? n + what.last_key : what.last_key;
    for (int i = what.first_key; i <= last && i < n; i += what.step)
        parts.set(keyspace::id_of(database, args[static_cast<std::size_t>(i)]).part);
    return parts;
}

} // namespace

std::span<const command> all_commands() noexcept { return table().rows; }

const command* find_command(std::string_view name) noexcept {
    char folded[24];
    if (name.size() > sizeof folded) return nullptr;
    for (std::size_t i = 0; i < name.size(); ++i)
        folded[i] = name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] + 32) : name[i];
    const auto& all = table();
    const auto found = all.places.find(std::string_view(folded, name.size()));
    return found == all.places.end() ? nullptr : &all.rows[found->second];
}

command_counters& counters_of(const command& c) noexcept {
    const auto& all = table();
    return const_cast<command_counters&>(
        all.counters[static_cast<std::size_t>(&c - all.rows.data())]);
}

std::vector<std::size_t> key_positions(const command& c, std::size_t n) {
    std::vector<std::size_t> positions;
    if (c.first_key == 0) return positions;
    const auto count = static_cast<int>(n);
    const int last = c.last_key < 0 ? count + c.last_key : c.last_key;
    for (int i = c.first_key; i <= last && i < count; i += c.step)
        positions.push_back(static_cast<std::size_t>(i));
    return positions;
}

keyspace::key_id call::id(std::size_t argument) const noexcept {
    return keyspace::id_of(client.database, args[argument]);
}

namespace answer {

void wrong_arity(reply& out, std::string_view command_name) {
    out.error("ERR wrong number of arguments for '" + std::string(command_name) + "' command");
}

void unknown_subcommand(call& c) {
    std::string name = lower(c.what.name);
    for (char& letter : name)
        letter = static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
    c.out.error("ERR unknown subcommand '" + std::string(c.args[1].substr(0, 128)) + "'. Try " +
                name + " HELP.");
}

} // namespace answer

record* find_to_read(call& c, const keyspace::key_id& id) {
    record* r = c.keys.find(id);
    ++(r == nullptr ? c.keys.count.misses : c.keys.count.hits);
    return r;
}

bool parse_cursor(call& c, std::size_t cursor, scan_request& into) {
    // As strtoul: a sign is taken, and wraps.
    const std::string text(c.args[cursor]);
    char* end = nullptr;
    errno = 0;
    into.cursor = std::strtoul(text.c_str(), &end, 10);
    if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0 ||
        end != text.c_str() + text.size() || errno == ERANGE) {
        c.out.error("ERR invalid cursor");
        return false;
    }
    return true;
}

bool parse_scan_options(call& c, std::size_t cursor, bool with_type, scan_request& into) {
    for (std::size_t i = cursor + 1; i < c.args.size(); i += 2) {
        const std::string_view option = c.args[i];
        const bool has_value = i + 1 < c.args.size();
        if (equal_fold(option, "COUNT") && has_value) {
            const auto count = parse_integer(c.args[i + 1]);
            if (!count) {
                c.out.error(answer::not_an_integer);
                return false;
            }
            if (*count < 1) {
                c.out.error(answer::syntax);
                return false;
            }
            into.count = std::min<std::int64_t>(*count, 1 << 30);
        } else if (equal_fold(option, "MATCH") && has_value) {
            into.match = c.args[i + 1];
            into.has_match = true;
        } else if (with_type && equal_fold(option, "TYPE") && has_value) {
            into.type = c.args[i + 1];
            into.has_type = true;
        } else {
            c.out.error(answer::syntax);
            return false;
        }
    }
    return true;
}

bool parse_expiry(call& c, std::string_view amount, bool seconds, bool absolute, std::int64_t& at) {
    const auto given = parse_integer(amount);
    if (!given) {
        c.out.error(answer::not_an_integer);
        return false;
    }
    std::int64_t ms = *given;
    bool ok = ms > 0;
    if (ok && seconds) ok = !__builtin_mul_overflow(ms, std::int64_t{1000}, &ms);
    if (ok && !absolute) ok = !__builtin_add_overflow(ms, now_ms(), &ms);
    if (!ok) {
        c.out.error("ERR invalid expire time in '" + std::string(c.what.name) + "' command");
        return false;
    }
    at = ms;
    return true;
}

// -- one request ----------------------------------------------------------------------------------

void instance::execute(session& client, arguments args, output& out) {
    const session::replies before = client.reply_mode;
    const bool silent = before != session::replies::on;
    output nowhere;
    reply answer_to(silent ? nowhere : out, client.protocol,
                    static_cast<std::size_t>(options.output_buffer_limit));
    const std::size_t had = out.text().size();
    ++commands;
    const command* what = find_command(args[0]);
    try {
        if (what == nullptr && (equal_fold(args[0], "POST") || equal_fold(args[0], "Host:"))) {
            // A browser that a page made talk to this port: what follows is not for us.
            log("closed a client that speaks HTTP: " + client.address);
            client.close_after_reply = true;
        } else if (what == nullptr) {
            std::string text = "ERR unknown command '" + std::string(args[0].substr(0, 128)) +
                               "', with args beginning with: ";
            const std::size_t most = text.size() + 128;
            for (std::size_t i = 1; i < args.size() && text.size() < most; ++i)
                text += "'" + std::string(args[i].substr(0, 128)) + "' ";
            reject(client, nullptr, answer_to, text);
        } else if (!what->takes(args.size())) {
            const std::string text =
                "wrong number of arguments for '" + std::string(what->name) + "' command";
            if (what->name == "exec") {
                end(client);
                reject(client, what, answer_to,
                       "EXECABORT Transaction discarded because of: " + text);
            } else {
                reject(client, what, answer_to, "ERR " + text);
            }
        } else if (const std::string why =
                       what->is(command::family) ? wrong_subcommand(*what, args) : std::string();
                   !why.empty()) {
            reject(client, what, answer_to, why);
        } else if (!client.authenticated && !what->is(command::no_auth) && options.has_password()) {
            reject(client, what, answer_to, "NOAUTH Authentication required.");
        } else if (client.in_multi && what->is(command::not_in_multi)) {
            reject(client, what, answer_to, "ERR Command not allowed inside a transaction");
        } else if (what->is(command::deny_oom) && !room_for(*what)) {
            reject(client, what, answer_to, answer::out_of_memory);
        } else if (const auto grows =
                       what->name == "exec" && client.in_multi
                           ? std::find_if(client.queue.begin(), client.queue.end(),
                                          [](const auto& queued) {
                                              return queued.what->is(command::deny_oom);
                                          })
                           : client.queue.end();
                   grows != client.queue.end() && !room_for(*grows->what)) {
            end(client);
            reject(client, what, answer_to,
                   "EXECABORT Transaction discarded because of: " +
                       std::string(answer::out_of_memory));
        } else if (client.in_multi && !what->is(command::not_queued)) {
            enqueue(client, *what, args, answer_to);
        } else {
            run_one(client, *what, args, answer_to, nullptr);
        }
    } catch (const std::bad_alloc&) {
        // What was written of the reply is taken back, so that the client stays in step.
        if (!silent && out.has_no_values_behind(had)) {
            out.text().resize(had);
            out.text() += "-OOM the server could not get memory for this\r\n";
        } else if (!silent) {
            client.close_after_reply = true;
        }
        if (client.in_multi) client.multi_failed = true;
    }
    if (silent) {
        if (before == session::replies::skip && client.reply_mode == before)
            client.reply_mode = session::replies::on;
        else if (before == session::replies::off && client.reply_mode == session::replies::on)
            out.text() += what->name == "reset" ? "+RESET\r\n" : "+OK\r\n"; // or CLIENT REPLY ON
    }
}

bool instance::room_for(const command&) {
    const std::int64_t most = options.maxmemory;
    return most == 0 || keys.make_room(most, options.policy_of_eviction, nullptr, &stopping);
}

void instance::run_one(session& client, const command& what, arguments args, reply& out,
                       const keyspace::part_set* held) {
    command_counters& counters = counters_of(what);
    client.last_command = &what;
    const std::int64_t begin = last_mark();
    const std::uint64_t errors = out.errors();
    if (held != nullptr) {
        call c{*this, keys, client, what, args, out, *held};
        what.run(c);
    } else if (what.first_key > 0 && what.first_key == what.last_key &&
               static_cast<std::size_t>(what.first_key) < args.size()) {
        // One key, one lock: most commands.
        static const keyspace::part_set not_needed;
        const auto key = static_cast<std::size_t>(what.first_key);
        const std::lock_guard hold(keys.lock_of(keyspace::id_of(client.database, args[key]).part));
        const managed_scope scope;
        call c{*this, keys, client, what, args, out, not_needed};
        what.run(c);
    } else if (what.is(command::reads) || what.is(command::writes)) {
        const keyspace::part_set parts = parts_of(what, client.database, args);
        const part_locks locks(keys, parts);
        call c{*this, keys, client, what, args, out, parts};
        if (what.is(command::own_locks)) {
            what.run(c);
        } else {
            const managed_scope scope;
            what.run(c);
        }
    } else {
        static const keyspace::part_set none;
        call c{*this, keys, client, what, args, out, none};
        what.run(c);
    }
    const std::int64_t took = (mark() - begin) / 1000;
    ++counters.calls;
    counters.microseconds += static_cast<std::uint64_t>(took);
    if (out.errors() != errors) ++counters.failed;
    note_time(client, what, args, took);
}

void instance::note_time(session& client, const command& what, arguments args,
                         std::int64_t microseconds) {
    const std::int64_t threshold = options.slowlog_slower_than;
    if (threshold >= 0 && microseconds >= threshold && what.name != "exec" &&
        options.slowlog_max > 0) {
        slow_command entry;
        entry.when = now_ms() / 1000;
        entry.microseconds = microseconds;
        entry.client = client.address;
        {
            const std::lock_guard hold(clients_lock_);
            entry.name = client.name;
        }
        for (std::size_t i = 0; i < args.size(); ++i) {
            if (i == 31 && args.size() > 32) {
                entry.args.push_back("... (" + std::to_string(args.size() - 31) +
                                     " more arguments)");
                break;
            }
            std::string text(args[i].substr(0, 128));
            if (args[i].size() > 128)
                text += "... (" + std::to_string(args[i].size() - 128) + " more bytes)";
            if (what.name == "auth" || what.name == "hello") text = i == 0 ? text : "(redacted)";
            entry.args.push_back(std::move(text));
        }
        const std::lock_guard hold(log_lock);
        entry.id = slow_ids++;
        slow.push_front(std::move(entry));
        while (slow.size() > options.slowlog_max) slow.pop_back();
    }
    if (options.latency_threshold > 0 && microseconds >= 1000 * options.latency_threshold)
        note_latency(what.is(command::fast) ? "fast-command" : "command", microseconds / 1000);
}

void instance::note_latency(std::string_view event, std::int64_t milliseconds) {
    const std::lock_guard hold(log_lock);
    auto& samples = latencies[std::string(event)];
    samples.push_back({now_ms() / 1000, milliseconds});
    if (samples.size() > 160) samples.pop_front();
}

// -- transactions ---------------------------------------------------------------------------------

void instance::enqueue(session& client, const command& what, arguments args, reply& out) {
    session::queued entry{&what, {}};
    for (const std::string_view arg : args) {
        entry.args.emplace_back(arg);
        client.queued_bytes += arg.size() + sizeof(std::string);
    }
    if (client.queued_bytes > options.query_buffer_limit) {
        client.multi_failed = true;
        client.queued_bytes = 0;
        client.queue.clear();
        return out.error("ERR the transaction is larger than client-query-buffer-limit");
    }
    client.queue.push_back(std::move(entry));
    out.simple("QUEUED");
}

namespace {

// `held`: locks that the caller has, as in EXEC.
void forget_watches(keyspace& keys, session& client, const keyspace::part_set& held = {}) {
    for (const std::string& name : client.watched) {
        const keyspace::key_id id = keyspace::id_of_watch(name);
        std::unique_lock<std::mutex> hold;
        if (!held[id.part]) hold = std::unique_lock(keys.lock_of(id.part));
        keys.unwatch(id, name, client.watch_broken);
    }
    std::unordered_set<std::string>().swap(client.watched);
    client.watched_bytes = 0;
    client.watch_broken.reset();
}

void end_transaction(keyspace& keys, session& client) {
    client.in_multi = false;
    client.multi_failed = false;
    client.queue.clear();
    client.queue.shrink_to_fit();
    client.queued_bytes = 0;
    forget_watches(keys, client);
}

void multi(call& c) {
    if (c.client.in_multi) return c.out.error("ERR MULTI calls can not be nested");
    c.client.in_multi = true;
    c.out.ok();
}

void discard(call& c) {
    if (!c.client.in_multi) return c.out.error("ERR DISCARD without MULTI");
    end_transaction(c.keys, c.client);
    c.out.ok();
}

void watch(call& c) {
    if (c.client.in_multi) return c.out.error("ERR WATCH inside MULTI is not allowed");
    if (c.client.watch_broken == nullptr)
        c.client.watch_broken = std::make_shared<std::atomic<bool>>(false);
    // A name here and one in the keyspace, with what the tables have for each.
    constexpr std::size_t tables = 256;
    std::size_t more = 0;
    for (std::size_t i = 1; i < c.args.size(); ++i) more += 2 * c.args[i].size() + tables;
    if (c.client.watched_bytes + more > c.server.options.query_buffer_limit)
        return c.out.error("ERR the watched keys are larger than client-query-buffer-limit");
    for (std::size_t i = 1; i < c.args.size(); ++i) {
        const keyspace::key_id id = c.id(i);
        const auto [name, is_new] = c.client.watched.insert(keyspace::watch_name(id));
        if (!is_new) continue;
        try {
            const std::lock_guard hold(c.keys.lock_of(id.part));
            const managed_scope scope;
            c.keys.find(id); // one that has ended is gone now, not while it is watched
            c.keys.watch(id, *name, c.client.watch_broken);
        } catch (...) {
            c.client.watched.erase(name); // or the next WATCH of it would do nothing
            throw;
        }
        c.client.watched_bytes += 2 * c.args[i].size() + tables;
    }
    c.out.ok();
}

void unwatch(call& c) {
    forget_watches(c.keys, c.client, c.held);
    c.out.ok();
}

} // namespace

void run_exec(call& c) {
    session& client = c.client;
    if (!client.in_multi) return c.out.error("ERR EXEC without MULTI");
    if (client.multi_failed) {
        end_transaction(c.keys, client);
        return c.out.error("EXECABORT Transaction discarded because of previous errors.");
    }
    std::vector<session::queued> queue;
    queue.swap(client.queue);
    // The locks of all keys of all commands, and of those that are watched.
    keyspace::part_set parts;
    std::vector<std::vector<std::string_view>> views;
    views.reserve(queue.size());
    unsigned database = client.database;
    for (const session::queued& q : queue) {
        views.emplace_back(q.args.begin(), q.args.end());
        parts |= parts_of(*q.what, database, views.back());
        // Without a key of its own it may look at any.
        if (q.what->is(command::own_locks)) parts.set();
        if (q.what->name == "select" && q.args.size() == 2) {
            const auto to = parse_integer(q.args[1]);
            if (to && *to >= 0 && *to < keyspace::databases) database = static_cast<unsigned>(*to);
        }
    }
    for (const std::string& name : client.watched) parts.set(keyspace::id_of_watch(name).part);
    bool broken = false;
    {
        const part_locks locks(c.keys, parts);
        const managed_scope scope;
        // A watched key whose time is over has changed.
        for (const std::string& name : client.watched) c.keys.find(keyspace::id_of_watch(name));
        broken = client.watch_broken != nullptr && *client.watch_broken;
        if (!broken) {
            client.in_multi = false; // so that the commands run
            c.out.array(queue.size());
            for (std::size_t i = 0; i < queue.size(); ++i) {
                const std::size_t had = c.out.to().text().size();
                try {
                    c.server.run_one(client, *queue[i].what, views[i], c.out, &parts);
                } catch (const std::bad_alloc&) {
                    if (!c.out.to().has_no_values_behind(had)) throw;
                    c.out.to().text().resize(had);
                    c.out.error(answer::no_memory);
                }
            }
        }
    }
    end_transaction(c.keys, client);
    if (broken) c.out.null_array();
}

void instance::end(session& client) { end_transaction(keys, client); }

namespace {

constexpr command transaction_rows[] = {
    {"discard", 1, command::fast | command::not_queued, 0, 0, 0, "transactions", discard},
    {"exec", 1, command::not_queued, 0, 0, 0, "transactions", run_exec},
    {"multi", 1, command::fast | command::not_queued, 0, 0, 0, "transactions", multi},
    {"unwatch", 1, command::fast, 0, 0, 0, "transactions", unwatch},
    {"watch", -2, command::fast | command::not_queued, 1, -1, 1, "transactions", watch},
};

} // namespace

std::span<const command> transaction_commands() noexcept { return transaction_rows; }

} // namespace crestdb::server
