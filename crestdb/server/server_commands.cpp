// SPDX-License-Identifier: MIT
//
// Commands on the connection and on the server.
#include "crestdb/server/command.hpp"
#include "crestdb/server/instance.hpp"
#include "crestdb/server/text.hpp"

#include <obase/runtime.hpp>
#include <obase/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

namespace crestdb::server {

namespace {

void help(call& c, std::initializer_list<std::string_view> lines) {
    c.out.array(lines.size() + 1);
    std::string name;
    for (const char letter : c.what.name)
        name += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
    c.out.simple(name + " <subcommand> [<arg> ...]. Subcommands are:");
    for (const std::string_view line : lines) c.out.simple(line);
}

bool wants(call& c, std::string_view subcommand) { return equal_fold(c.args[1], subcommand); }

// -- the connection -------------------------------------------------------------------------------

void ping(call& c) {
    if (c.args.size() > 2) return answer::wrong_arity(c.out, "ping");
    if (c.args.size() == 2) return c.out.bulk(c.args[1]);
    c.out.simple("PONG");
}
void echo(call& c) { c.out.bulk(c.args[1]); }

void quit(call& c) {
    c.client.close_after_reply = true;
    c.out.ok();
}

void select(call& c) {
    const auto index = parse_integer(c.args[1]);
    if (!index) return c.out.error(answer::not_an_integer);
    if (*index < 0 || *index >= keyspace::databases)
        return c.out.error("ERR DB index is out of range");
    c.client.database = static_cast<unsigned>(*index);
    c.out.ok();
}

// In a time that does not say how much of it was right.
bool same_secret(std::string_view given, std::string_view secret) noexcept {
    unsigned difference = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i)
        difference |=
            static_cast<unsigned>(given[i] ^ (secret.empty() ? 0 : secret[i % secret.size()]));
    return difference == 0;
}

constexpr std::string_view wrong_password =
    "WRONGPASS invalid username-password pair or user is disabled.";

bool authenticate(call& c, std::string_view user, std::string_view password) {
    const std::string secret = c.server.options.password();
    const bool right = user == "default" && (secret.empty() || same_secret(password, secret));
    if (right) c.client.authenticated = true;
    return right;
}

void auth(call& c) {
    if (c.args.size() > 3) return c.out.error(answer::syntax);
    if (c.args.size() == 2 && !c.server.options.has_password())
        return c.out.error("ERR AUTH <password> called without any password configured for the "
                           "default user. Are you sure your configuration is correct?");
    const bool right = c.args.size() == 2 ? authenticate(c, "default", c.args[1])
                                          : authenticate(c, c.args[1], c.args[2]);
    if (right)
        c.out.ok();
    else
        c.out.error(wrong_password);
}

bool valid_name(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char l) { return l >= '!' && l <= '~'; });
}
constexpr std::string_view bad_name =
    "ERR Client names cannot contain spaces, newlines or special characters.";

void set_name(call& c, std::string_view name) {
    const std::lock_guard hold(c.server.clients_lock());
    c.client.name = name;
}

void hello(call& c) {
    std::int64_t protocol = c.client.protocol;
    std::size_t i = 1;
    if (c.args.size() > 1) {
        const auto wanted = parse_integer(c.args[1]);
        if (!wanted) return c.out.error("ERR Protocol version is not an integer or out of range");
        if (*wanted != 2 && *wanted != 3)
            return c.out.error("NOPROTO unsupported protocol version");
        protocol = *wanted;
        i = 2;
    }
    std::optional<std::string_view> name;
    for (; i < c.args.size(); ++i) {
        if (equal_fold(c.args[i], "AUTH") && i + 2 < c.args.size()) {
            if (!authenticate(c, c.args[i + 1], c.args[i + 2])) return c.out.error(wrong_password);
            i += 2;
        } else if (equal_fold(c.args[i], "SETNAME") && i + 1 < c.args.size()) {
            name = c.args[++i];
            if (!valid_name(*name)) return c.out.error(bad_name);
        } else {
            return c.out.error(fmt::format("ERR Syntax error in HELLO option '{}'", c.args[i]));
        }
    }
    if (!c.client.authenticated && c.server.options.has_password())
        return c.out.error(
            "NOAUTH HELLO must be called with the client already authenticated, "
            "otherwise the HELLO <proto> AUTH <user> <pass> option can be used to "
            "authenticate the client and select the RESP protocol version at the same time");
    if (name) set_name(c, *name);
    c.client.protocol = static_cast<int>(protocol);
    reply out(c.out.to(), static_cast<int>(protocol));
    out.map(7);
    out.bulk("server");
    out.bulk("redis"); // what clients compare with
    out.bulk("version");
    out.bulk("7.0.15");
    out.bulk("proto");
    out.integer(protocol);
    out.bulk("id");
    out.integer(static_cast<std::int64_t>(c.client.id));
    out.bulk("mode");
    out.bulk("standalone");
    out.bulk("role");
    out.bulk("master");
    out.bulk("modules");
    out.array(0);
}

