// SPDX-License-Identifier: MIT
//
// The line tables of a file (DWARF 4 and 5): which source an address in its code is of.
//
//     for_each_line_table(file, [&](line_program& unit) {
//         line_row row;
//         return unit.find(address, &row); // true ends it
//     });
//
// Every offset is checked: the file is not ours. Compressed tables are none.
#pragma once

#include "audit/elf_file.hpp"

#include <algorithm>
#include <cstdint>

namespace obase::audit {

// Reads on, and stays at the end once that is reached.
class reader {
  public:
    reader(text data, std::size_t at) noexcept : data_(data), at_(std::min(at, data.size())) {}

    template <class T>
    T get() noexcept {
        T value{};
        if (data_.size() - at_ < sizeof value) {
            failed_ = true;
            at_ = data_.size();
            return value;
        }
        std::memcpy(&value, data_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::uint64_t unsigned_leb() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = get<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) return value;
        }
    }
    std::int64_t signed_leb() noexcept {
        std::uint64_t value = 0;
        unsigned shift = 0;
        std::uint8_t byte = 0;
        do {
            byte = get<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            shift += 7;
        } while ((byte & 0x80) != 0);
        if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
        return static_cast<std::int64_t>(value);
    }
    text string() noexcept {
        const text found = elf_file::string_at(data_, at_);
        const std::size_t end = data_.find('\0', at_);
        at_ = end == text::npos ? data_.size() : end + 1;
        failed_ = failed_ || end == text::npos;
        return found;
    }
    std::uint64_t offset(bool wide) noexcept {
        return wide ? get<std::uint64_t>() : get<std::uint32_t>();
    }
    void skip(std::uint64_t bytes) noexcept {
        if (bytes > data_.size() - at_) failed_ = true;
        at_ = failed_ ? data_.size() : at_ + bytes;
    }
    std::size_t at() const noexcept { return at_; }
    void go_to(std::size_t at) noexcept { at_ = std::min(at, data_.size()); }
    bool failed() const noexcept { return failed_; }

  private:
    text data_;
    std::size_t at_;
    bool failed_ = false;
};

// DWARF's names for what is used here.
enum : std::uint64_t {
    form_data2 = 0x05,
    form_data4 = 0x06,
    form_data8 = 0x07,
    form_string = 0x08,
    form_block = 0x09,
    form_data1 = 0x0b,
    form_strp = 0x0e,
    form_udata = 0x0f,
    form_data16 = 0x1e,
    form_line_strp = 0x1f,
    content_path = 1,
    content_folder = 2,
};

struct line_sections {
    text lines, line_strings, strings;
};

struct line_row {
    std::uint64_t address = 0;
    std::uint64_t file = 1;
    std::int64_t line = 1;
    std::uint64_t column = 0;
};

// One unit's line table: its header, and the program that makes the rows.
class line_program {
  public:
    line_program(const line_sections& in, std::size_t begin) noexcept
        : in_(in), r_(in.lines, begin) {
        std::uint64_t length = r_.get<std::uint32_t>();
        wide_ = length == 0xffffffff;
        if (wide_) length = r_.get<std::uint64_t>();
        end_ = length <= in.lines.size() - r_.at() ? r_.at() + length : in.lines.size();
        version_ = r_.get<std::uint16_t>();
        if (version_ >= 5) r_.skip(2); // sizes of addresses and segments
        const std::uint64_t header_length = r_.offset(wide_);
        program_ = r_.at() + header_length;
        shortest_ = r_.get<std::uint8_t>();
        if (version_ >= 4) r_.skip(1);
        r_.skip(1);
        line_base_ = r_.get<std::int8_t>();
        line_range_ = r_.get<std::uint8_t>();
        opcode_base_ = r_.get<std::uint8_t>();
        for (unsigned i = 1; i < opcode_base_; ++i) lengths_[i] = r_.get<std::uint8_t>();
        tables_ = r_.at();
        good_ = !r_.failed() && version_ >= 2 && version_ <= 5 && line_range_ != 0;
    }
    std::size_t end() const noexcept { return end_; }

    // The row that covers the address.
    bool find(std::uint64_t address, line_row* out) noexcept {
        line_row before;
        bool any = false; // rows of this sequence
        bool found = false;
        for_each_row([&](const line_row& row, bool last) {
            found = any && before.address <= address && address < row.address;
            if (found) *out = before;
            before = row;
            any = !last;
            return found;
        });
        return found;
    }

    // visit(begin, end) for each stretch of the unit's code. What the linker has left out begins at 0.
    template <class Visit>
    void for_each_stretch(Visit&& visit) {
        std::uint64_t begin = 0;
        bool any = false;
        for_each_row([&](const line_row& row, bool last) {
            if (!any) begin = row.address;
            any = !last;
            if (last && begin != 0) visit(begin, row.address);
            return false;
        });
    }

    // The source that was compiled.
    text unit_name() noexcept {
        text folder;
        return good_ ? last_part(file_name(version_ < 5 ? 1 : 0, &folder)) : text{};
    }

