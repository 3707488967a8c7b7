// SPDX-License-Identifier: MIT
#include "crestdb/server/cold_reader.hpp"

#include "crestdb/server/cold_look.hpp"
#include "crestdb/server/session.hpp"
#include "crestdb/server/text.hpp"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <new>

namespace crestdb::server {

namespace {

// Slots that an I/O thread looks at itself.
constexpr std::size_t looks_at_once = 128;
// Passes over what a request wants: each goes as far as what the last one has read lets it see.
constexpr int most_passes = 64;
// Bytes that are read in a pass before it is asked whether passes lead anywhere.
constexpr std::size_t much = std::size_t{1} << 20;
// Bytes that an I/O thread begins to read.
constexpr std::size_t most_begun = std::size_t{16} << 10;
constexpr std::size_t expire_at_once = 20'000;
// Keys of a slice.
constexpr std::size_t keys_of_slice = 1024, expire_of_slice = 256;
// Keys, or fields of them, that a request names and that are still few.
constexpr std::size_t few = 64;

bool is_a_value(const command& what, std::size_t argument) {
    if (what.group == "string")
        return what.step == 1 ? argument > static_cast<std::size_t>(what.first_key) &&
                                    what.last_key == what.first_key
                              : argument % 2 == 0;
    if (what.name == "hset" || what.name == "hmset") return argument >= 3 && argument % 2 == 1;
    return what.group == "hash" && argument == 3 && what.name != "hscan" && what.name != "hmget" &&
           what.name != "hdel";
}

// Also where nothing has left yet: a whole keyspace takes long, and a file too.
bool is_apart(std::string_view name) {
    return equal_fold(name, "KEYS") || equal_fold(name, "SAVE") || equal_fold(name, "RANDOMKEY");
}

// What looks at more than it names.
bool is_of_many(const command& what) {
    constexpr std::string_view names[] = {"copy",  "hgetall", "hkeys", "hscan",
                                          "hvals", "keys",    "scan",  "zscan"};
    return std::find(std::begin(names), std::end(names), what.name) != std::end(names) ||
           what.name.find("range") != std::string_view::npos ||
           what.name.find("count") != std::string_view::npos;
}

// Of one key, and so few words that one read after the other is soon done.
bool is_of_one(const command& what, arguments args) {
    constexpr std::size_t few_words = 8;
    return what.first_key == 1 && what.last_key == 1 && args.size() <= few_words &&
           !is_of_many(what);
}

bool takes_long(const cold_reader::wanted& what, bool expires) {
    // RANDOMKEY is of one key, and SAVE waits.
    if (what.apart) return what.parts[0].what->name == "keys";
    if (expires || what.room || what.parts.size() > few) return true;
    return std::any_of(what.parts.begin(), what.parts.end(), [](const auto& part) {
        return part.args.size() > few || is_of_many(*part.what);
    });
}

template <class Args>
cold_reader::wanted::part part_of(const command& what, unsigned database, const Args& args) {
    cold_reader::wanted::part part{&what, database, {}};
    part.args.reserve(args.size());
    for (std::size_t i = 0; i < args.size(); ++i)
        part.args.emplace_back(is_a_value(what, i) ? std::string() : std::string(args[i]));
    return part;
}

} // namespace

void cold_reader::start(unsigned threads) {
    most_long_ = std::max(1u, threads / 2);
    for (unsigned i = 0; i < threads; ++i) {
        threads_.emplace_back([this] { work(); });
        ::pthread_setname_np(threads_.back().native_handle(), "crestdb/cold"); // for top and gdb
    }
}

void cold_reader::stop() {
    {
        const std::lock_guard hold(lock_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
    jobs_.clear();
    long_jobs_.clear();
}

bool cold_reader::needs_room(const command& what) const {
    const std::int64_t most = options_.maxmemory;
    return what.is(command::deny_oom) && most > 0 &&
           options_.policy_of_eviction != eviction::none && keys_.used_bytes() > most;
}

std::optional<cold_reader::wanted> cold_reader::look(const session& client, arguments args,
                                                     const page_range* begun) {
    const bool apart = is_apart(args[0]);
    if (!apart && !memory_->any_may_leave()) return std::nullopt;
    // What is refused, or only queued, waits for nothing.
    if (!client.authenticated && options_.has_password()) return std::nullopt;
    const command* what = find_command(args[0]);
    if (what == nullptr || !what->takes(args.size())) return std::nullopt;
    if (apart && !client.in_multi) {
        wanted found;
        found.apart = true;
        found.parts.push_back(part_of(*what, client.database, args));
        return found;
    }
    if (!memory_->any_may_leave()) return std::nullopt;
    const bool exec = what->name == "exec";
    if (client.in_multi ? !exec || client.multi_failed
                        : what->first_key == 0 && what->name != "scan")
        return std::nullopt;
    cold_probe probe(*memory_, looks_at_once);
    if (begun != nullptr) probe.take_as_resident(*begun);
    bool room = false, all = true;
    // Each command of the request, with the database that it meets.
    const auto each = [&](auto&& visit) {
        if (!exec) return visit(*what, client.database.load(), args);
        unsigned database = client.database;
        static const command& exists = *find_command("exists");
        for (const std::string& name : client.watched) {
            const keyspace::key_id id = keyspace::id_of_watch(name);
            const std::string_view words[] = {exists.name, id.key};
            visit(exists, id.database, arguments(words));
        }
        for (const session::queued& q : client.queue) {
            const std::vector<std::string_view> views(q.args.begin(), q.args.end());
            visit(*q.what, database, arguments(views));
            if (q.what->name == "select" && q.args.size() == 2)
                if (const auto to = parse_unsigned(q.args[1]); to && *to < keyspace::databases)
                    database = static_cast<unsigned>(*to);
        }
    };
    each([&](const command& its, unsigned database, arguments words) {
        if (!room) room = needs_room(its);
        if (all && probe.goes_on())
            all = look_at(keys_, probe, its, database, words);
        else
            all = false;
    });
    if (!room && all && !probe.found_cold()) return std::nullopt;
    wanted found;
    if (begun != nullptr && !room && !exec && probe.noted().size() == 1 && is_of_one(*what, args) &&
        probe.noted()[0].bytes <= most_begun) {
        found.pages = probe.noted()[0];
        return found;
    }
    found.room = room;
    each([&](const command& its, unsigned database, arguments words) {
        if (its.first_key != 0 || its.name == "scan" || its.name == "keys")
            found.parts.push_back(part_of(its, database, words));
    });
    return found;
}

bool cold_reader::read(wanted what, std::unique_ptr<waiter> who) {
    std::list<job> one;
    const bool is_long = takes_long(what, who == nullptr);
    one.push_back({std::move(what), std::move(who)});
    {
        const std::lock_guard hold(lock_);
        if (stopping_) return false;
        std::list<job>& queue = is_long ? long_jobs_ : jobs_;
        queue.splice(queue.end(), one);
    }
    wake_.notify_one();
    return true;
}

void cold_reader::expire() {
    if (expiring_.exchange(true)) return;
    bool is_queued = false;
    try {
        is_queued = read({}, nullptr);
    } catch (...) {
        expiring_ = false; // or nothing would expire ever again
        throw;
    }
    if (!is_queued) expiring_ = false;
}

bool cold_reader::gather(const wanted::part& its, gathered& found, std::uint64_t& at) {
    if (its.what->name == "save") {
        found.failure = save_();
        return true;
    }
    if (its.what->name == "randomkey") {
        bool unreadable = false;
        if (auto key = keys_.random_key(its.database, {}, memory_.get(), &unreadable))
            found.keys.push_back(std::move(*key));
        return !found.keys.empty() || !unreadable;
    }
    return gather_keys(keys_, *memory_, its.database, at, keys_of_slice, [&](std::string_view key) {
        if (glob_match(its.args[1], key)) found.keys.emplace_back(key);
    });
}

// Passes end where all is there, and where they lead nowhere: each reads again what has left since the last one, for
// it is more than may be resident. Then the request reads what it meets.
void cold_reader::read_parts(const wanted& what, bool& readable) {
    for (const wanted::part& part : what.parts) {
        const std::vector<std::string_view> args(part.args.begin(), part.args.end());
        std::size_t before = 0; // bytes that earlier passes have read
        for (int pass = 0; pass < most_passes; ++pass) {
            cold_probe probe(*memory_, SIZE_MAX, &stopping_);
            const bool all = look_at(keys_, probe, *part.what, part.database, args);
            probe.read_noted();
            readable &= probe.readable();
            const std::size_t bytes = probe.bytes_read();
            if (all || !probe.readable() || (pass > 0 && bytes > much && bytes >= before / 2))
                break;
            before += bytes;
        }
    }
}

bool cold_reader::read_some(const wanted& what, gathered& found, std::uint64_t& at,
                            bool& readable) {
    update_now();
    if (what.apart) {
        readable = gather(what.parts[0], found, at);
        if (readable && at != 0) return false;
        found.complete = true;
        return true;
    }
    if (what.room) {
        // Somewhat more than is needed: other requests write until this one runs.
        const std::int64_t most = options_.maxmemory;
        keys_.make_room(most - std::min<std::int64_t>(most / 64, 1 << 20),
                        options_.policy_of_eviction, memory_.get(), &stopping_);
    }
    read_parts(what, readable);
    return true;
}

bool cold_reader::read_now(const wanted& what, gathered& found) {
    std::uint64_t at = 0;
    bool readable = true;
    while (!read_some(what, found, at, readable)) {
    }
    return readable;
}

bool cold_reader::do_some(job& it) {
    try {
        if (it.who != nullptr) return read_some(it.what, it.who->found, it.at, it.readable);
        update_now();
        const std::size_t ended = keys_.expire_some(expire_of_slice, now_ms(), memory_.get());
        it.at += ended;
        return ended < expire_of_slice || it.at >= expire_at_once;
    } catch (const std::bad_alloc&) {
        // Not read: the request runs, meets the disk itself, and has its own answer to no memory.
        return true;
    }
}

void cold_reader::work() noexcept {
    const auto long_may_begin = [this] {
        return !long_jobs_.empty() && long_at_work_ < most_long_;
    };
    std::unique_lock hold(lock_);
    for (;;) {
        wake_.wait(hold, [&] { return stopping_ || !jobs_.empty() || long_may_begin(); });
        if (stopping_) return;
        // One of many keys now and then, or those of few, which may never end, keep it waiting for ever.
        const bool is_long =
            jobs_.empty() || (few_in_a_row_ >= most_few_in_a_row && long_may_begin());
        few_in_a_row_ = is_long ? 0 : few_in_a_row_ + 1;
        std::list<job>& queue = is_long ? long_jobs_ : jobs_;
        std::list<job> next;
        next.splice(next.begin(), queue, queue.begin());
        long_at_work_ += is_long;
        hold.unlock();
        job& it = next.front();
        const bool done = do_some(it);
        if (done && it.who == nullptr) {
            expiring_ = false;
        } else if (done) {
            waiter& who = *it.who;
            who.is_here(std::move(it.who), it.readable);
        }
        hold.lock();
        long_at_work_ -= is_long;
        if (!done) long_jobs_.splice(long_jobs_.end(), next); // behind the others
        // This thread takes the next itself, of few keys first.
        if (!jobs_.empty() && long_may_begin()) wake_.notify_one();
    }
}

} // namespace crestdb::server