void reset(call& c) {
    c.server.end(c.client);
    c.client.database = 0;
    c.client.protocol = 2;
    c.client.authenticated = !c.server.options.has_password();
    c.client.reply_mode = session::replies::on;
    set_name(c, "");
    c.out.simple("RESET");
}

// Under the register's lock.
std::string describe(const session& s, const session& asking) {
    const auto now = std::chrono::steady_clock::now();
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - s.since).count();
    const std::int64_t idle = std::max<std::int64_t>(0, now_ms() - s.last_used_ms) / 1000;
    const command* last = s.last_command;
    return fmt::format("id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub=0 "
                       "psub=0 ssub=0 multi={} "
                       "qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 "
                       "omem={} tot-mem={} events={} "
                       "cmd={} user=default redir=-1 resp={}",
                       s.id, s.address, s.local, s.descriptor, s.name, age,
                       &s == &asking ? 0 : idle, s.in_multi ? "x" : "N", s.database.load(),
                       s.in_multi ? 0 : -1, s.input_bytes.load(), s.output_bytes.load(),
                       s.output_bytes.load(),
                       sizeof(session) + s.input_bytes.load() + s.output_bytes.load(),
                       s.output_bytes.load() > 0 ? "rw" : "r",
                       last == nullptr ? "NULL" : last->name, s.protocol.load());
}

// Whether clients here are of a type of Redis' clients: all are normal. Nothing: there is no such type.
std::optional<bool> is_our_type(std::string_view name) {
    if (equal_fold(name, "normal")) return true;
    for (const std::string_view other : {"master", "replica", "slave", "pubsub"})
        if (equal_fold(name, other)) return false;
    return std::nullopt;
}

std::string unknown_type(std::string_view name) {
    return fmt::format("ERR Unknown client type '{}'", name);
}

void client_list(call& c) {
    // CLIENT LIST, CLIENT LIST TYPE type, or CLIENT LIST ID n ...
    const std::size_t n = c.args.size();
    bool all = true;
    std::set<std::uint64_t> ids;
    if (n == 4 && equal_fold(c.args[2], "TYPE")) {
        const auto ours = is_our_type(c.args[3]);
        if (!ours) return c.out.error(unknown_type(c.args[3]));
        all = *ours;
    } else if (n > 3 && equal_fold(c.args[2], "ID")) {
        all = false;
        for (std::size_t i = 3; i < n; ++i) {
            const auto id = parse_unsigned(c.args[i]);
            if (!id || *id == 0) return c.out.error("ERR Invalid client ID");
            ids.insert(*id);
        }
    } else if (n > 2) {
        return c.out.error(answer::syntax);
    }
    std::string text;
    const std::lock_guard hold(c.server.clients_lock());
    for (const auto& [id, s] : c.server.clients())
        if (all || ids.contains(id)) text += describe(*s, c.client) + "\n";
    c.out.verbatim(text);
}

