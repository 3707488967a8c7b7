# SPDX-License-Identifier: MIT
"""gdb pretty-printers for obase::guide<T> and obase::owner<T>.

    (gdb) source obase_gdb.py          (by itself with libobase.so; by hand with libobase.a)
    (gdb) print my_guide
    $1 = armed, window stamp 12, at 0x20000004a0c0 = {object = {key = 7, value = 49}}

The state is read from the word as include/obase/word draws it; a printer that changed it (a
dereference is an access) would change what is being debugged. `print/r` shows the raw word.
"""

import re

import gdb
import gdb.printing

ADDRESS_BITS = 48
ADDRESS_MASK = (1 << ADDRESS_BITS) - 1
UNTOUCHED_BIT = 1 << 63
BORN_BIT = 1 << 62
STAMP_MASK = (1 << 14) - 1


def word_of(value):
    """The 64 bits of a class that is one word, however deep its members wrap it."""
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        # Static members have no bitpos; empty bases have size zero worth of members.
        fields = [field for field in kind.fields()
                  if hasattr(field, "bitpos") and (not field.is_base_class or field.type.fields())]
        if not fields:
            raise ValueError(f"no debug information for {kind}")
        if len(fields) != 1:
            raise ValueError(f"{kind} is not one word")
        return word_of(value[fields[0]])
    if kind.sizeof != 8:
        raise ValueError(f"{kind} is not 64 bits")
    return int(value.cast(gdb.lookup_type("unsigned long"))) & (1 << 64) - 1


def describe_plain(word):
    """(text, address) of a word of the protocol `plain`: an ordinary pointer."""
    return (f"{word:#x}" if word else "null"), word


def describe_arming(word):
    """(text, address) of a word of the protocol `arming`."""
    address = word & ADDRESS_MASK
    if word == 0:
        return "null", 0
    if word & UNTOUCHED_BIT and word & BORN_BIT:
        state = "born"
    elif word & UNTOUCHED_BIT:
        state = f"armed, window stamp {word >> ADDRESS_BITS & STAMP_MASK}"
    elif word >> ADDRESS_BITS == 0:
        state = "plain"
    else:
        state = f"invalid word {word:#018x}"
    return (f"{state}, at {address:#x}" if address else f"{state}, null"), address


def describe_atc(word):
    """(text, address) of a word of the protocol `atc`."""
    address = word & ADDRESS_MASK
    if word == 0:
        return "null", 0
    count = word >> 48 & 0x7F
    heap = ("NEW", "HOT", "COLD", "unvisited")[word >> 60 & 3]
    parts = ["ATC sticky" if count == 0x7F else f"ATC {count}", f"CIW {word >> 55 & 0x1F}", heap]
    if word & 1 << 62:
        parts.append("accessed")
    if word & 1 << 63:
        parts.append("locked")
    parts.append(f"at {address:#x}" if address else "null")
    return ", ".join(parts), address


DESCRIBE = {
    "obase::arming": describe_arming,
    "obase::atc": describe_atc,
    "obase::plain": describe_plain,
}


def describer_of(kind):
    """By the last template argument. From the type's name: clang describes a protocol's class only
    in programs that use more of it than its name."""
    name = kind.strip_typedefs().unqualified().name
    found = re.search(r",\s*(obase::\w+)\s*>$", name)
    protocol = found.group(1) if found else "obase::arming"
    if protocol not in DESCRIBE:
        raise ValueError(f"protocol {protocol}")
    return DESCRIBE[protocol]


class WordPrinter:
    def __init__(self, value):
        if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        self.value = value
        try:
            self.text, self.address = describer_of(value.type)(word_of(value))
        except (ValueError, gdb.error) as problem:
            self.text, self.address = f"not understood: {problem}", 0

    def to_string(self):
        return self.text

    def children(self):
        if not self.address:
            return
        pointee = self.value.type.strip_typedefs().template_argument(0)
        if pointee.strip_typedefs().code == gdb.TYPE_CODE_VOID:
            return
        thing = gdb.Value(self.address).cast(pointee.pointer()).dereference()
        try:
            thing.fetch_lazy()
        except gdb.MemoryError:
            # COLD memory that a core file does not hold, for example.
            yield "object", "<not readable>"
            return
        yield "object", thing


def build():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("obase")
    printers.add_printer("guide", r"^obase::(\w+::)*guide<.*>$", WordPrinter)
    printers.add_printer("owner", r"^obase::(\w+::)*owner<.*>$", WordPrinter)
    return printers


gdb.printing.register_pretty_printer(gdb.current_objfile(), build(), replace=True)
