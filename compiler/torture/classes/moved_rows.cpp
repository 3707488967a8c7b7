// SPDX-License-Identifier: MIT
//
// right: rows with a marked unique_ptr in a vector, sorted, exchanged, erased and inserted.
#include "torture.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>
struct row {
    explicit row(int k) : key(k), text(new char[32]) { std::snprintf(text.get(), 32, "row %d", k); }
    row(row&&) noexcept = default;
    row& operator=(row&&) noexcept = default;
    bool right() const {
        char sought[32];
        std::snprintf(sought, sizeof sought, "row %d", key);
        return std::strcmp(text.get(), sought) == 0;
    }
    int key;
    std::unique_ptr<char[]> text OBASE_GUIDED;
};
int main() {
    std::vector<row> rows;
    for (int i = 0; i < 200; ++i) rows.emplace_back(i * 77 % 200);
    settle();
    std::sort(rows.begin(), rows.end(), [](const row& a, const row& b) { return a.key < b.key; });
    settle();
    rows.erase(
        std::remove_if(rows.begin(), rows.end(), [](const row& r) { return r.key % 3 == 0; }),
        rows.end());
    settle();
    rows.insert(rows.begin() + 10, row(1000));
    std::swap(rows.front(), rows.back());
    std::rotate(rows.begin(), rows.begin() + 5, rows.end());
    std::reverse(rows.begin(), rows.end());
    settle();
    int good = 0;
    for (const row& r : rows) good += r.right();
    std::printf("%d of %zu, %d\n", good, rows.size(), rows[3].key);
}
