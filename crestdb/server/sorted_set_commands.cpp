// SPDX-License-Identifier: MIT
//
// Commands on sorted sets.
#include "crestdb/server/cold_look.hpp"
#include "crestdb/server/command.hpp"
#include "crestdb/server/text.hpp"

#include <cmath>
#include <limits>

namespace crestdb::server {

namespace {

using id_type = keyspace::key_id;
using node = sorted_set::node;

sorted_set& members_of(record& r) { return *static_cast<sorted_set*>(r.collection()); }

sorted_set* set_to_read(call& c, bool& ok) {
    record* r = find_to_read(c, c.id(1));
    ok = r == nullptr || r->kind() == record_kind::sorted_set;
    if (!ok) c.out.error(answer::wrong_type);
    return ok && r != nullptr ? &members_of(*r) : nullptr;
}

// A range of scores as ZCOUNT takes it: "(1", "-inf".
struct score_range {
    double low, high;
    bool low_open, high_open;

    bool below(double score) const { return low_open ? score <= low : score < low; }
    bool above(double score) const { return high_open ? score >= high : score > high; }
};

bool parse_score_bound(std::string_view text, double& value, bool& open) {
    open = !text.empty() && text[0] == '(';
    const auto parsed = parse_double(text.substr(open ? 1 : 0));
    if (!parsed) return false;
    value = *parsed;
    return true;
}

bool parse_score_range(std::string_view low, std::string_view high, score_range& into) {
    return parse_score_bound(low, into.low, into.low_open) &&
           parse_score_bound(high, into.high, into.high_open);
}

// A range of members, all of one score: "[a", "(b", "-", "+".
struct lex_bound {
    enum class kind { lowest, highest, closed, open } what = kind::lowest;
    std::string_view text;
};
struct lex_range {
    lex_bound low, high;

