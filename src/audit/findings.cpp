// SPDX-License-Identifier: MIT
#include "audit/findings.hpp"

#include "audit/places.hpp"
#include "os/own_memory.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace obase::audit {

namespace {

struct words {
    const char* name;
    const char* severity;
    const char* what;
    const char* advice;
};
// In the order of `kind`.
constexpr words texts[kinds] = {
    {"stale-use", "error", "an address of an object was used after its operation had ended",
     "take the address from the marked field again in each operation, or keep a key or an index of "
     "the object instead of its address"},
    {"unconverted-access", "error",
     "a marked field was read by code that the passes did not compile",
     "compile every file that names the struct with obase-clang or obase-rewrite, and access the "
     "field by its name there"},
    {"two-fields", "error", "an object is in two marked fields after an operation has ended",
     "an object has one owner: unmark one of the two fields, and keep in it a key or an index, or "
     "find the object by a search in each operation"},
    {"freed-in-field", "error", "a marked field holds an object that was freed",
     "store NULL into the field, or end the memory it lies in, in the operation that frees"},
    {"kept-address", "suspected",
     "a word that is no marked field still has the address of an object that has moved twice since",
     "if the word is used again it must be a key, an index, or found anew in each operation; if it "
     "is "
     "not, clear it, or add the line to the file of what is known"},
    {"foreign-free", "note",
     "memory of a marked field was freed or resized by code that was not compiled by the passes",
     "nothing: the call was handled. It waits for no operation that is open if that code is not "
     "linked by obase-clang"},
    {"left-by-longjmp", "note", "an operation was left by longjmp",
     "nothing: the operation was ended at the setjmp. What it had changed half is the program's"},
    {"never-ended", "note",
     "an operation that has begun here was open when the process ended; nothing has moved since",
     "if it was left by longjmp, compile the unit with the setjmp by obase-clang; if it ends the "
     "process, nothing; else it is a function that runs for ever, which must not be an operation"},
    {"plain-unit", "note",
     "a unit that was compiled without the passes calls a function on marked fields",
     "if the unit accesses a marked field itself, or has a copy of an inline function that does, "
     "compile it with obase-clang"},
};
static_assert(sizeof texts / sizeof *texts == kinds);

const words& text_of(const finding& f) noexcept { return texts[static_cast<unsigned>(f.what)]; }

// Text of limited length.
class writer {
  public:
    writer(char* to, std::size_t room) noexcept : to_(to), room_(room) { *to_ = '\0'; }
    [[gnu::format(printf, 2, 3)]] void print(const char* format, ...) noexcept {
        va_list arguments;
        va_start(arguments, format);
        const int wanted = std::vsnprintf(to_ + used_, room_ - used_, format, arguments);
        va_end(arguments);
        if (wanted > 0) used_ = std::min(room_ - 1, used_ + static_cast<std::size_t>(wanted));
    }
    void quote(const char* text) noexcept {
        print("\"");
        for (; *text != '\0'; ++text) {
            const auto c = static_cast<unsigned char>(*text);
            if (c == '"' || c == '\\')
                print("\\%c", c);
            else if (c < 0x20)
                print("\\u%04x", c);
            else
                print("%c", c);
        }
        print("\"");
    }
    std::size_t used() const noexcept { return used_; }

  private:
    char* to_;
    std::size_t room_;
    std::size_t used_ = 0;
};

// As a compiler names it. malloc is used, so not in a handler.
void readable(char* name, std::size_t room) noexcept {
    int status = 0;
    char* const clear = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    if (clear != nullptr) std::snprintf(name, room, "%s", clear);
    std::free(clear);
}

void look_up(place at, bool is_return, bool in_handler, source_place& out) noexcept {
    find_source(at, is_return, out);
    if (!in_handler && out.function[0] != '\0') readable(out.function, sizeof out.function);
}

void print_place(writer& to, const source_place& at, place address) noexcept {
    if (at.line != 0) to.print("%s:%u", at.file, at.line);
    if (at.line != 0 && at.column != 0) to.print(":%u", at.column);
    if (at.function[0] != '\0') to.print("%s%s", at.line != 0 ? " in " : "", at.function);
    if (at.line == 0 && at.function[0] == '\0') to.print("%p", const_cast<void*>(address));
}

} // namespace

