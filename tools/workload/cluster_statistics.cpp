// SPDX-License-Identifier: MIT
#include "tools/workload/cluster_statistics.hpp"

#include "tools/workload/operation_names.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace workload {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view blank = " \t\r";
    const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
    text.remove_prefix(begin);
    return text.substr(0, text.find_last_not_of(blank) + 1);
}

// Between the bars of a line of a table; nothing for any other line.
std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    line = trimmed(line);
    if (!line.starts_with('|')) return cells;
    line.remove_prefix(1);
    while (!line.empty()) {
        const std::size_t bar = std::min(line.find('|'), line.size());
        cells.push_back(trimmed(line.substr(0, bar)));
        line.remove_prefix(std::min(bar + 1, line.size()));
    }
    return cells;
}

class table_reader {
  public:
    table_reader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

    // The next line that belongs to a table; empty at the end.
    std::vector<std::string_view> next() {
        while (!rest_.empty()) {
            const std::size_t newline = std::min(rest_.find('\n'), rest_.size());
            auto cells = cells_of(rest_.substr(0, newline));
            rest_.remove_prefix(std::min(newline + 1, rest_.size()));
            ++line_;
            if (!cells.empty()) return cells;
        }
        return {};
    }
    [[noreturn]] void refuse(const std::string& expected, std::string_view found) const {
        throw std::runtime_error(name_ + ", line " + std::to_string(line_) + ": expected " +
                                 expected + "; found \"" + std::string(found.substr(0, 60)) + "\"");
    }
    double number(const std::string& what, std::string_view text, double most) const {
        double value = 0;
        const char* const end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc{} || stopped != end || !(value >= 0 && value <= most))
            refuse(what + " from 0 to " + std::to_string(static_cast<std::uint64_t>(most)), text);
        return value;
    }

  private:
    std::string_view rest_;
    std::string name_;
    std::uint64_t line_ = 0;
};

std::size_t column(const table_reader& table, const std::vector<std::string_view>& header,
                   std::string_view name) {
    for (std::size_t i = 0; i < header.size(); ++i)
        if (equal_ignoring_case(header[i], name)) return i;
    table.refuse("a column named \"" + std::string(name) + "\"",
                 header.empty() ? std::string_view("no table") : header.front());
}

// "get:0.90 set:0.10"
void take_operations(const table_reader& table, std::string_view text, cluster_statistics& into) {
    double sum = 0;
    while (!text.empty()) {
        const std::size_t blank = std::min(text.find(' '), text.size());
        const std::string_view one = text.substr(0, blank);
        text = trimmed(text.substr(blank));
        const std::size_t colon = one.find(':');
        const auto what = operation_named(one.substr(0, colon));
        if (colon == std::string_view::npos || !what) table.refuse("OPERATION:SHARE", one);
        const double share = table.number("a share", one.substr(colon + 1), 1);
        sum += share;
        switch (*what) {
        case operation::update:
        case operation::insert:
            into.updates += share;
            break;
        case operation::read_modify_write:
            into.read_modify_writes += share;
            break;
        case operation::erase:
            into.deletes += share;
            break;
        case operation::read:
        case operation::scan:
            break;
        }
    }
    // Shares are rounded: three of .335 would be more than all.
    if (!(sum > 0 && sum < 1.05)) table.refuse("shares that sum up to 1", std::to_string(sum));
    for (double* share : {&into.updates, &into.read_modify_writes, &into.deletes})
        *share /= std::max(sum, 1.);
}

} // namespace

cluster_statistics parse_cluster_statistics(std::string_view text, const std::string& name,
                                            std::uint64_t cluster) {
    table_reader table(text, name);
    const auto header = table.next();
    const std::size_t cluster_at = column(table, header, "cluster");
    const std::size_t key_at = column(table, header, "key size");
    const std::size_t value_at = column(table, header, "value size");
    const std::size_t operation_at = column(table, header, "operation");
    const std::size_t zipf_at = column(table, header, "zipf alpha");
    const std::string wanted = "cluster" + std::to_string(cluster);
    for (auto cells = table.next(); !cells.empty(); cells = table.next()) {
        if (cells.size() != header.size())
            table.refuse(std::to_string(header.size()) + " columns", std::to_string(cells.size()));
        if (cells[cluster_at] != wanted) continue;
        for (const std::size_t at : {key_at, value_at, operation_at, zipf_at})
            if (cells[at] == "N/A" || cells[at] == "NA")
                table.refuse("a cluster whose statistics are published", cells[at]);
        cluster_statistics result;
        constexpr double largest = 1 << 30;
        result.key_size =
            static_cast<std::uint64_t>(table.number("a key size", cells[key_at], 65535));
        result.value_size =
            static_cast<std::uint64_t>(table.number("a value size", cells[value_at], largest));
        result.zipf_exponent = table.number("an exponent", cells[zipf_at], 20);
        take_operations(table, cells[operation_at], result);
        return result;
    }
    throw std::runtime_error(name + ": expected " + wanted + "; it is not in the table");
}

cluster_statistics read_cluster_statistics(const std::string& path, std::uint64_t cluster) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file || !text)
        throw std::runtime_error(path + ": cannot be read: " +
                                 std::generic_category().message(errno != 0 ? errno : EIO));
    return parse_cluster_statistics(text.str(), path, cluster);
}

} // namespace workload
