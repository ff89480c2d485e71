// What follows from the options, and what can only be said about them later than on parsing.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <col/select.hpp>

#include "colcheck/engine/forms.hpp"
#include "colcheck/options.hpp"
#include "common/write_file.hpp"

namespace col::colcheck {

std::vector<const Property*> chosen_properties(const Options& options, std::span<const Property* const> known) {
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<const Property*> chosen;
  for (const Property* property : known) {
    const bool harms = property->kind == Property::Kind::fault;
    if (harms ? !options.faults : !options.fault_start.empty()) continue;
    if (!options.only.empty() && !has(options.only, property->name)) continue;
    if (!has(options.skip, property->name)) chosen.push_back(property);
  }
  return chosen;
}

std::vector<int> default_ranks(const Options& options) {
  std::vector<int> ranks = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  if (options.effort == Effort::full) ranks.push_back(16);
  return ranks;
}

std::vector<std::string> unknown_algorithms(const Options& options, const decltype(Selection::natives)& natives) {
  std::vector<std::string> unknown;
  for (const std::string& algorithm : options.algorithms) {
    if (forms_of({.algorithms = {algorithm}, .natives = natives}).empty()) unknown.push_back(algorithm);
  }
  return unknown;
}

void check_algorithms(const Options& options, const decltype(Selection::natives)& natives) {
  const auto unknown = unknown_algorithms(options, natives);
  if (unknown.empty()) return;
  const std::vector<Form> forms = forms_of({.natives = natives});
  std::vector<std::string_view> names;
  for (const Form& form : forms) {
    if (!form.algorithm.empty()) names.push_back(form.algorithm);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string_view nearest = nearest_name(unknown.front(), names);
  throw UsageError("--algo: there is no algorithm '{}' here; {}", unknown.front(),
                   nearest.empty() ? fmt::format("write some of {}", fmt::join(names, ","))
                                   : fmt::format("did you mean '{}'?", nearest));
}

void check_report_paths(const Options& options) {
  const std::array<std::pair<const char*, const std::string*>, 3> reports = {
      {{"--junit", &options.junit}, {"--json", &options.json}, {"--html", &options.html}}};
  const auto place = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(path, ignored);
  };
  for (auto report = reports.begin(); report != reports.end(); ++report) {
    const auto& [option, path] = *report;
    if (path->empty()) continue;
    try {
      tools::check_writable(*path);
    } catch (const tools::WriteError& error) {
      throw UsageError("{}: {}", option, error.what());
    }
    const auto same = std::find_if(reports.begin(), report, [&, &path = path](const auto& other) {
      return !other.second->empty() && place(*other.second) == place(*path);
    });
    if (same != report) {
      throw UsageError("{} and {} name the same file, {}; give each its own", same->first, option, *path);
    }
  }
}

}  // namespace col::colcheck