    static int compare(std::string_view member, const lex_bound& bound) {
        if (bound.what == lex_bound::kind::lowest) return 1;
        if (bound.what == lex_bound::kind::highest) return -1;
        return member.compare(bound.text);
    }
    bool below(std::string_view member) const {
        const int order = compare(member, low);
        return low.what == lex_bound::kind::open ? order <= 0 : order < 0;
    }
    bool above(std::string_view member) const {
        const int order = compare(member, high);
        return high.what == lex_bound::kind::open ? order >= 0 : order > 0;
    }
};

bool parse_lex_bound(std::string_view text, lex_bound& into) {
    if (text == "-") {
        into.what = lex_bound::kind::lowest;
    } else if (text == "+") {
        into.what = lex_bound::kind::highest;
    } else if (!text.empty() && (text[0] == '[' || text[0] == '(')) {
        into.what = text[0] == '[' ? lex_bound::kind::closed : lex_bound::kind::open;
        into.text = text.substr(1);
    } else {
        return false;
    }
    return true;
}

struct add_options {
    bool nx = false, xx = false, gt = false, lt = false, changed_counts = false, increment = false;
};

void add_members(call& c, const add_options& how, std::size_t first) {
    if (first >= c.args.size() || (c.args.size() - first) % 2 != 0)
        return c.out.error(answer::syntax);
    if (how.nx && how.xx)
        return c.out.error("ERR XX and NX options at the same time are not compatible");
    if ((how.gt && how.nx) || (how.lt && how.nx) || (how.gt && how.lt))
        return c.out.error("ERR GT, LT, and/or NX options at the same time are not compatible");
    if (how.increment && c.args.size() - first > 2)
        return c.out.error("ERR INCR option supports a single increment-element pair");
    std::vector<double> scores;
    for (std::size_t i = first; i < c.args.size(); i += 2) {
        const auto score = parse_double(c.args[i]);
        if (!score) return c.out.error(answer::not_a_float);
        scores.push_back(*score);
    }
    const id_type id = c.id(1);
    record* r = c.keys.find(id);
    if (r != nullptr && r->kind() != record_kind::sorted_set)
        return c.out.error(answer::wrong_type);
    if (r == nullptr) {
        if (how.xx) return how.increment ? c.out.null() : c.out.integer(0);
        auto collection = std::make_unique<sorted_set>();
        r = record::make_collection(record_kind::sorted_set, id.key, collection.get());
        collection.release();
        c.keys.put(id, r);
    }
    sorted_set& set = members_of(*r);
    struct removed_if_empty {
        call& c;
        const id_type& id;
        sorted_set& set;
        ~removed_if_empty() {
            if (set.size() == 0) c.keys.erase(id);
        }
    } const guard{c, id, set};
    const counted_growth growth(c.keys, *r);
    std::int64_t added = 0, updated = 0;
    bool done = false;
    double result = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::string_view member = c.args[first + 2 * i + 1];
        double score = scores[i];
        if (node* there = set.find(member); there != nullptr) {
            if (how.nx) continue;
            if (how.increment) {
                score += there->score;
                if (std::isnan(score)) {
                    c.out.error("ERR resulting score is not a number (NaN)");
                    return;
                }
            }
            if ((how.lt && score >= there->score) || (how.gt && score <= there->score)) continue;
            if (score != there->score) {
                set.set_score(there, score);
                ++updated;
            }
        } else {
            if (how.xx) continue;
            try {
                set.insert(member, score);
            } catch (...) {
                if (added + updated > 0) c.keys.changed(id); // the first members are there
                throw;
            }
            ++added;
        }
        done = true;
        result = score;
    }
    if (added + updated > 0) c.keys.changed(id);
    if (how.increment) {
        if (done)
            c.out.number_double(result);
        else
            c.out.null();
    } else {
        c.out.integer(how.changed_counts ? added + updated : added);
    }
}

// The options of ZADD; returns where the scores begin.
std::size_t parse_add_options(arguments args, add_options& how) {
    std::size_t i = 2;
    for (; i < args.size(); ++i) {
        const std::string_view option = args[i];
        if (equal_fold(option, "NX")) {
            how.nx = true;
        } else if (equal_fold(option, "XX")) {
            how.xx = true;
        } else if (equal_fold(option, "GT")) {
            how.gt = true;
        } else if (equal_fold(option, "LT")) {
            how.lt = true;
        } else if (equal_fold(option, "CH")) {
            how.changed_counts = true;
        } else if (equal_fold(option, "INCR")) {
            how.increment = true;
        } else {
            break;
        }
    }
    return i;
}
void zadd(call& c) {
    add_options how;
    const std::size_t first = parse_add_options(c.args, how);
    add_members(c, how, first);
}
void zincrby(call& c) {
    add_options how;
    how.increment = true;
    add_members(c, how, 2);
}

void zrem(call& c) {
    const id_type id = c.id(1);
    record* r = c.keys.find(id);
    if (r == nullptr) return c.out.integer(0);
    if (r->kind() != record_kind::sorted_set) return c.out.error(answer::wrong_type);
    sorted_set& set = members_of(*r);
    std::int64_t removed = 0;
    {
        const counted_growth growth(c.keys, *r);
        for (std::size_t i = 2; i < c.args.size(); ++i)
            if (node* n = set.find(c.args[i]); n != nullptr) {
                set.erase(n);
                ++removed;
            }
    }
    if (set.size() == 0) c.keys.erase(id);
    if (removed > 0) c.keys.changed(id);
    c.out.integer(removed);
}

void zscore(call& c) {
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    node* n = set == nullptr ? nullptr : set->find(c.args[2]);
    if (n == nullptr) return c.out.null();
    c.out.number_double(n->score);
}
void zmscore(call& c) {
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    c.out.array(c.args.size() - 2);
    for (std::size_t i = 2; i < c.args.size(); ++i) {
        node* n = set == nullptr ? nullptr : set->find(c.args[i]);
        if (n == nullptr)
            c.out.null();
        else
            c.out.number_double(n->score);
    }
}
void zcard(call& c) {
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (ok) c.out.integer(set == nullptr ? 0 : static_cast<std::int64_t>(set->size()));
}

void rank_of(call& c, bool reverse) {
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    node* n = set == nullptr ? nullptr : set->find(c.args[2]);
    if (n == nullptr) return c.out.null();
    const std::size_t rank = set->rank(n);
    c.out.integer(static_cast<std::int64_t>(reverse ? set->size() - 1 - rank : rank));
}
void zrank(call& c) { rank_of(c, false); }
void zrevrank(call& c) { rank_of(c, true); }

std::int64_t count_between(std::size_t begin, std::size_t end) {
    return end > begin ? static_cast<std::int64_t>(end - begin) : 0;
}

void zcount(call& c) {
    score_range range{};
    if (!parse_score_range(c.args[2], c.args[3], range))
        return c.out.error("ERR min or max is not a float");
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    if (set == nullptr) return c.out.integer(0);
    c.out.integer(count_between(set->count_before([&](node& n) { return range.below(n.score); }),
                                set->count_before([&](node& n) { return !range.above(n.score); })));
}
void zlexcount(call& c) {
    lex_range range;
    if (!parse_lex_bound(c.args[2], range.low) || !parse_lex_bound(c.args[3], range.high))
        return c.out.error("ERR min or max not valid string range item");
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    if (set == nullptr) return c.out.integer(0);
    c.out.integer(
        count_between(set->count_before([&](node& n) { return range.below(n.name()); }),
                      set->count_before([&](node& n) { return !range.above(n.name()); })));
}

void reply_nodes(call& c, const std::vector<node*>& found, bool with_scores) {
    const bool pairs = with_scores && c.out.resp3();
    c.out.array(with_scores && !pairs ? 2 * found.size() : found.size());
    for (node* n : found) {
        if (pairs) c.out.array(2);
        c.out.bulk(n->name());
        if (with_scores) c.out.number_double(n->score);
    }
}

struct range_request {
    enum class by { rank, score, lex } what = by::rank;
    bool reverse = false, with_scores = false;
    std::int64_t offset = 0, limit = -1;
};

// The two ends of a range, understood.
struct range_ends {
    score_range scores{};
    lex_range names;
    std::int64_t begin = 0, end = 0; // ranks, as given