void client_kill(call& c) {
    // CLIENT KILL address, or CLIENT KILL ID n | TYPE type | USER name | ADDR address | LADDR address | SKIPME yes ...
    std::optional<std::uint64_t> id;
    std::optional<std::string_view> address, local;
    bool skip_me = true, any = true;
    const bool old_form = c.args.size() == 3;
    if (old_form) {
        address = c.args[2];
        skip_me = false;
    } else {
        for (std::size_t i = 2; i < c.args.size(); i += 2) {
            if (i + 1 >= c.args.size()) return c.out.error(answer::syntax);
            const std::string_view value = c.args[i + 1];
            if (equal_fold(c.args[i], "ID")) {
                id = parse_unsigned(value);
                if (!id || *id == 0) return c.out.error("ERR client-id should be greater than 0");
            } else if (equal_fold(c.args[i], "TYPE")) {
                const auto ours = is_our_type(value);
                if (!ours) return c.out.error(unknown_type(value));
                any = *ours;
            } else if (equal_fold(c.args[i], "USER")) {
                if (value != "default")
                    return c.out.error(fmt::format("ERR No such user '{}'", value));
            } else if (equal_fold(c.args[i], "ADDR")) {
                address = value;
            } else if (equal_fold(c.args[i], "LADDR")) {
                local = value;
            } else if (equal_fold(c.args[i], "SKIPME") &&
                       (equal_fold(value, "yes") || equal_fold(value, "no"))) {
                skip_me = equal_fold(value, "yes");
            } else {
                return c.out.error(answer::syntax);
            }
        }
    }
    std::int64_t killed = 0;
    const std::lock_guard hold(c.server.clients_lock());
    for (const auto& [number, s] : c.server.clients()) {
        if (!any || (id && number != *id)) continue;
        if (address && s->address != *address) continue;
        if (local && s->local != *local) continue;
        if (skip_me && s == &c.client) continue;
        ++killed;
        if (s == &c.client)
            c.client.close_after_reply = true;
        else if (c.server.kill)
            c.server.kill(*s);
    }
    if (!old_form) return c.out.integer(killed);
    if (killed == 0) return c.out.error("ERR No such client");
    c.out.ok();
}

void client(call& c) {
    const std::size_t n = c.args.size();
    if (wants(c, "ID") && n == 2) return c.out.integer(static_cast<std::int64_t>(c.client.id));
    if (wants(c, "GETNAME") && n == 2)
        return c.client.name.empty() ? c.out.null() : c.out.bulk(c.client.name);
    if (wants(c, "SETNAME") && n == 3) {
        if (!valid_name(c.args[2])) return c.out.error(bad_name);
        set_name(c, c.args[2]);
        return c.out.ok();
    }
    if (wants(c, "LIST")) return client_list(c);
    if (wants(c, "NO-EVICT") && n == 3) {
        // No client is closed for the memory of all: each has limits of its own.
        if (!equal_fold(c.args[2], "ON") && !equal_fold(c.args[2], "OFF"))
            return c.out.error(answer::syntax);
        return c.out.ok();
    }
    if (wants(c, "INFO") && n == 2) {
        const std::lock_guard hold(c.server.clients_lock());
        return c.out.verbatim(describe(c.client, c.client) + "\n");
    }
    if (wants(c, "KILL") && n >= 3) return client_kill(c);
    if (wants(c, "REPLY") && n == 3) {
        if (equal_fold(c.args[2], "ON")) {
            c.client.reply_mode = session::replies::on;
            return c.out.ok();
        }
        if (equal_fold(c.args[2], "OFF")) {
            c.client.reply_mode = session::replies::off;
            return;
        }
        if (equal_fold(c.args[2], "SKIP")) {
            if (c.client.reply_mode != session::replies::off)
                c.client.reply_mode = session::replies::skip;
            return;
        }
        return c.out.error(answer::syntax);
    }
    if (wants(c, "HELP") && n == 2)
        return help(c, {"GETNAME", "ID", "INFO", "KILL <address>", "KILL <option> <value> ...",
                        "LIST [TYPE <type>|ID <id> ...]", "NO-EVICT (ON|OFF)",
                        "REPLY (ON|OFF|SKIP)", "SETNAME <name>"});
    answer::unknown_subcommand(c);
}

