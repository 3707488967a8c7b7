// SPDX-License-Identifier: MIT
//
// The cache of a service: several threads ask for pages, most of them for a few. The cache moves whole,
// so pages that are seldom asked for lie together, and the system can take their memory away:
//
//     OBASE_MODE=hint OBASE_COLD_BACKING=file:/var/tmp ./example_lru_service
#include <obase/lru_cache.hpp>
#include <obase/runtime.hpp>

#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string render(const std::string& url) {
    return "<html>" + url + std::string(1000, '.') + "</html>";
}

class service {
  public:
    std::string page(const std::string& url) {
        if (auto cached = pages_.get(url)) return *cached;
        misses_.fetch_add(1);
        std::string made = render(url);
        pages_.put(url, made); // may evict the page that was not asked for for longest
        return made;
    }
    std::size_t misses() const { return misses_; }
    std::size_t bytes() const { return pages_.bytes_held(); }

  private:
    obase::lru_cache<std::string, std::string> pages_{{.bytes = 8 << 20}};
    std::atomic<std::size_t> misses_{0};
};

} // namespace

int main() {
    service s;
    std::atomic<bool> wrong{false};
    constexpr int requests = 20'000;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            std::geometric_distribution<int> number(0.0005);
            for (int i = 0; i < requests; ++i) {
                const std::string url = "/page/" + std::to_string(number(random));
                if (s.page(url) != render(url)) wrong = true;
                if (i % 5000 == 0) obase::runtime::get().collect_now();
            }
        });
    }
    for (std::thread& t : threads) t.join();
    std::printf("%d requests, %zu misses, %zu bytes in the cache\n", 2 * requests, s.misses(),
                s.bytes());
    return wrong || s.bytes() > 8 << 20 || s.misses() == 0 ? 1 : 0;
}
