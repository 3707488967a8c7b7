// SPDX-License-Identifier: MIT
#include "tools/workload/cachelib_config.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

namespace workload {
namespace {

using nlohmann::json;

// One file, and messages that name it.
class config_file {
  public:
    explicit config_file(std::string path) : path_(std::move(path)) {
        std::ifstream file(path_);
        std::ostringstream text;
        text << file.rdbuf();
        if (!file || !text)
            throw std::runtime_error(path_ + ": cannot be read: " +
                                     std::generic_category().message(errno != 0 ? errno : EIO));
        const std::string bytes = text.str();
        try {
            root_ = json::parse(bytes);
        } catch (const json::parse_error& error) {
            const std::size_t at = std::min(error.byte, bytes.size());
            const auto line = 1 + std::count(bytes.begin(),
                                             bytes.begin() + static_cast<std::ptrdiff_t>(at), '\n');
            throw std::runtime_error(path_ + ", line " + std::to_string(line) +
                                     ": expected JSON; found a syntax error");
        }
        if (!root_.is_object()) refuse("the file", "an object", root_);
    }

    const json& root() const noexcept { return root_; }

    [[noreturn]] void refuse(const std::string& where, const std::string& expected,
                             const json& found) const {
        std::string text = found.dump();
        if (text.size() > 60) text = text.substr(0, 60) + "...";
        throw std::runtime_error(path_ + ", " + where + ": expected " + expected + "; found " +
                                 text);
    }

    const json& member(const json& of, const std::string& name) const {
        const auto found = of.find(name);
        if (found == of.end())
            throw std::runtime_error(path_ + ": expected " + name + "; it is missing");
        return *found;
    }
    double number(const json& value, const std::string& where) const {
        if (!value.is_number() || !(value.get<double>() >= 0))
            refuse(where, "a number from 0 on", value);
        return value.get<double>();
    }
    double ratio(const json& of, const std::string& name) const {
        return of.contains(name) ? number(of[name], name) : 0;
    }
    std::string text(const json& of, const std::string& name) const {
        const json& value = member(of, name);
        if (!value.is_string()) refuse(name, "the name of a file", value);
        return value.get<std::string>();
    }
    template <class Number>
    std::vector<Number> numbers(const json& of, const std::string& name) const {
        const json& list = member(of, name);
        if (!list.is_array() || list.empty()) refuse(name, "a list of numbers", list);
        std::vector<Number> all;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::string where = name + "[" + std::to_string(i) + "]";
            const double value = number(list[i], where);
            // 2^53: beyond it a double is no exact number of keys or bytes.
            if (std::is_integral_v<Number> && (value != std::floor(value) || value > 0x1p53))
                refuse(where, "a whole number", list[i]);
            all.push_back(static_cast<Number>(value));
        }
        return all;
    }

    size_distribution sizes(const json& of, const std::string& range,
                            const std::string& probability) const {
        const auto bounds = numbers<std::uint64_t>(of, range);
        const auto weights = numbers<double>(of, probability);
        std::vector<size_distribution::part> parts;
        if (bounds.size() == weights.size()) {
            for (std::size_t i = 0; i < bounds.size(); ++i)
                parts.push_back({bounds[i], bounds[i], weights[i]});
        } else if (bounds.size() == weights.size() + 1) {
            for (std::size_t i = 0; i < weights.size(); ++i) {
                const std::uint64_t end = bounds[i + 1]; // not included, if there are any before it
                parts.push_back({bounds[i], end > bounds[i] ? end - 1 : end, weights[i]});
            }
        } else {
            throw std::runtime_error(path_ + ", " + probability + ": expected " +
                                     std::to_string(bounds.size()) + " or one less; found " +
                                     std::to_string(weights.size()));
        }
        try {
            return size_distribution(parts);
        } catch (const std::invalid_argument& error) {
            throw std::runtime_error(path_ + ", " + range + ": " + error.what());
        }
    }

  private:
    std::string path_;
    json root_;
};

} // namespace

cachelib_config read_cachelib_config(const std::string& folder) {
    const config_file file(folder + "/config.json");
    const json& test = file.member(file.root(), "test_config");
    if (!test.is_object()) file.refuse("test_config", "an object", test);

    cachelib_config config;
    config.gets = file.ratio(test, "getRatio");
    config.sets = file.ratio(test, "setRatio");
    config.deletes = file.ratio(test, "delRatio");
    config.lone_gets = file.ratio(test, "loneGetRatio");
    const double all = config.gets + config.sets + config.deletes + config.lone_gets;
    if (!(all > 0))
        file.refuse("test_config", "getRatio, setRatio, delRatio or loneGetRatio above 0", test);
    for (double* share : {&config.gets, &config.sets, &config.deletes, &config.lone_gets})
        *share /= all;
    config.key_sizes = file.sizes(test, "keySizeRange", "keySizeRangeProbability");

    const config_file popularity(folder + "/" + file.text(test, "popDistFile"));
    config.bucket_keys = popularity.numbers<std::uint64_t>(popularity.root(), "popularityBuckets");
    config.bucket_weights = popularity.numbers<double>(popularity.root(), "popularityWeights");
    if (config.bucket_keys.size() != config.bucket_weights.size())
        popularity.refuse("popularityWeights",
                          "as many numbers as popularityBuckets has, " +
                              std::to_string(config.bucket_keys.size()),
                          config.bucket_weights.size());

    const config_file values(folder + "/" + file.text(test, "valSizeDistFile"));
    config.value_sizes = values.sizes(values.root(), "valSizeRange", "valSizeRangeProbability");
    return config;
}

} // namespace workload