// -- COMMAND --------------------------------------------------------------------------------------

void describe_command(reply& out, const command& what) {
    std::vector<std::string_view> flags;
    if (what.is(command::writes)) flags.push_back("write");
    if (what.is(command::reads)) flags.push_back("readonly");
    if (what.is(command::deny_oom)) flags.push_back("denyoom");
    if (what.is(command::admin)) flags.push_back("admin");
    if (what.is(command::fast)) flags.push_back("fast");
    if (what.is(command::no_auth)) flags.push_back("no_auth");
    if (what.is(command::not_in_multi)) flags.push_back("no_multi");
    out.array(10);
    out.bulk(what.name);
    out.integer(what.arity);
    out.set(flags.size());
    for (const std::string_view flag : flags) out.simple(flag);
    out.integer(what.first_key);
    out.integer(what.last_key);
    out.integer(what.step);
    out.set(0); // ACL categories
    out.array(0);
    out.array(0);
    out.array(0);
}

void command_command(call& c) {
    const auto all = all_commands();
    const std::size_t n = c.args.size();
    if (n == 1) {
        c.out.array(all.size());
        for (const command& what : all) describe_command(c.out, what);
        return;
    }
    if (wants(c, "COUNT") && n == 2) return c.out.integer(static_cast<std::int64_t>(all.size()));
    if (wants(c, "LIST") && n == 2) {
        c.out.set(all.size());
        for (const command& what : all) c.out.bulk(what.name);
        return;
    }
    if (wants(c, "INFO")) {
        c.out.array(n == 2 ? all.size() : n - 2);
        if (n == 2)
            for (const command& what : all) describe_command(c.out, what);
        for (std::size_t i = 2; i < n; ++i) {
            const command* what = find_command(c.args[i]);
            if (what == nullptr)
                c.out.null_array();
            else
                describe_command(c.out, *what);
        }
        return;
    }
    if (wants(c, "DOCS")) {
        std::vector<const command*> wanted;
        if (n == 2)
            for (const command& what : all) wanted.push_back(&what);
        for (std::size_t i = 2; i < n; ++i)
            if (const command* what = find_command(c.args[i]); what != nullptr)
                wanted.push_back(what);
        c.out.map(wanted.size());
        for (const command* what : wanted) {
            c.out.bulk(what->name);
            c.out.map(1);
            c.out.bulk("group");
            c.out.bulk(what->group);
        }
        return;
    }
    if (wants(c, "GETKEYS") && n >= 3) {
        const command* what = find_command(c.args[2]);
        if (what == nullptr) return c.out.error("ERR Invalid command specified");
        if (what->first_key == 0) return c.out.error("ERR The command has no key arguments");
        if (!what->takes(n - 2))
            return c.out.error("ERR Invalid number of arguments specified for command");
        const auto positions = key_positions(*what, n - 2);
        c.out.array(positions.size());
        for (const std::size_t p : positions) c.out.bulk(c.args[2 + p]);
        return;
    }
    if (wants(c, "HELP") && n == 2)
        return help(c, {"(no subcommand)", "COUNT", "DOCS [<name> ...]", "GETKEYS <command>",
                        "INFO [<name> ...]", "LIST"});
    answer::unknown_subcommand(c);
}

// -- the server -----------------------------------------------------------------------------------