void findings::open(const char* report_path, const char* known_path, bool strict) noexcept {
    strict_ = strict;
    std::snprintf(report_, sizeof report_, "%s", report_path);
    if (known_path[0] == '\0') return;
    os::mapped_file file;
    if (!os::map_for_reading(known_path, &file)) {
        std::fprintf(stderr, "obase audit: '%s' cannot be read (OBASE_AUDIT_KNOWN)\n", known_path);
        return;
    }
    const std::size_t bytes = std::min(file.bytes, sizeof known_ - 1);
    std::memcpy(known_, file.begin, bytes);
    known_[bytes] = '\0';
    os::unmap(file);
}

// A handler may have interrupted the thread that holds it. True: to be unlocked.
bool findings::lock_if_possible() noexcept {
    for (int tries = 0; tries < 1000; ++tries) {
        if (lock_.try_lock()) return true;
        os::native_platform::pause();
    }
    return false;
}

void findings::add(const finding& f) noexcept {
    const bool held = lock_if_possible();
    const auto same = [&f](const finding& other) {
        const bool fields = (other.second == f.second && other.known.stored == f.known.stored) ||
                            (f.what == kind::two_slots && other.second == f.known.stored &&
                             other.known.stored == f.second);
        return fields && other.what == f.what && other.at == f.at &&
               other.known.allocated == f.known.allocated && std::strcmp(other.where, f.where) == 0;
    };
    finding* const end = found_ + count_;
    if (finding* known = std::find_if(found_, end, same); known != end) {
        ++known->count;
    } else if (count_ < most) {
        found_[count_] = f;
        ++count_; // behind the entry: tell() may look on
    } else {
        ++lost_;
    }
    if (held) lock_.unlock();
}

void findings::forget() noexcept {
    ::new (&lock_) std::mutex;
    count_ = 0;
    lost_ = 0;
    told_ = false;
}

const char* findings::severity(const finding& f) const noexcept {
    const char* const usual = text_of(f).severity;
    return strict_ && std::strcmp(usual, "suspected") == 0 ? "error" : usual;
}

void findings::describe(const finding& f, bool in_handler, char* text, std::size_t bytes) noexcept {
    writer to(text, bytes);
    source_place at;
    const words& say = text_of(f);
    to.print("%s: %s", say.name, say.what);
    if (f.at != nullptr) {
        look_up(f.at, f.at_is_return, in_handler, at);
        to.print("\n    at: ");
        print_place(to, at, f.at);
    }
    if (f.known.stored != nullptr) {
        look_up(f.known.stored, true, in_handler, at);
        to.print("\n    field: ");
        if (at.field[0] != '\0')
            to.print("%s, %s, declared at %s", at.field, at.type, at.declared);
        else
            print_place(to, at, f.known.stored);
    }
    if (f.second != nullptr) {
        look_up(f.second, true, in_handler, at);
        to.print("\n    other field: ");
        if (at.field[0] != '\0')
            to.print("%s, %s, declared at %s", at.field, at.type, at.declared);
        else
            print_place(to, at, f.second);
    }
    if (f.known.grains != 0) {
        to.print("\n    object: %zu bytes", f.known.size());
        if (f.known.allocated != nullptr) {
            look_up(f.known.allocated, true, in_handler, at);
            to.print(", made at ");
            print_place(to, at, f.known.allocated);
        }
        if (f.known.freed != nullptr) {
            look_up(f.known.freed, true, in_handler, at);
            to.print(", freed at ");
            print_place(to, at, f.known.freed);
        }
    }
    if (f.known.operation != nullptr) {
        look_up(f.known.operation, true, in_handler, at);
        to.print("\n    let out by: the operation at ");
        print_place(to, at, f.known.operation);
    }
    if (f.where[0] != '\0')
        to.print("\n    %s: %s", f.what == kind::plain_unit ? "calls" : "held by", f.where);
    if (f.count > 1) to.print("\n    times: %llu", static_cast<unsigned long long>(f.count));
    to.print("\n    what to do: %s", say.advice);
}

// A line of the file is the kind, and words that all stand in the description.
bool findings::is_known(const finding& f, const char* text) const noexcept {
    std::string_view rest = known_;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
        line = line.substr(0, line.find('#'));
        bool first = true;
        bool all = true;
        while (!line.empty()) {
            const std::size_t space = line.find_first_of(" \t");
            const std::string_view word = line.substr(0, space);
            line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
            if (word.empty()) continue;
            all = all && (first ? word == text_of(f).name
                                : std::string_view(text).find(word) != std::string_view::npos);
            first = false;
        }
        if (!first && all) return true;
    }
    return false;
}

