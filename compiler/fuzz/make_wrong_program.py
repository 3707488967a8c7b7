#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a random C++ program in which an address of a managed object goes somewhere: the same for the same seed.

    make_wrong_program.py SEED >program.cpp

An operation takes an address out of a marked field (of an object, or of a part of it), sends it along a
random way (variables, helpers, structs, numbers, closures, virtual methods, pointers to functions), and
leaves it somewhere: where it outlives the operation, in most programs; or it only reads there. Or it leaves
an object in two marked fields. Then objects move, and the program prints what it finds at the address. As
clang alone compiles it, it prints what it has stored; with obase it must print the same or be refused. The
first line says "escape", "harmless" or "owners": of the last kind only running under the audit shows all.
"""

import random
import sys

HEAD = '''// {kind}
// make_wrong_program.py {seed}
#include "compiler/torture/torture.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace {{

struct node {{
    node* next OBASE_GUIDED = nullptr;
    long key = 0;
    char* text OBASE_GUIDED = nullptr;
    long values[6] = {{}};
    const void* unmarked = nullptr;
}};
template <class T>
T itself(T x) {{
    return x;
}}
template <class T>
void hand_out(T x, T* to) {{
    *to = x;
}}
template <class T>
struct box {{
    int number;
    T held;
}};
struct visitor {{
    virtual ~visitor() = default;
    virtual const void* visit(const void* p) = 0;
}};
struct same_visitor : visitor {{
    const void* visit(const void* p) override {{ return p; }}
}};
const void* through_pointer(const void* p) {{ return p; }}
const void* (*volatile function)(const void*) = through_pointer;
same_visitor one;
visitor* volatile some_visitor = &one;

const void* kept = nullptr;
std::uintptr_t number = 0;
const void* kept_array[4] = {{}};
struct outside {{
    const void* kept = nullptr;
    std::vector<const void*> all;
    std::function<const void*()> later;
}};
outside* const other = new outside;

class list {{
  public:
    void push(long key) {{
        node* n = new node;
        n->key = key;
        n->text = new char[24];
        std::snprintf(n->text, 24, "text;%ld", key);
        for (int i = 0; i < 6; ++i) n->values[i] = key * 10 + i;
        n->next = head_;
        head_ = n;
    }}
    long sum() const {{
        long s = 0;
        for (const node* n = head_; n; n = n->next) s += n->key + n->text[5];
        return s;
    }}
'''

TAIL = '''
  private:
    node* find(long key) const {{
        node* n = head_;
        while (n && n->key != key) n = n->next;
        return n;
    }}
    node* head_ OBASE_GUIDED = nullptr;
    node* second_ OBASE_GUIDED = nullptr;
    const void* member_ = nullptr;
    std::vector<const void*> members_;
}};

}} // namespace

int main() {{
    static list l;
    for (long i = 0; i < 60; ++i) l.push(i);
    settle();
    {call}
    settle();
    std::printf("%ld\\n", l.sum());
    settle();
    std::printf("%ld\\n", {read});
}}
'''

# An expression of type const void* and how to read what is there: a number of its own.
SOURCES = [
    ("find({k})", "static_cast<const node*>({p})->key"),
    ("head_", "static_cast<const node*>({p})->key"),
    ("find({k})->next", "static_cast<const node*>({p})->key"),
    ("&find({k})->key", "*static_cast<const long*>({p})"),
    ("&find({k})->values[{i}]", "*static_cast<const long*>({p})"),
    ("find({k})->values + {i}", "*static_cast<const long*>({p})"),
    ("find({k})->text", "long(static_cast<const char*>({p})[5])"),
    ("find({k})->text + 5", "long(*static_cast<const char*>({p}))"),
    ("std::strchr(find({k})->text, ';')", "long(static_cast<const char*>({p})[1])"),
]

# What becomes of `p` in between: statements, of which {n} is a fresh name; they leave it in p.
WAYS = [
    "const void* q{n} = p; p = q{n};",
    "p = itself(p);",
    "const void* q{n} = nullptr; hand_out(p, &q{n}); p = q{n};",
    "box<const void*> b{n}{{1, p}}; p = b{n}.held;",
    "box<box<const void*>> b{n}{{1, {{2, nullptr}}}}; b{n}.held.held = p; p = b{n}.held.held;",
    "const void* a{n}[3] = {{nullptr, p, nullptr}}; p = a{n}[itself(1)];",
    "std::uintptr_t u{n}; std::memcpy(&u{n}, &p, sizeof p); std::memcpy(&p, &u{n}, sizeof p);",
    "p = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p));",
    "p = std::exchange(p, nullptr);",
    "const auto c{n} = [p] {{ return p; }}; p = c{n}();",
    "const void* q{n} = nullptr; [&] {{ q{n} = p; }}(); p = q{n};",
    "p = function(p);",
    "p = some_visitor->visit(p);",
    "const void** r{n} = &p; p = *r{n};",
    "union {{ const void* a; std::uintptr_t b; }} u{n}; u{n}.a = p; p = reinterpret_cast<const void*>(u{n}.b);",
    "const void* q{n} = p; std::swap(p, q{n});",
    "p = number == 1 ? nullptr : p;",
    "auto o{n} = std::make_pair(3, p); p = o{n}.second;",
]

# Where it ends: what the operation is declared as, its last statement, how main calls it, how it is found.
SINKS = [
    ("void leak()", "kept = p;", "l.leak();", "kept"),
    ("void leak()", "number = reinterpret_cast<std::uintptr_t>(p);", "l.leak();",
     "reinterpret_cast<const void*>(number)"),
    ("void leak()", "number = reinterpret_cast<std::uintptr_t>(p) ^ 0x5555;", "l.leak();",
     "reinterpret_cast<const void*>(number ^ 0x5555)"),
    ("void leak()", "kept_array[itself(2)] = p;", "l.leak();", "kept_array[2]"),
    ("void leak()", "member_ = p;", "l.leak();", "l.member()"),
    ("void leak()", "members_.push_back(p);", "l.leak();", "l.first_member()"),
    ("void leak()", "other->kept = p;", "l.leak();", "other->kept"),
    ("void leak()", "other->all.push_back(p);", "l.leak();", "other->all[0]"),
    ("void leak()", "other->later = [p] {{ return p; }};", "l.leak();", "other->later()"),
    ("void leak()", "head_->unmarked = p;", "l.leak();", "l.unmarked()"),
    ("void leak(const void** to)", "*to = p;", "const void* got = nullptr; l.leak(&got);", "got"),
    ("void leak(const void*& to)", "to = p;", "const void* got = nullptr; l.leak(got);", "got"),
    ("const void* leak()", "return p;", "const void* got = l.leak();", "got"),
    ("box<const void*> leak()", "return {{1, p}};", "const auto got = l.leak();", "got.held"),
    ("std::vector<const void*> leak()", "return {{p}};", "const auto got = l.leak();", "got[0]"),
    ("auto leak()", "return [p] {{ return p; }};", "const auto got = l.leak();", "got()"),
    ("void leak()", "throw p;",
     "const void* got = nullptr; try {{ l.leak(); }} catch (const void* c) {{ got = c; }}", "got"),
    ("void leak()", "static const void* where; where = p; kept_array[0] = &where;", "l.leak();",
     "*static_cast<const void* const*>(kept_array[0])"),
    ("void leak()", "std::memcpy(&kept_array[1], &p, sizeof p);", "l.leak();", "kept_array[1]"),
    ("void leak()", "auto* h = new const void*(p); kept_array[3] = h;", "l.leak();",
     "*static_cast<const void* const*>(kept_array[3])"),
]

OWNERS = [
    "second_ = head_;",
    "node* n = find({k}); n->next = n->next->next;", # what was between them is lost, and has its next one still
    "node* n = new node; n->key = 5; n->text = new char[24]; std::strcpy(n->text, \"text;5\"); "
    "n->next = head_; head_ = n; second_ = n;",
    "find({k})->text = find(30)->text;",
    "node* n = find({k}); second_ = n; if (n->key > 3) second_ = n->next;",
]


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    seed = int(sys.argv[1])
    pick = random.Random(seed)
    chance = pick.random()
    kind = "owners" if chance < 0.12 else "harmless" if chance < 0.35 else "escape"
    out = [HEAD.format(kind=kind, seed=seed)]
    k, i = pick.randrange(5, 55), pick.randrange(6)
    members = '''    const void* member() const { return member_; }
    const void* first_member() const { return members_[0]; }
    long second() const { return second_ ? second_->key : 0; }
    // Not an address that was loaded from a marked field.
    const void* unmarked() const { return head_->unmarked; }
'''
    if kind == "owners":
        body = pick.choice(OWNERS).format(k=k)
        out.append(f"    void leak() {{ {body} }}\n{members}")
        call, read = "l.leak();", "l.second()"
    else:
        source, reading = pick.choice(SOURCES)
        # A variable that a closure refers to counts as memory that outlives the operation: docs/compiler.md,
        # limits.
        among = [way for way in WAYS if kind != "harmless" or "[&]" not in way]
        ways = [pick.choice(among).format(n=n) for n in range(pick.randrange(5))]
        body = [f"const void* p = {source.format(k=k, i=i)};", *ways]
        if kind == "harmless":
            body.append("return " + reading.format(p="p") + ";")
            signature, call, read = "long leak() const", "const long got = l.leak();", "got + l.leak()"
        else:
            signature, last, call, found = pick.choice(SINKS)
            body.append(last.format())
            call = call.format()
            read = reading.format(p=found)
        text = "\n        ".join(body)
        out.append(f"    {signature} {{\n        {text}\n    }}\n{members}")
    out.append(TAIL.format(call=call, read=read))
    sys.stdout.write("".join(out))


if __name__ == "__main__":
    main()