void config(call& c) {
    const std::size_t n = c.args.size();
    if (wants(c, "GET") && n >= 3) {
        std::vector<std::pair<std::string, std::string>> found;
        for (auto& entry : c.server.options.all())
            for (std::size_t i = 2; i < n; ++i)
                if (glob_match(c.args[i], entry.first, true)) {
                    found.push_back(std::move(entry));
                    break;
                }
        c.out.map(found.size());
        for (const auto& [name, value] : found) {
            c.out.bulk(name);
            c.out.bulk(value);
        }
        return;
    }
    if (wants(c, "SET") && n >= 4 && n % 2 == 0) {
        std::vector<std::pair<std::string, std::string>> before;
        const auto all = c.server.options.all();
        // Of more pairs than there are parameters one is unknown, or is among the first twice.
        for (std::size_t i = 2; i < std::min(n, 4 + 2 * all.size()); i += 2)
            for (std::size_t earlier = 2; earlier < i; earlier += 2)
                if (equal_fold(c.args[earlier], c.args[i]))
                    return c.out.error(fmt::format("ERR CONFIG SET failed (possibly related to "
                                                   "argument '{}') - duplicate parameter",
                                                   c.args[i]));
        for (std::size_t i = 2; i < n; i += 2) {
            const std::string why = c.server.options.set(c.args[i], c.args[i + 1]);
            if (why.empty()) {
                for (const auto& [name, value] : all)
                    if (equal_fold(name, c.args[i])) before.emplace_back(name, value);
                continue;
            }
            // All or nothing.
            for (const auto& [name, value] : before) c.server.options.set(name, value);
            if (why == "unknown")
                return c.out.error(fmt::format(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{}'", c.args[i]));
            return c.out.error(fmt::format(
                "ERR CONFIG SET failed (possibly related to argument '{}') - {}", c.args[i], why));
        }
        return c.out.ok();
    }
    if (wants(c, "RESETSTAT") && n == 2) {
        c.keys.count.hits = 0;
        c.keys.count.misses = 0;
        c.keys.count.expired = 0;
        c.keys.count.evicted = 0;
        c.server.connections = 0;
        c.server.rejected_connections = 0;
        c.server.commands = 0;
        c.server.bytes_in = 0;
        c.server.bytes_out = 0;
        for (const command& what : all_commands()) {
            command_counters& counters = counters_of(what);
            counters.calls = counters.microseconds = counters.failed = counters.rejected = 0;
        }
        return c.out.ok();
    }
    if (wants(c, "HELP") && n == 2)
        return help(c, {"GET <pattern> ...", "SET <directive> <value> ...", "RESETSTAT"});
    answer::unknown_subcommand(c);
}

void info(call& c) {
    std::vector<std::string> sections;
    for (std::size_t i = 1; i < c.args.size(); ++i) sections.push_back(lower(c.args[i]));
    c.out.verbatim(c.server.info(sections));
}

void memory(call& c) {
    const std::size_t n = c.args.size();
    if (wants(c, "USAGE") && n >= 3) {
        if (n != 3 && !(n == 5 && equal_fold(c.args[3], "SAMPLES") && parse_integer(c.args[4]) &&
                        *parse_integer(c.args[4]) >= 0))
            return c.out.error(answer::syntax);
        record* r = c.keys.find(c.id(2));
        if (r == nullptr) return c.out.null();
        return c.out.integer(static_cast<std::int64_t>(c.keys.memory_of(*r)));
    }
    if (wants(c, "STATS") && n == 2) {
        std::size_t keys = 0;
        for (unsigned d = 0; d < keyspace::databases; ++d) keys += c.keys.size(d);
        const auto used = c.keys.used_bytes();
        c.out.map(4);
        c.out.bulk("peak.allocated");
        c.out.integer(c.server.peak_used);
        c.out.bulk("total.allocated");
        c.out.integer(used);
        c.out.bulk("keys.count");
        c.out.integer(static_cast<std::int64_t>(keys));
        c.out.bulk("keys.bytes-per-key");
        c.out.integer(keys == 0 ? 0 : used / static_cast<std::int64_t>(keys));
        return;
    }
    if (wants(c, "HELP") && n == 2) return help(c, {"STATS", "USAGE <key> [SAMPLES <count>]"});
    answer::unknown_subcommand(c);
}

void debug(call& c) {
    const std::size_t n = c.args.size();
    if (wants(c, "SLEEP") && n == 3) {
        const auto seconds = parse_double(c.args[2]);
        if (!seconds || *seconds < 0 || *seconds > 3600) return c.out.error(answer::not_a_float);
        std::this_thread::sleep_for(std::chrono::duration<double>(*seconds));
        return c.out.ok();
    }
    if (wants(c, "SET-ACTIVE-EXPIRE") && n == 3) {
        c.server.options.active_expire = c.args[2] != "0";
        return c.out.ok();
    }
    // A window of the collector now: what was not used since the last one grows older.
    if (wants(c, "COLLECT") && n == 2) {
        const auto result = managing_runtime().collect_now();
        if (result == obase::collect_result::not_running)
            return c.out.error("ERR nothing moves here (--protocol none or --mode off)");
        if (result == obase::collect_result::in_scope)
            return c.out.error("ERR DEBUG COLLECT is not allowed inside a transaction");
        c.server.tick();
        return c.out.ok();
    }
    if (wants(c, "HELP") && n == 2)
        return help(c, {"COLLECT", "SET-ACTIVE-EXPIRE <0|1>", "SLEEP <seconds>"});
    answer::unknown_subcommand(c);
}

void save(call& c) {
    std::string why;
    if (c.client.found != nullptr)
        why = c.client.found->failure;
    else
        why = c.server.save();
    if (why.empty())
        c.out.ok();
    else
        c.out.error("ERR " + why);
}

void bgsave(call& c) {
    if (c.args.size() > 2 || (c.args.size() == 2 && !equal_fold(c.args[1], "SCHEDULE")))
        return c.out.error(answer::syntax);
    if (c.server.saving()) return c.out.error("ERR Background save already in progress");
    const std::string why = c.server.begin_background_save();
    if (why.empty())
        c.out.simple("Background saving started");
    else
        c.out.error("ERR " + why);
}

void lastsave(call& c) { c.out.integer(c.server.last_save_seconds); }

void shutdown(call& c) {
    bool save_first = c.server.options.save_at_shutdown;
    bool save = false, no_save = false, abort = false;
    for (std::size_t i = 1; i < c.args.size(); ++i) {
        if (equal_fold(c.args[i], "NOSAVE")) {
            no_save = true;
            save_first = false;
        } else if (equal_fold(c.args[i], "SAVE")) {
            save = save_first = true;
        } else if (equal_fold(c.args[i], "ABORT")) {
            abort = true;
        } else if (!equal_fold(c.args[i], "NOW") && !equal_fold(c.args[i], "FORCE")) {
            return c.out.error(answer::syntax);
        }
    }
    if ((save && no_save) || (abort && c.args.size() > 2)) return c.out.error(answer::syntax);
    // One that has begun does not wait for replicas: there is none to be given up.
    if (abort) return c.out.error("ERR No shutdown in progress.");
    if (!save_first) c.server.no_save = true;
    if (save_first) {
        c.server.abandon_background_save();
        if (const std::string why = c.server.save(); !why.empty())
            return c.out.error("ERR Errors trying to SHUTDOWN. Check logs.");
    }
    if (c.server.stop_requested) c.server.stop_requested(false);
    c.client.close_after_reply = true; // without a reply, as Redis
}

void slowlog(call& c) {
    const std::size_t n = c.args.size();
    const std::lock_guard hold(c.server.log_lock);
    if (wants(c, "LEN") && n == 2)
        return c.out.integer(static_cast<std::int64_t>(c.server.slow.size()));
    if (wants(c, "RESET") && n == 2) {
        c.server.slow.clear();
        return c.out.ok();
    }
    if (wants(c, "GET") && n > 3)
        return c.out.error("ERR unknown subcommand or wrong number of arguments for 'GET'. Try "
                           "SLOWLOG HELP.");
    if (wants(c, "GET")) {
        std::int64_t most = 10;
        if (n == 3) {
            const auto given = parse_integer(c.args[2]);
            if (!given || *given < -1)
                return c.out.error("ERR count should be greater than or equal to -1");
            most = *given;
        }
        const std::size_t count =
            most < 0 ? c.server.slow.size()
                     : std::min(c.server.slow.size(), static_cast<std::size_t>(most));
        c.out.array(count);
        for (std::size_t i = 0; i < count; ++i) {
            const auto& entry = c.server.slow[i];
            c.out.array(6);
            c.out.integer(static_cast<std::int64_t>(entry.id));
            c.out.integer(entry.when);
            c.out.integer(entry.microseconds);
            c.out.array(entry.args.size());
            for (const std::string& arg : entry.args) c.out.bulk(arg);
            c.out.bulk(entry.client);
            c.out.bulk(entry.name);
        }
        return;
    }
    if (wants(c, "HELP") && n == 2) return help(c, {"GET [<count>]", "LEN", "RESET"});
    answer::unknown_subcommand(c);
}

void latency(call& c) {
    const std::size_t n = c.args.size();
    const std::lock_guard hold(c.server.log_lock);
    auto& all = c.server.latencies;
    if (wants(c, "LATEST") && n == 2) {
        c.out.array(all.size());
        for (const auto& [event, samples] : all) {
            std::int64_t worst = 0;
            for (const auto& sample : samples) worst = std::max(worst, sample.milliseconds);
            c.out.array(4);
            c.out.bulk(event);
            c.out.integer(samples.back().when);
            c.out.integer(samples.back().milliseconds);
            c.out.integer(worst);
        }
        return;
    }
    if (wants(c, "HISTORY") && n == 3) {
        const auto found = all.find(c.args[2]);
        c.out.array(found == all.end() ? 0 : found->second.size());
        if (found != all.end())
            for (const auto& sample : found->second) {
                c.out.array(2);
                c.out.integer(sample.when);
                c.out.integer(sample.milliseconds);
            }
        return;
    }
    if (wants(c, "RESET")) {
        std::int64_t gone = 0;
        if (n == 2) {
            gone = static_cast<std::int64_t>(all.size());
            all.clear();
        }
        for (std::size_t i = 2; i < n; ++i)
            if (const auto found = all.find(c.args[i]); found != all.end()) {
                all.erase(found);
                ++gone;
            }
        return c.out.integer(gone);
    }
    if (wants(c, "HELP") && n == 2)
        return help(c, {"HISTORY <event>", "LATEST", "RESET [<event> ...]"});
    answer::unknown_subcommand(c);
}

void time_command(call& c) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    c.out.array(2);
    c.out.bulk(std::to_string(us / 1000000));
    c.out.bulk(std::to_string(us % 1000000));
}

constexpr std::uint32_t fast = command::fast, admin = command::admin,
                        at_once = command::not_queued | command::no_auth;

constexpr command rows[] = {
    {"auth", -2, fast | command::no_auth, 0, 0, 0, "connection", auth},
    {"bgsave", -1, admin | command::not_in_multi, 0, 0, 0, "server", bgsave},
    {"client", -2, command::family, 0, 0, 0, "connection", client},
    {"command", -1, command::family, 0, 0, 0, "server", command_command},
    {"config", -2, admin | command::family, 0, 0, 0, "server", config},
    {"debug", -2, admin, 0, 0, 0, "server", debug},
    {"echo", 2, fast, 0, 0, 0, "connection", echo},
    {"hello", -1, fast | command::no_auth, 0, 0, 0, "connection", hello},
    {"info", -1, 0, 0, 0, 0, "server", info},
    {"lastsave", 1, fast, 0, 0, 0, "server", lastsave},
    {"latency", -2, admin | command::family, 0, 0, 0, "server", latency},
    {"memory", -2, command::reads | command::family, 2, 2, 1, "server", memory},
    {"ping", -1, fast, 0, 0, 0, "connection", ping},
    {"quit", -1, fast | at_once, 0, 0, 0, "connection", quit},
    {"reset", 1, fast | at_once, 0, 0, 0, "connection", reset},
    {"save", 1, admin | command::not_in_multi, 0, 0, 0, "server", save},
    {"select", 2, fast, 0, 0, 0, "connection", select},
    {"shutdown", -1, admin | command::not_in_multi, 0, 0, 0, "server", shutdown},
    {"slowlog", -2, admin | command::family, 0, 0, 0, "server", slowlog},
    {"time", 1, fast, 0, 0, 0, "server", time_command},
};

} // namespace

std::span<const command> server_commands() noexcept { return rows; }

} // namespace crestdb::server
