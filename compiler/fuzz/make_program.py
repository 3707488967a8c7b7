#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a random C++ program with marked pointers: the same for the same seed.

    make_program.py SEED >program.cpp

The program has a few structures (lists, trees, hash tables, arrays of slots) whose fields are plain
pointers, std::atomic or std::unique_ptr, spelled in many ways: references, addresses of fields, helpers,
closures, recursion, arrays of arrays, nested structs, templates. It does random operations on them and
prints a checksum. Public methods are operations, as the front end decides. What the program does is
right for obase: at the end of each operation each object is in one field.
"""

import random
import sys

HEAD = '''// SPDX-License-Identifier: MIT
// make_program.py {seed}
#include "forcing.hpp"

#include <obase/marked.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

namespace {{

using word = std::uint64_t;

template <class T>
T& itself(T& x) {{
    return x;
}}
template <class T, class U>
void assign(T& to, U&& what) {{
    to = std::forward<U>(what);
}}
template <class T>
bool is_empty(const T& x) {{
    return x == nullptr;
}}
word mix(word h, word x) {{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h;
}}
'''


class structure:
    """One class with marked fields. Methods are lists of (signature, body, call in main)."""

    def __init__(self, pick, number):
        self.r = pick
        self.name = f"structure_{number}"
        self.kind = pick.choice(["raw", "raw", "atomic", "unique"])
        self.node = f"{self.name}::node" if pick.random() < 0.5 else f"node_{number}"
        self.inside = "::" in self.node
        self.nested = pick.random() < 0.25  # links in a struct of their own
        self.has_text = pick.random() < 0.35
        self.has_part = pick.random() < 0.3  # a second object that the node owns
        self.template = pick.random() < 0.25
        self.keys = pick.choice([3, 17, 64, 300])
        self.methods = []
        self.private = []

    # --- spelling of types and accesses -------------------------------------------------------------
    def pointer(self, to="node", kind=None):
        kind = kind or self.kind
        return {"raw": f"{to}*", "atomic": f"std::atomic<{to}*>",
                "unique": f"std::unique_ptr<{to}>"}[kind]

    def field(self, name, dimension=""):
        init = "{}" if dimension or self.kind == "unique" else self.r.choice(["= nullptr", "{}", "{nullptr}"])
        return f"{self.pointer()} {name}{dimension} OBASE_GUIDED {init};".replace(" {}", "{}").replace(" {n", "{n")

    def place(self, slot):
        """The field, named in one of many ways."""
        return self.r.choice([slot] * 6 + [f"(*&{slot})", f"itself({slot})", f"(&{slot})[0]"])

    def get(self, slot, kind=None):
        slot, kind = self.place(slot), kind or self.kind
        if kind == "raw":
            return slot
        if kind == "unique":
            return self.r.choice([f"{slot}.get()", f"std::to_address({slot})" if False else f"{slot}.get()"])
        return self.r.choice([f"{slot}.load()", f"{slot}.load(std::memory_order_acquire)",
                              f"{slot}.load(std::memory_order_relaxed)"])

    def put(self, slot, value, kind=None):
        """Stores without freeing what was there, a statement."""
        slot, kind = self.place(slot), kind or self.kind
        if kind == "raw":
            return self.r.choice([f"{slot} = {value};"] * 4 + [
                f"assign({slot}, {value});", f"(void)std::exchange({slot}, {value});",
                f"{{ auto& link = {slot}; link = {value}; }}",
                f"{{ auto** link = &{slot}; *link = {value}; }}",
                f"[&] {{ {slot} = {value}; }}();"])
        if kind == "unique":
            return self.r.choice([
                f"{{ node* const given = {value}; (void){slot}.release(); {slot}.reset(given); }}",
                f"{{ node* const given = {value}; (void){slot}.release(); "
                f"{slot} = std::unique_ptr<node>(given); }}"])
        return self.r.choice([
            f"{slot}.store({value});", f"{slot}.store({value}, std::memory_order_release);",
            f"{slot}.store({value}, std::memory_order_relaxed);", f"{slot} = {value};",
            f"(void){slot}.exchange({value});",
            f"{{ node* const given = {value}; auto* seen = {slot}.load(); "
            f"while (!{slot}.compare_exchange_weak(seen, given)) {{}} }}",
            f"{{ node* const given = {value}; auto* seen = {slot}.load(std::memory_order_relaxed); "
            f"if (!{slot}.compare_exchange_strong(seen, given, std::memory_order_acq_rel)) std::abort(); }}"])

    def take(self, slot, kind=None):
        """What was there; null is there now. An expression."""
        slot, kind = self.place(slot), kind or self.kind
        if kind == "raw":
            return self.r.choice([f"std::exchange({slot}, nullptr)",
                                  f"[&] {{ auto* was = {slot}; {slot} = nullptr; return was; }}()"])
        if kind == "unique":
            return f"{slot}.release()"
        return self.r.choice([f"{slot}.exchange(nullptr)",
                              f"{slot}.exchange(nullptr, std::memory_order_acq_rel)"])

    def empty(self, slot):
        if self.kind == "unique":
            return self.r.choice([f"!{slot}", f"{slot} == nullptr", f"{self.get(slot)} == nullptr"])
        return self.r.choice([f"{self.get(slot)} == nullptr", f"!{self.get(slot)}",
                              f"nullptr == {self.get(slot)}"]
                             + ([f"is_empty({slot})"] if self.kind == "raw" else []))

    # --- the node -----------------------------------------------------------------------------------
    def link(self, n, field):
        return f"{n}->links.{field}" if self.nested else f"{n}->{field}"

    def node_type(self, links):
        """`links`: declarations of the marked fields."""
        parts = []
        if self.nested:
            parts.append("struct { " + " ".join(links) + " } links;")
        else:
            parts += links
        parts.append("word key = 0;")
        extra = self.r.choice([0, 0, 1, 3, 9, 40])
        if extra:
            parts.append(f"word values[{extra}]{{}};")
        if self.r.random() < 0.3:
            parts.append("char small = 1;")
        if self.r.random() < 0.2:
            parts.append("bool flag : 1 = true;")
        if self.has_text:
            parts.append("char* text OBASE_GUIDED = nullptr;")
        if self.has_part:
            parts.append("part* own OBASE_GUIDED = nullptr;")
        self.r.shuffle(parts)
        align = self.r.choice([""] * 6 + ["alignas(16) ", "alignas(32) ", "alignas(64) "])
        base, virtual = "", ""
        if self.r.random() < 0.15:
            virtual = "virtual ~node() = default; virtual word weight() const { return key * 3; }"
        weight = "" if virtual else "word weight() const { return key * 3; }"
        self.values = extra
        part = "struct part { word a, b; };\n" if self.has_part else ""
        return part + f"struct {align}node{base} {{\n" + "\n".join(parts) + "\n" + virtual + weight + "\n};\n"

    def make(self, n, key):
        """Statements that make a node named n."""
        how = [f"node* {n} = new node;", f"node* {n} = new node();", f"auto* {n} = new node{{}};",
               f"node* {n} = std::make_unique<node>().release();"]
        lines = [self.r.choice(how), f"{n}->key = {key};"]
        if self.values:
            lines.append(f"for (word i = 0; i < {self.values}; ++i) {n}->values[i] = {key} * (i + 2);")
        if self.has_text:
            lines.append(self.r.choice([
                f"{n}->text = static_cast<char*>(std::malloc({key} % 40 + 9));",
                f"{n}->text = static_cast<char*>(std::calloc({key} % 40 + 9, 1));"])
                + f" std::snprintf({n}->text, 9, \"%u\", static_cast<unsigned>({key} % 10000));")
        if self.has_part:
            lines.append(f"{n}->own = new part{{{key}, {key} + 1}};")
        return "\n".join(lines)

    def drop(self, n):
        lines = []
        if self.has_text:
            lines.append(self.r.choice([f"std::free({n}->text);",
                                        f"std::free(std::exchange({n}->text, nullptr));"]))
        if self.has_part:
            lines.append(f"delete {n}->own;")
        lines.append(self.r.choice([f"delete {n};", f"std::unique_ptr<node>{{{n}}};"]
                                   if self.kind == "unique" else [f"delete {n};"]))
        return "\n".join(lines)

    def read(self, h, n):
        """Statements that mix what the node holds into h."""
        lines = [f"{h} = mix({h}, {n}->{self.r.choice(['key', 'weight()'])});"]
        if self.values and self.r.random() < 0.6:
            lines.append(self.r.choice([
                f"for (const word v : {n}->values) {h} = mix({h}, v);",
                f"{h} = mix({h}, {n}->values[{n}->key % {self.values}]);",
                f"{{ const word* v = {n}->values; for (word i = 0; i < {self.values}; ++i) {h} += v[i]; }}"]))
        if self.has_text:
            lines.append(self.r.choice([
                f"{h} = mix({h}, std::strlen({n}->text));",
                f"for (const char* c = {n}->text; *c != 0; ++c) {h} = mix({h}, static_cast<word>(*c));",
                f"{h} = mix({h}, static_cast<word>({n}->text[0]));"]))
        if self.has_part:
            lines.append(f"{h} = mix({h}, {n}->own->a + {n}->own->b);")
        return "\n".join(lines)

    def change(self, n):
        """Statements that replace what the node owns."""
        lines = [f"{n}->key += {self.keys};"] if self.r.random() < 0.3 and self.sorted is False else []
        if self.has_text:
            lines.append(f"{n}->text = static_cast<char*>(std::realloc({n}->text, {n}->key % 90 + 12)); "
                         f"std::strcat({n}->text, {n}->text[1] != 0 ? \"\" : \"x\");")
        if self.has_part:
            lines.append(self.r.choice([
                f"{{ part* was = {n}->own; {n}->own = new part{{was->b, was->a}}; delete was; }}",
                f"delete std::exchange({n}->own, new part{{{n}->key, 7}});",
                f"std::swap({n}->own->a, {n}->own->b);"]))
        return "\n".join(lines)

    sorted = False

    def method(self, result, name, parameters, body, arguments=None, const=False):
        if arguments is not None:
            self.methods.append((result, name, arguments))
        return (f"{result} {name}({parameters}){' const' if const else ''} {{\n{body}\n}}\n")

    def text(self, public, private, data):
        nodes = self.node_text
        opening = "template <int Unused>\n" if self.template else ""
        if self.inside or self.template:
            before, within = "", nodes
        else:
            before = f"namespace of_{self.name} {{\n{nodes}}}\n"
            within = f"using node = of_{self.name}::node;\n" + (
                f"using part = of_{self.name}::part;\n" if self.has_part else "")
        private_first = self.r.random() < 0.5
        declared = f"private:\n{within}\n{''.join(private)}{data}\n"
        opened = f"public:\n{''.join(public)}\n"
        inner = declared + opened if private_first else f"private:\n{within}\n{opened}private:\n{''.join(private)}{data}\n"
        self.type = f"{self.name}<1>" if self.template else self.name
        return f"{before}{opening}class {self.name} {{\n{inner}}};\n"


class list_of_nodes(structure):
    def source(self):
        r = self.r
        next_ = "next"
        nx = lambda n: self.link(n, next_)
        self.node_text = self.node_type([self.field(next_)])
        walk = lambda body, n="n": r.choice([
            f"for (auto* {n} = {self.get('head_')}; {n} != nullptr; {n} = {self.get(nx(n))}) {{\n{body}\n}}",
            f"auto* {n} = {self.get('head_')};\nwhile ({n}) {{\n{body}\n{n} = {self.get(nx(n))};\n}}",
            f"auto* {n} = {self.get('head_')};\nif ({n} != nullptr) do {{\n{body}\n}} while (({n} = {self.get(nx(n))}) != nullptr);"])
        walk_const = lambda body: walk(body)
        private, public = [], []
        # to the field in which `stop` is true of what it holds
        seek = lambda stop: (f"auto* at = &head_;\nwhile (auto* here = {self.get('*at').replace('*at.', 'at->')}) {{\n"
                             f"if ({stop}) break;\nat = &{nx('here')};\n}}")
        star = "(*at)"
        seek = lambda stop: (f"auto* at = &head_;\nwhile (auto* here = {self.get(star)}) {{\n"
                             f"if ({stop}) break;\nat = &{nx('here')};\n}}")
        public.append(self.method("void", "push_front", "word key", "\n".join([
            self.make("n", "key"), self.put(nx("n"), self.take("head_") if self.kind == "unique" or r.random() < 0.5
                                            else self.get("head_")), self.put("head_", "n")]), "K"))
        public.append(self.method("void", "push_back", "word key", r.choice([
            "\n".join([self.make("n", "key"), seek("false"), self.put(star, "n")]),
            "\n".join([seek("false"), self.make("n", "key"), self.put(star, "n")]),
            "\n".join([self.make("n", "key"), f"if ({self.empty('head_')}) {{ {self.put('head_', 'n')} return; }}",
                       f"auto* last = {self.get('head_')};",
                       f"while (!({self.empty(nx('last'))})) last = {self.get(nx('last'))};",
                       self.put(nx("last"), "n")])]), "K"))
        public.append(self.method("word", "pop_front", "", "\n".join([
            f"if ({self.empty('head_')}) return 0;", f"auto* n = {self.take('head_')};",
            self.put("head_", self.take(nx("n"))), "word h = n->key;", self.read("h", "n"),
            self.drop("n"), "return h;"]), ""))
        public.append(self.method("bool", "remove", "word key", r.choice([
            "\n".join([seek("here->key == key"), f"auto* n = {self.get(star)};",
                       "if (n == nullptr) return false;",
                       self.put(star, self.take(nx("n"))), self.drop("n"), "return true;"]),
            "\n".join(["node* before = nullptr;", f"auto* n = {self.get('head_')};",
                       f"while (n != nullptr && n->key != key) {{ before = n; n = {self.get(nx('n'))}; }}",
                       "if (n == nullptr) return false;", f"auto* after = {self.take(nx('n'))};",
                       f"if (before == nullptr) {{ {self.put('head_', 'after')} }} else {{ {self.put(nx('before'), 'after')} }}",
                       self.drop("n"), "return true;"])]), "K"))
        sum_body = r.choice([
            "word h = 1;\n" + walk_const(self.read("h", "n")) + "\nreturn h;",
            "word h = 1;\nconst auto add = [&](const node* n) {\n" + self.read("h", "n") + "\n};\n" + walk("add(n);") + "\nreturn h;",
            f"return sum_from({self.get('head_')}, 1);"])
        if "sum_from" in sum_body:
            private.append("static word sum_from(const node* n, word h) {\nif (n == nullptr) return h;\n"
                           + self.read("h", "n") + f"\nreturn sum_from({self.get(nx('n'))}, h);\n}}\n")
        public.append(self.method("word", "sum", "", sum_body, ""))
        public.append(self.method("void", "reverse", "", "\n".join([
            "node* done = nullptr;", f"node* n = {self.take('head_')};",
            f"while (n != nullptr) {{\nnode* after = {self.take(nx('n'))};", self.put(nx("n"), "done"),
            "done = n; n = after;\n}", self.put("head_", "done")]), ""))
        public.append(self.method("void", "rotate", "", "\n".join([
            f"if ({self.empty('head_')}) return;", f"node* first = {self.take('head_')};",
            self.put("head_", self.take(nx("first"))), seek("false"), self.put(star, "first")]), ""))
        public.append(self.method("void", "change", "word key",
                                  walk(f"if (n->key == key) {{ {self.change('n')} break; }}"), "K"))
        public.append(self.method("void", "trade", f"{self.name}& other",
                                  "std::swap(head_, other.head_);" if self.kind != "atomic" and r.random() < 0.7 else
                                  f"node* mine = {self.take('head_')};\nnode* theirs = {self.take('other.head_')};\n"
                                  + self.put("head_", "theirs") + "\n" + self.put("other.head_", "mine"), "OTHER"))
        public.append(f"~{self.name}() {{\nwhile (!({self.empty('head_')})) {{ auto* n = {self.take('head_')}; "
                      + self.put("head_", self.take(nx("n"))) + "\n" + self.drop("n") + "\n} }\n")
        public.append(f"{self.name}() = default;\n")
        return self.text(public, private, self.field("head_"))


class tree_of_nodes(structure):
    sorted = True

    def source(self):
        r = self.r
        if r.random() < 0.5:
            links, left, right = [self.field("left"), self.field("right")], "left", "right"
        else:
            links, left, right = [self.field("child", "[2]")], "child[0]", "child[1]"
        self.node_text = self.node_type(links)
        indexed = left != "left"
        lf, rt = (lambda n: self.link(n, left)), (lambda n: self.link(n, right))
        private, public = [], []

        def side(n, condition):  # a reference to the field of one side
            if indexed:
                return f"{self.link(n, 'child')}[{condition} ? 1 : 0]"
            return f"({condition} ? {rt(n)} : {lf(n)})"
        star = "(*at)"
        seek = (f"auto* at = &root_;\nwhile (auto* here = {self.get(star)}) {{\nif (here->key == key) break;\n"
                f"at = &{side('here', 'key > here->key')};\n}}")
        slot_type = self.pointer()
        insert = r.choice(["loop", "recursive"])
        if insert == "loop":
            public.append(self.method("bool", "insert", "word key", "\n".join([
                seek, f"if (!({self.empty(star)})) return false;", self.make("n", "key"), self.put(star, "n"),
                "return true;"]), "K"))
        else:
            private.append(f"static bool insert_at({slot_type}& at, word key) {{\nauto* here = {self.get('at')};\n"
                           f"if (here == nullptr) {{\n{self.make('n', 'key')}\n{self.put('at', 'n')}\nreturn true;\n}}\n"
                           "if (key == here->key) return false;\n"
                           + r.choice([f"return insert_at({side('here', 'key > here->key')}, key);",
                                       f"if (key < here->key) return insert_at({lf('here')}, key);\n"
                                       f"return insert_at({rt('here')}, key);"]) + "\n}\n")
            public.append(self.method("bool", "insert", "word key", "return insert_at(root_, key);", "K"))
        public.append(self.method("bool", "has", "word key", "\n".join([
            f"const node* n = {self.get('root_')};",
            f"while (n != nullptr && n->key != key) n = key < n->key ? {self.get(lf('n'))} : {self.get(rt('n'))};",
            "return n != nullptr;"]), "K"))
        private.append("static word sum_of(const node* n) {\nif (n == nullptr) return 3;\n"
                       f"word h = sum_of({self.get(lf('n'))});\n" + self.read("h", "n")
                       + f"\nreturn mix(h, sum_of({self.get(rt('n'))}));\n}}\n")
        public.append(self.method("word", "sum", "", f"return sum_of({self.get('root_')});", ""))
        public.append(self.method("bool", "erase", "word key", "\n".join([
            seek, f"if ({self.empty(star)}) return false;", f"node* n = {self.take(star)};",
            f"node* l = {self.take(lf('n'))};", f"node* g = {self.take(rt('n'))};",
            "if (l == nullptr) {", self.put(star, "g"), "} else if (g == nullptr) {", self.put(star, "l"), "} else {",
            # the left one takes the place; the right one goes to its greatest
            self.put(star, "l"), "auto* last = l;",
            f"while (!({self.empty(rt('last'))})) last = {self.get(rt('last'))};", self.put(rt("last"), "g"), "}",
            self.drop("n"), "return true;"]), "K"))
        public.append(self.method("void", "turn_right", "", "\n".join([
            f"node* n = {self.get('root_')};", f"if (n == nullptr || {self.empty(lf('n'))}) return;",
            f"n = {self.take('root_')};", f"node* l = {self.take(lf('n'))};", self.put(lf("n"), self.take(rt("l"))),
            self.put(rt("l"), "n"), self.put("root_", "l")]), ""))
        public.append(self.method("word", "depth", "",
                                  f"const auto of = [](const auto& self, const node* n) -> word {{\n"
                                  "if (n == nullptr) return 0;\n"
                                  f"const word a = self(self, {self.get(lf('n'))});\n"
                                  f"const word b = self(self, {self.get(rt('n'))});\nreturn 1 + (a > b ? a : b);\n}};\n"
                                  f"return of(of, {self.get('root_')});" if r.random() < 0.3 else
                                  f"return depth_of({self.get('root_')});", ""))
        private.append("static word depth_of(const node* n) {\nif (n == nullptr) return 0;\n"
                       f"const word a = depth_of({self.get(lf('n'))}), b = depth_of({self.get(rt('n'))});\n"
                       "return 1 + (a > b ? a : b);\n}\n")
        public.append(self.method("void", "change", "word key", "\n".join([
            seek, f"if (auto* n = {self.get(star)}) {{", self.change("n"), "(void)n->key;", "}"]), "K"))
        private.append(f"static void drop_all({slot_type}& at) {{\nif ({self.empty('at')}) return;\n"
                       f"node* n = {self.take('at')};\ndrop_all({lf('n')});\ndrop_all({rt('n')});\n"
                       + self.drop("n") + "\n}\n")
        public.append(f"~{self.name}() {{ drop_all(root_); }}\n{self.name}() = default;\n")
        return self.text(public, private, self.field("root_"))


class table_of_chains(structure):
    def source(self):
        r = self.r
        count = r.choice([1, 5, 16, 37])
        nx = lambda n: self.link(n, "next")
        self.node_text = self.node_type([self.field("next")])
        form = r.choice(["array", "struct", "heap", "matrix"])
        if form == "array":
            data, first = self.field("first_", f"[{count}]"), lambda i: f"first_[{i}]"
        elif form == "matrix":
            data = self.field("first_", f"[{count}][2]")
            first = lambda i: f"first_[{i}][key / 64 % 2]"
        elif form == "struct":
            data = f"struct bucket {{ word used = 0; {self.field('first')} }};\nbucket buckets_[{count}];"
            first = lambda i: f"buckets_[{i}].first"
        else:
            data = (f"struct bucket {{ word used = 0; {self.field('first')} }};\n"
                    f"std::unique_ptr<bucket[]> buckets_ = std::make_unique<bucket[]>({count});")
            first = lambda i: f"buckets_[{i}].first"
        here = first(f"key % {count}")
        private, public = [], []
        star = "(*at)"
        seek = (f"auto* at = &{here};\nwhile (auto* n = {self.get(star)}) {{\nif (n->key == key) break;\nat = &{nx('n')};\n}}")
        find = (f"node* n = {self.get(here)};\nwhile (n != nullptr && n->key != key) n = {self.get(nx('n'))};")
        public.append(self.method("bool", "put", "word key", "\n".join([
            find, "if (n != nullptr) { " + self.change("n") + " return false; }", self.make("fresh", "key"),
            self.put(nx("fresh"), self.take(here)), self.put(here, "fresh"), "return true;"]), "K"))
        private.append(f"node* found(word key) {{\n{find}\nreturn n;\n}}\n")
        public.append(self.method("word", "get", "word key", r.choice([
            find + "\nif (n == nullptr) return 0;\nword h = 5;\n" + self.read("h", "n") + "\nreturn h;",
            "const node* n = found(key);\nif (n == nullptr) return 0;\nword h = 5;\n" + self.read("h", "n") + "\nreturn h;"]), "K"))
        public.append(self.method("bool", "erase", "word key", "\n".join([
            seek, f"node* gone = {self.get(star)};", "if (gone == nullptr) return false;",
            self.put(star, self.take(nx("gone"))), self.drop("gone"), "return true;"]), "K"))
        each = lambda body: f"for (word key = 0; key < {count if form != 'matrix' else 2 * 64}; ++key) {{\n{body}\n}}"
        public.append(self.method("word", "sum", "", "word h = 9;\n" + each(
            f"for (const node* n = {self.get(here)}; n != nullptr; n = {self.get(nx('n'))}) {{\n{self.read('h', 'n')}\n}}")
            + "\nreturn h;", ""))
        public.append(self.method("word", "used", "", "word h = 0;\n" + each(f"if (!({self.empty(here)})) ++h;") + "\nreturn h;", ""))
        public.append(self.method("void", "turn_chains", "", each("\n".join([
            "node* done = nullptr;", f"node* n = {self.take(here)};",
            f"while (n != nullptr) {{\nnode* after = {self.take(nx('n'))};", self.put(nx("n"), "done"),
            "done = n; n = after;\n}", self.put(here, "done")])), ""))
        public.append(f"~{self.name}() {{\n" + each(
            f"while (auto* n = {self.get(here)}) {{ n = {self.take(here)}; " + self.put(here, self.take(nx("n"))) + "\n"
            + self.drop("n") + "\n}") + f"\n}}\n{self.name}() = default;\n")
        return self.text(public, private, data)


class array_of_slots(structure):
    def source(self):
        r = self.r
        count = r.choice([4, 16, 33, 64])
        self.node_text = self.node_type(["word unused = 0;"])
        rows = r.choice([0, 0, 2])
        cells = self.field("cells", f"[{rows}][{count}]" if rows else f"[{count}]")
        data = r.choice([cells.replace("cells", "cells_"), f"struct page {{ {cells} }};\npage page_;"])
        base = "page_.cells" if "page_" in data else "cells_"
        cell = lambda i: f"{base}[({i}) % {rows}][({i}) % {count}]" if rows else f"{base}[({i}) % {count}]"
        total = count * (rows or 1)
        each = lambda body: f"for (word i = 0; i < {total}; ++i) {{\n{body}\n}}"
        private, public = [], []
        drop = lambda c: f"if (node* n = {self.get(c)}) {{ {self.put(c, 'nullptr')} {self.drop('n')} }}"
        public.append(self.method("void", "set", "word key", "\n".join([
            drop(cell("key")), self.make("fresh", "key"), self.put(cell("key"), "fresh")]), "K"))
        public.append(self.method("void", "clear", "word key", drop(cell("key")), "K"))
        public.append(self.method("void", "exchange", "word key, word other", r.choice([
            f"node* a = {self.take(cell('key'))};\nnode* b = {self.take(cell('other'))};\n"
            f"if (b == nullptr && &{cell('key')} == &{cell('other')}) b = std::exchange(a, nullptr);\n"
            + self.put(cell("key"), "b") + f"\nif (a != nullptr || &{cell('key')} != &{cell('other')}) {{ " + self.put(cell("other"), "a") + " }"]
            + ([f"std::swap({cell('key')}, {cell('other')});"] * 2 if self.kind != "atomic" else [])), "K, K"))
        public.append(self.method("word", "used", "", "word h = 0;\n" + each(f"h += !({self.empty(cell('i'))});") + "\nreturn h;", ""))
        public.append(self.method("word", "sum", "", "word h = 2;\n" + each(
            f"if (const node* n = {self.get(cell('i'))}) {{\n{self.read('h', 'n')}\n}}") + "\nreturn h;", ""))
        if not rows:
            public.append(self.method("word", "fast", "", "word h = 0;\n" + (
                f"for (auto& c : {base}) h += {self.get('c')} == nullptr ? 7 : {self.get('c')}->key;") + "\nreturn h;", ""))
            public.append(self.method("void", "shift", "", "\n".join([
                f"node* last = {self.take(f'{base}[{count - 1}]')};",
                f"for (word i = {count - 1}; i > 0; --i) {{ " + self.put(f"{base}[i]", self.take(f"{base}[i - 1]")) + " }",
                self.put(f"{base}[0]", "last")]), ""))
        public.append(self.method("void", "change", "word key",
                                  f"if (auto* n = {self.get(cell('key'))}) {{ (void)n; {self.change('n')} }}", "K"))
        public.append(f"~{self.name}() {{\n" + each(drop(cell("i"))) + f"\n}}\n{self.name}() = default;\n")
        return self.text(public, private, data)


def program(seed):
    r = random.Random(seed)
    kinds = [list_of_nodes, tree_of_nodes, table_of_chains, array_of_slots]
    all_ = [r.choice(kinds)(r, i) for i in range(r.choice([1, 1, 2, 3]))]
    text = HEAD.format(seed=seed)
    for one in all_:
        text += "\n" + one.source()
    steps = r.choice([500, 2000, 5000])
    text += f"\nword work(word state) {{\nword sum = 0;\n"
    text += "const auto next = [&] { state = state * 6364136223846793005u + 1442695040888963407u; return state >> 33; };\n"
    for i, one in enumerate(all_):
        how = r.choice(["{t} a{i};\n{t} b{i};", "const auto ha{i} = std::make_unique<{t}>();\nconst auto hb{i} = std::make_unique<{t}>();\n"
                        "auto& a{i} = *ha{i};\nauto& b{i} = *hb{i};"])
        text += how.format(t=one.type, i=i) + "\n"
    text += f"for (int step = 0; step < {steps}; ++step) {{\nconst word chosen = next();\nswitch (next() % {len(all_)}) {{\n"
    for i, one in enumerate(all_):
        text += f"case {i}: {{\nauto& s = chosen % 3 != 0 ? a{i} : b{i};\nswitch (next() % {len(one.methods)}) {{\n"
        for j, (result, name, arguments) in enumerate(one.methods):
            given = arguments.replace("OTHER", f"chosen % 3 != 0 ? b{i} : a{i}")
            while "K" in given:
                given = given.replace("K", f"next() % {one.keys}", 1)
            call = f"s.{name}({given});"
            text += f"case {j}: {call if result == 'void' else 'sum = mix(sum, static_cast<word>(' + call[:-1] + '));'} break;\n"
        text += "default: break;\n}\nbreak;\n}\n"
    text += f"default: break;\n}}\nif (step % {steps // 4} == {steps // 5}) wait_for_windows();\n}}\n"
    text += "wait_for_windows();\n"
    for i, one in enumerate(all_):
        text += f"sum = mix(sum, a{i}.sum());\nsum = mix(sum, b{i}.sum());\n"
    text += "return sum;\n}\n\n} // namespace\n\nint main() {\nbegin_forcing();\n"
    if r.random() < 0.3:
        text += ("word sums[2] = {};\n{\nstd::thread one([&] { sums[0] = work(1); });\n"
                 "std::thread two([&] { sums[1] = work(2); });\none.join();\ntwo.join();\n}\n"
                 "const word sum = mix(sums[0], sums[1]);\n")
    else:
        text += f"const word sum = work({r.randrange(1, 1000)});\n"
    text += 'end_forcing();\nstd::printf("%llu\\n", static_cast<unsigned long long>(sum));\n}\n'
    return text


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print("usage: make_program.py SEED; SEED is a number", file=sys.stderr)
        sys.exit(2)
    print(program(int(sys.argv[1])), end="")