bool findings::tell(const totals& done, bool in_handler) noexcept {
    const bool held = lock_if_possible();
    const bool errors = !std::exchange(told_, true) && tell_all(done, in_handler);
    if (held) lock_.unlock();
    return errors;
}

bool findings::tell_all(const totals& done, bool in_handler) noexcept {
    unsigned errors = 0, suspected = 0, known = 0;
    // JSON, and on standard error the text.
    writer json(all_, sizeof all_);
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    json.print("{\"pid\":%d,\"findings\":[", static_cast<int>(getpid()));
    bool first = true;
    for (std::size_t i = 0; i < count_; ++i) {
        const finding& f = found_[i];
        describe(f, in_handler, text_, sizeof text_);
        if (is_known(f, text_)) {
            ++known;
            continue;
        }
        const char* const is = severity(f);
        errors += std::strcmp(is, "error") == 0;
        suspected += std::strcmp(is, "suspected") == 0;
        json.print("%s{\"kind\":\"%s\",\"severity\":\"%s\",\"count\":%llu,\"text\":",
                   first ? "" : ",", text_of(f).name, is, number(f.count));
        json.quote(text_);
        const auto add = [&](const char* name, place at, bool is_return) {
            if (at == nullptr) return;
            source_place where;
            look_up(at, is_return, in_handler, where);
            json.print(",\"%s\":{\"file\":", name);
            json.quote(where.file);
            json.print(",\"line\":%u,\"column\":%u,\"function\":", where.line, where.column);
            json.quote(where.function);
            json.print(",\"field\":");
            json.quote(where.field);
            json.print("}");
        };
        add("at", f.at, f.at_is_return);
        add("field", f.known.stored, true);
        add("other_field", f.second, true);
        add("made", f.known.allocated, true);
        add("operation", f.known.operation, true);
        json.print(",\"bytes\":%zu}", f.known.size());
        first = false;
        if (report_[0] == '\0') {
            const char* const begin = "obase audit: ";
            os::write_to_standard_error(begin, std::strlen(begin));
            os::write_to_standard_error(is, std::strlen(is));
            os::write_to_standard_error(": ", 2);
            os::write_to_standard_error(text_, std::strlen(text_));
            os::write_to_standard_error("\n", 1);
        }
    }
    json.print("],\"errors\":%u,\"suspected\":%u,\"known\":%u,\"not_listed\":%llu,"
               "\"operations\":%llu,\"audited\":%llu,\"skipped_busy\":%llu,\"skipped_open\":%llu,"
               "\"skipped_time\":%llu,\"objects\":%llu,\"moved\":%llu,\"arenas\":%llu,"
               "\"unprotected\":%llu,\"searches\":%llu,\"died\":%s}\n",
               errors, suspected, known, number(lost_), number(done.ends), number(done.audited),
               number(done.busy), number(done.open), number(done.late), number(done.objects),
               number(done.moved), number(done.arenas), number(done.unprotected),
               number(done.searches), in_handler ? "true" : "false");
    char path[sizeof report_ + 16];
    const char* const mark = std::strstr(report_, "%p");
    if (mark == nullptr)
        std::snprintf(path, sizeof path, "%s", report_);
    else
        std::snprintf(path, sizeof path, "%.*s%d%s", static_cast<int>(mark - report_), report_,
                      static_cast<int>(getpid()), mark + 2);
    if (report_[0] != '\0' && !os::write_file(path, all_, json.used())) {
        writer line(text_, sizeof text_);
        line.print("obase audit: the report '%s' cannot be written\n", path);
        os::write_to_standard_error(text_, line.used());
    }
    if (report_[0] == '\0') {
        writer line(text_, sizeof text_);
        line.print(
            "obase audit: %u errors, %u suspected, %u known; %llu objects moved %llu times "
            "at the ends of %llu of %llu operations (skipped: %llu others were open, %llu busy, "
            "%llu to save time)\n",
            errors, suspected, known, number(done.objects), number(done.moved),
            number(done.audited), number(done.ends), number(done.open), number(done.busy),
            number(done.late));
        os::write_to_standard_error(text_, line.used());
    }
    return errors != 0;
}

} // namespace obase::audit
