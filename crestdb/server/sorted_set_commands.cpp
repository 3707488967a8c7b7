// SPDX-License-Identifier: MIT
//
// Commands on sorted sets.
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
            set.insert(member, score);
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

void zadd(call& c) {
    add_options how;
    std::size_t i = 2;
    for (; i < c.args.size(); ++i) {
        const std::string_view option = c.args[i];
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
    add_members(c, how, i);
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

// How many members are in [first, behind): by their ranks.
std::int64_t distance(sorted_set& set, node* first, node* behind) {
    if (first == nullptr) return 0;
    const std::size_t begin = set.rank(first);
    const std::size_t end = behind == nullptr ? set.size() : set.rank(behind);
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
    c.out.integer(distance(*set, set->first_not([&](node& n) { return range.below(n.score); }),
                           set->first_not([&](node& n) { return !range.above(n.score); })));
}
void zlexcount(call& c) {
    lex_range range;
    if (!parse_lex_bound(c.args[2], range.low) || !parse_lex_bound(c.args[3], range.high))
        return c.out.error("ERR min or max not valid string range item");
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    if (set == nullptr) return c.out.integer(0);
    c.out.integer(distance(*set, set->first_not([&](node& n) { return range.below(n.name()); }),
                           set->first_not([&](node& n) { return !range.above(n.name()); })));
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

// What lies between low and high, in the order asked for, `offset` skipped.
void range_between(call& c, const range_request& want, std::string_view low,
                   std::string_view high) {
    score_range scores{};
    lex_range names;
    std::int64_t begin = 0, end = 0;
    switch (want.what) {
    case range_request::by::score:
        if (!parse_score_range(low, high, scores))
            return c.out.error("ERR min or max is not a float");
        break;
    case range_request::by::lex:
        if (!parse_lex_bound(low, names.low) || !parse_lex_bound(high, names.high))
            return c.out.error("ERR min or max not valid string range item");
        break;
    case range_request::by::rank: {
        const auto first = parse_integer(low), last = parse_integer(high);
        if (!first || !last) return c.out.error(answer::not_an_integer);
        begin = *first;
        end = *last;
    }
    }
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
    std::vector<node*> found;
    if (set != nullptr) {
        const auto size = static_cast<std::int64_t>(set->size());
        if (want.what == range_request::by::rank) {
            if (begin < 0) begin = std::max<std::int64_t>(begin + size, 0);
            if (end < 0) end += size;
            end = std::min(end, size - 1);
            if (begin <= end) {
                node* n =
                    set->at(static_cast<std::size_t>(want.reverse ? size - 1 - begin : begin));
                for (std::int64_t left = end - begin + 1; left > 0; --left) {
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
void range_command(call& c, range_request want, bool free_form) {
    bool limited = false;
    for (std::size_t i = 4; i < c.args.size(); ++i) {
        const std::string_view option = c.args[i];
        if (equal_fold(option, "WITHSCORES")) {
            want.with_scores = true;
        } else if (equal_fold(option, "LIMIT") && i + 2 < c.args.size()) {
            const auto offset = parse_integer(c.args[i + 1]), count = parse_integer(c.args[i + 2]);
            if (!offset || !count) return c.out.error(answer::not_an_integer);
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
            return c.out.error(answer::syntax);
        }
    }
    if (limited && want.what == range_request::by::rank)
        return c.out.error("ERR syntax error, LIMIT is only supported in combination with either "
                           "BYSCORE or BYLEX");
    if (want.with_scores && want.what == range_request::by::lex)
        return c.out.error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    const bool swapped = want.reverse && want.what != range_request::by::rank;
    range_between(c, want, c.args[swapped ? 3 : 2], c.args[swapped ? 2 : 3]);
}

void zrange(call& c) { range_command(c, {}, true); }
void zrevrange(call& c) { range_command(c, {.reverse = true}, false); }
void zrangebyscore(call& c) { range_command(c, {.what = range_request::by::score}, false); }
void zrevrangebyscore(call& c) {
    range_command(c, {.what = range_request::by::score, .reverse = true}, false);
}
void zrangebylex(call& c) { range_command(c, {.what = range_request::by::lex}, false); }
void zrevrangebylex(call& c) {
    range_command(c, {.what = range_request::by::lex, .reverse = true}, false);
}

void zscan(call& c) {
    scan_request want;
    if (!parse_scan(c, 2, false, want)) return;
    bool ok = false;
    sorted_set* set = set_to_read(c, ok);
    if (!ok) return;
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
    {"zrangebylex", -4, read, 1, 1, 1, "sorted-set", zrangebylex},
    {"zrangebyscore", -4, read, 1, 1, 1, "sorted-set", zrangebyscore},
    {"zrank", 3, read | fast, 1, 1, 1, "sorted-set", zrank},
    {"zrem", -3, command::writes | fast, 1, 1, 1, "sorted-set", zrem},
    {"zrevrange", -4, read, 1, 1, 1, "sorted-set", zrevrange},
    {"zrevrangebylex", -4, read, 1, 1, 1, "sorted-set", zrevrangebylex},
    {"zrevrangebyscore", -4, read, 1, 1, 1, "sorted-set", zrevrangebyscore},
    {"zrevrank", 3, read | fast, 1, 1, 1, "sorted-set", zrevrank},
    {"zscan", -3, read, 1, 1, 1, "sorted-set", zscan},
    {"zscore", 3, read | fast, 1, 1, 1, "sorted-set", zscore},
};

} // namespace

std::span<const command> sorted_set_commands() noexcept { return rows; }

} // namespace crestdb::server