    // "" or why not.
    std::string_view parse(range_request::by what, std::string_view low, std::string_view high) {
        if (what == range_request::by::score)
            return parse_score_range(low, high, scores) ? "" : "ERR min or max is not a float";
        if (what == range_request::by::lex)
            return parse_lex_bound(low, names.low) && parse_lex_bound(high, names.high)
                       ? ""
                       : "ERR min or max not valid string range item";
        const auto first = parse_integer(low), last = parse_integer(high);
        if (!first || !last) return answer::not_an_integer;
        begin = *first;
        end = *last;
        return "";
    }
    // Ranks in a set of that many members; false: none.
    bool clip(std::int64_t size) {
        if (begin < 0) begin = std::max<std::int64_t>(begin + size, 0);
        if (end < 0) end += size;
        end = std::min(end, size - 1);
        return begin <= end;
    }
};

// What lies between low and high, in the order asked for, `offset` skipped.
void range_between(call& c, const range_request& want, std::string_view low,
                   std::string_view high) {
    range_ends ends;
    if (const auto why = ends.parse(want.what, low, high); !why.empty()) return c.out.error(why);
    const score_range& scores = ends.scores;
    const lex_range& names = ends.names;
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    std::vector<node*> found;
    if (set != nullptr) {
        const auto size = static_cast<std::int64_t>(set->size());
        if (want.what == range_request::by::rank) {
            if (ends.clip(size)) {
                node* n = set->at(
                    static_cast<std::size_t>(want.reverse ? size - 1 - ends.begin : ends.begin));
                for (std::int64_t left = ends.end - ends.begin + 1; left > 0; --left) {
                    found.push_back(n);
                    n = want.reverse ? n->back : n->next();
                }
            }
        } else {
            const auto below = [&](node& n) {
                return want.what == range_request::by::score ? scores.below(n.score)
                                                             : names.below(n.name());
            };
            const auto above = [&](node& n) {
                return want.what == range_request::by::score ? scores.above(n.score)
                                                             : names.above(n.name());
            };
            node* n = nullptr;
            if (want.reverse) {
                node* behind = set->first_not([&](node& at) { return !above(at); });
                n = behind == nullptr ? set->last() : behind->back;
            } else {
                n = set->first_not(below);
            }
            std::int64_t skip = want.offset, left = want.limit;
            if (skip < 0) n = nullptr;
            while (n != nullptr && left != 0) {
                if (want.reverse ? below(*n) : above(*n)) break;
                if (skip > 0) {
                    --skip;
                } else {
                    found.push_back(n);
                    --left;
                }
                n = want.reverse ? n->back : n->next();
            }
        }
    }
    reply_nodes(c, found, want.with_scores);
}

// Options behind key, low and high. `free_form`: those of ZRANGE; else those of ZRANGEBYSCORE and so on.
// "" or why not.
std::string_view parse_range_options(arguments args, range_request& want, bool free_form) {
    bool limited = false;
    for (std::size_t i = 4; i < args.size(); ++i) {
        const std::string_view option = args[i];
        if (equal_fold(option, "WITHSCORES")) {
            want.with_scores = true;
        } else if (equal_fold(option, "LIMIT") && i + 2 < args.size()) {
            const auto offset = parse_integer(args[i + 1]), count = parse_integer(args[i + 2]);
            if (!offset || !count) return answer::not_an_integer;
            want.offset = *offset;
            want.limit = *count;
            limited = *count != -1;
            i += 2;
        } else if (free_form && equal_fold(option, "REV") && !want.reverse) {
            want.reverse = true;
        } else if (free_form && want.what == range_request::by::rank &&
                   equal_fold(option, "BYSCORE")) {
            want.what = range_request::by::score;
        } else if (free_form && want.what == range_request::by::rank &&
                   equal_fold(option, "BYLEX")) {
            want.what = range_request::by::lex;
        } else {
            return answer::syntax;
        }
    }
    if (limited && want.what == range_request::by::rank)
        return "ERR syntax error, LIMIT is only supported in combination with either "
               "BYSCORE or BYLEX";
    if (want.with_scores && want.what == range_request::by::lex)
        return "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
    return "";
}

// The ends of a reversed range by score or name stand the other way round.
bool ends_are_swapped(const range_request& want) {
    return want.reverse && want.what != range_request::by::rank;
}

void range_command(call& c, range_request want, bool free_form) {
    if (const auto why = parse_range_options(c.args, want, free_form); !why.empty())
        return c.out.error(why);
    const bool swapped = ends_are_swapped(want);
    range_between(c, want, c.args[swapped ? 3 : 2], c.args[swapped ? 2 : 3]);
}

// By the names of the commands, for look_at_sorted_set() too.
struct range_form {
    std::string_view command;
    range_request want;
    bool free_form;
};
constexpr range_form range_forms[] = {
    {"zrange", {}, true},
    {"zrangebylex", {.what = range_request::by::lex}, false},
    {"zrangebyscore", {.what = range_request::by::score}, false},
    {"zrevrange", {.reverse = true}, false},
    {"zrevrangebylex", {.what = range_request::by::lex, .reverse = true}, false},
    {"zrevrangebyscore", {.what = range_request::by::score, .reverse = true}, false},
};
const range_form* form_of(const command& what) {
    for (const range_form& form : range_forms)
        if (form.command == what.name) return &form;
    return nullptr;
}
void zrange(call& c) {
    const range_form& form = *form_of(c.what);
    range_command(c, form.want, form.free_form);
}

void zscan(call& c) {
    scan_request want;
    if (!parse_cursor(c, 2, want)) return;
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    // As in Redis: options of a key that is not there are not looked at.
    if (set != nullptr && !parse_scan_options(c, 2, false, want)) return;
    std::vector<node*> found;
    auto cursor = static_cast<std::uint32_t>(want.cursor);
    std::int64_t seen = 0;
    if (set == nullptr || want.cursor > UINT32_MAX) {
        cursor = 0;
    } else {
        do {
            cursor = set->scan(cursor, [&](node& n) {
                ++seen;
                if (!want.has_match || glob_match(want.match, n.name())) found.push_back(&n);
            });
        } while (cursor != 0 && seen < want.count);
    }
    c.out.array(2);
    c.out.bulk(std::to_string(cursor));
    c.out.array(2 * found.size());
    for (node* n : found) {
        c.out.bulk(n->name());
        c.out.bulk(format_double(n->score));
    }
}

// -- what is touched ------------------------------------------------------------------------------

// The ranks of the members that a range command touches; false: hidden behind a member that is not resident.
template <class Look>
bool ranks_touched(sorted_set& set, const range_request& want, range_ends& ends, Look&& look,
                   std::size_t& begin, std::size_t& end) {
    const auto size = static_cast<std::int64_t>(set.size());
    begin = end = 0;
    if (want.what == range_request::by::rank) {
        if (!ends.clip(size)) return true;
        begin = static_cast<std::size_t>(want.reverse ? size - 1 - ends.end : ends.begin);
        end = begin + static_cast<std::size_t>(ends.end - ends.begin + 1);
        return true;
    }
    const bool by_name = want.what == range_request::by::lex;
    bool hidden = false;
    const auto known = [&](node& n) {
        if (by_name && !hidden && !look(n.member)) hidden = true;
        return !hidden;
    };
    begin = set.count_before([&](node& n) {
        return known(n) && (by_name ? ends.names.below(n.name()) : ends.scores.below(n.score));
    });
    end = set.count_before([&](node& n) {
        return known(n) && !(by_name ? ends.names.above(n.name()) : ends.scores.above(n.score));
    });
    if (hidden) return false;
    end = std::max(begin, end);
    if (want.offset < 0) {
        end = begin;
        return true;
    }
    const auto offset = std::min(static_cast<std::size_t>(want.offset), end - begin);
    // The one behind is compared by its name.
    const std::size_t more = by_name ? 1 : 0;
    if (want.reverse) {
        end -= offset;
        if (want.limit >= 0 && end - begin > static_cast<std::size_t>(want.limit))
            begin = end - static_cast<std::size_t>(want.limit);
        begin -= std::min(begin, more);
    } else {
        begin += offset;
        if (want.limit >= 0 && end - begin > static_cast<std::size_t>(want.limit))
            end = begin + static_cast<std::size_t>(want.limit);
        end = std::min(set.size(), end + more);
    }
    // Members that are skipped by their names.
    if (by_name && offset > 0)
        (want.reverse ? end : begin) = want.reverse ? end + offset : begin - offset;
    return true;
}

constexpr std::uint32_t read = command::reads, write = command::writes | command::deny_oom,
                        fast = command::fast;

constexpr command rows[] = {
    {"zadd", -4, write | fast, 1, 1, 1, "sorted-set", zadd},
    {"zcard", 2, read | fast, 1, 1, 1, "sorted-set", zcard},
    {"zcount", 4, read | fast, 1, 1, 1, "sorted-set", zcount},
    {"zincrby", 4, write | fast, 1, 1, 1, "sorted-set", zincrby},
    {"zlexcount", 4, read | fast, 1, 1, 1, "sorted-set", zlexcount},
    {"zmscore", -3, read | fast, 1, 1, 1, "sorted-set", zmscore},
    {"zrange", -4, read, 1, 1, 1, "sorted-set", zrange},
    {"zrangebylex", -4, read, 1, 1, 1, "sorted-set", zrange},
    {"zrangebyscore", -4, read, 1, 1, 1, "sorted-set", zrange},
    {"zrank", 3, read | fast, 1, 1, 1, "sorted-set", zrank},
    {"zrem", -3, command::writes | fast, 1, 1, 1, "sorted-set", zrem},
    {"zrevrange", -4, read, 1, 1, 1, "sorted-set", zrange},
    {"zrevrangebylex", -4, read, 1, 1, 1, "sorted-set", zrange},
    {"zrevrangebyscore", -4, read, 1, 1, 1, "sorted-set", zrange},
    {"zrevrank", 3, read | fast, 1, 1, 1, "sorted-set", zrevrank},
    {"zscan", -3, read, 1, 1, 1, "sorted-set", zscan},
    {"zscore", 3, read | fast, 1, 1, 1, "sorted-set", zscore},
};

} // namespace