    // Its folder is "" where it is that of the compilation.
    text file_name(std::uint64_t number, text* folder) noexcept {
        r_.go_to(tables_);
        *folder = {};
        if (version_ < 5) {
            while (!r_.string().empty()) {
            } // folders
            for (std::uint64_t i = 1; !r_.failed(); ++i) {
                const text name = r_.string();
                if (name.empty() || i == number) return name;
                for (int column = 0; column < 3; ++column) r_.unsigned_leb();
            }
            return {};
        }
        std::uint64_t in = 0;
        entry(0, false, &in); // folders: all of them
        const text name = entry(number, true, &in);
        r_.go_to(tables_);
        std::uint64_t ignored = 0;
        if (in != 0 && !name.starts_with('/')) *folder = entry(in, true, &ignored);
        return name;
    }

  private:
    // row(now, last) until it is true; `last`: the address is the end of the stretch.
    template <class Row>
    void for_each_row(Row&& row) {
        if (!good_) return;
        r_.go_to(program_);
        line_row now;
        while (r_.at() < end_ && !r_.failed()) {
            const auto op = r_.get<std::uint8_t>();
            if (op >= opcode_base_) {
                const unsigned adjusted = op - opcode_base_;
                now.address += adjusted / line_range_ * shortest_;
                now.line += line_base_ + static_cast<int>(adjusted % line_range_);
                if (row(now, false)) return;
                continue;
            }
            switch (op) {
            case 0: {
                const std::uint64_t length = r_.unsigned_leb();
                const std::size_t next = r_.at() + length;
                const auto sub = r_.get<std::uint8_t>();
                if (sub == 1) {
                    if (row(now, true)) return;
                    now = line_row{};
                } else if (sub == 2) {
                    now.address = r_.get<std::uint64_t>();
                }
                r_.go_to(next);
                break;
            }
            case 1:
                if (row(now, false)) return;
                break;
            case 2:
                now.address += r_.unsigned_leb() * shortest_;
                break;
            case 3:
                now.line += r_.signed_leb();
                break;
            case 4:
                now.file = r_.unsigned_leb();
                break;
            case 5:
                now.column = r_.unsigned_leb();
                break;
            case 8:
                now.address += (255u - opcode_base_) / line_range_ * shortest_;
                break;
            case 9:
                now.address += r_.get<std::uint16_t>();
                break;
            default:
                for (unsigned i = 0; i < lengths_[op]; ++i) r_.unsigned_leb();
            }
        }
    }
    // Reads a table of version 5. The path of row `number`, where one is wanted.
    text entry(std::uint64_t number, bool wanted, std::uint64_t* folder) noexcept {
        struct column {
            std::uint64_t content, form;
        } columns[16];
        const auto count = r_.get<std::uint8_t>();
        if (count > 16) return {};
        for (unsigned i = 0; i < count; ++i) columns[i] = {r_.unsigned_leb(), r_.unsigned_leb()};
        const std::uint64_t rows = r_.unsigned_leb();
        for (std::uint64_t row = 0; row < rows && !r_.failed(); ++row) {
            text path;
            for (unsigned i = 0; i < count; ++i) {
                std::uint64_t value = 0;
                const text string = form(columns[i].form, &value);
                if (columns[i].content == content_path) path = string;
                if (columns[i].content == content_folder) *folder = value;
            }
            if (wanted && row == number) return path;
        }
        return {};
    }
    text form(std::uint64_t kind, std::uint64_t* value) noexcept {
        switch (kind) {
        case form_string:
            return r_.string();
        case form_line_strp:
            return elf_file::string_at(in_.line_strings, r_.offset(wide_));
        case form_strp:
            return elf_file::string_at(in_.strings, r_.offset(wide_));
        case form_data1:
            *value = r_.get<std::uint8_t>();
            return {};
        case form_data2:
            *value = r_.get<std::uint16_t>();
            return {};
        case form_data4:
            *value = r_.get<std::uint32_t>();
            return {};
        case form_data8:
            *value = r_.get<std::uint64_t>();
            return {};
        case form_data16:
            r_.skip(16);
            return {};
        case form_udata:
            *value = r_.unsigned_leb();
            return {};
        case form_block:
            r_.skip(r_.unsigned_leb());
            return {};
        default:
            r_.go_to(in_.lines.size());
            return {};
        }
    }

    const line_sections& in_;
    reader r_;
    bool wide_ = false;
    bool good_ = false;
    std::size_t end_ = 0;
    unsigned version_ = 0;
    std::size_t program_ = 0;
    std::size_t tables_ = 0;
    unsigned shortest_ = 1;
    int line_base_ = 0;
    unsigned line_range_ = 1;
    unsigned opcode_base_ = 1;
    unsigned lengths_[256] = {};
};

// unit(program) for each line table of the file; true ends it.
template <class Unit>
void for_each_line_table(const elf_file& file, Unit&& unit) {
    const line_sections sections{file.section(".debug_line"), file.section(".debug_line_str"),
                                 file.section(".debug_str")};
    for (std::size_t begin = 0; begin + 4 < sections.lines.size();) {
        line_program one(sections, begin);
        if (unit(one) || one.end() <= begin) return;
        begin = one.end();
    }
}

} // namespace obase::audit