std::span<const command> sorted_set_commands() noexcept { return rows; }

bool look_at_sorted_set(cold_probe& probe, const command& what, arguments args, sorted_set& set,
                        std::size_t& from) {
    constexpr std::size_t step = 256;
    const auto look = [&](managed_slot& slot) { return probe.look(slot); };
    const std::size_t done = SIZE_MAX;
    if (const range_form* form = form_of(what); form != nullptr) {
        range_request want = form->want;
        range_ends ends;
        const bool wrong = !parse_range_options(args, want, form->free_form).empty();
        const bool swapped = ends_are_swapped(want);
        if (wrong || !ends.parse(want.what, args[swapped ? 3 : 2], args[swapped ? 2 : 3]).empty()) {
            from = done;
            return true;
        }
        std::size_t begin = 0, end = 0;
        if (!ranks_touched(set, want, ends, look, begin, end)) return false;
        if (from >= end - begin) {
            from = done;
            return true;
        }
        node* n = set.at(begin + from);
        for (std::size_t i = 0; i < step && begin + from < end; ++i, ++from, n = n->next())
            if (!look(n->member) && !probe.goes_on()) return false;
        if (begin + from >= end) from = done;
        return true;
    }
    from = done;
    bool all = true;
    if (what.name == "zlexcount") {
        range_request want{.what = range_request::by::lex};
        range_ends ends;
        std::size_t begin = 0, end = 0;
        return !ends.parse(want.what, args[2], args[3]).empty() ||
               ranks_touched(set, want, ends, look, begin, end);
    }
    // A member that is named, and the way to its place, or to that of its new score.
    const auto look_at_member = [&](std::string_view member, bool on_way, const double* score) {
        node* n = set.node_of_hash(member);
        if (n != nullptr && !look(n->member)) all = false;
        if (all && n != nullptr && on_way) all = set.look_on_way(n->score, member, n, look) && all;
        if (all && score != nullptr) all = set.look_on_way(*score, member, n, look) && all;
    };
    if (what.name == "zadd" || what.name == "zincrby") {
        add_options how;
        how.increment = what.name == "zincrby";
        std::size_t i = how.increment ? 2 : parse_add_options(args, how);
        for (; i + 1 < args.size() && (all || probe.goes_on()); i += 2) {
            auto score = parse_double(args[i]);
            if (!score) break;
            if (how.increment)
                if (node* n = set.node_of_hash(args[i + 1]); n != nullptr) *score += n->score;
            look_at_member(args[i + 1], true, std::isnan(*score) ? nullptr : &*score);
        }
        return all;
    }
    if (what.name == "zcard" || what.name == "zcount") return true;
    const bool on_way = what.name == "zrem" || what.name == "zrank" || what.name == "zrevrank";
    for (std::size_t i = 2; i < args.size() && (all || probe.goes_on()); ++i)
        look_at_member(args[i], on_way, nullptr);
    return all;
}

} // namespace crestdb::server
