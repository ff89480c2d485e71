#include "colcheck/option_texts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <col/select.hpp>

#include "common/option_values.hpp"

namespace col::colcheck {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::array<std::string_view, 3> kBackends = {"shm", "gloo", "nccl"};

// How an error about a name goes on.
std::string hint(std::string_view misspelt, const Names& names, const std::string& otherwise) {
  const std::string_view nearest = nearest_name(misspelt, names);
  return nearest.empty() ? otherwise : fmt::format("did you mean '{}'?", nearest);
}

Names names_of(std::span<const Property* const> known) {
  Names names;
  for (const Property* property : known) names.push_back(property->name);
  return names;
}

Duration duration_of(std::string_view option, const std::string& text) {
  const auto duration = tools::parse_duration(text);
  if (duration) return *duration;
  throw UsageError(fmt::format("{} takes a time such as 90s, 10m or 1h (720h at most), not '{}'", option, text));
}

std::vector<std::string> list_of(std::string_view option, const std::string& text) {
  auto list = tools::parse_list(text);
  if (!list) throw UsageError(fmt::format("{} takes names with single commas between them, not '{}'", option, text));
  return std::move(*list);
}

void check_names(std::string_view option, std::string_view kind, const std::vector<std::string>& list,
                 const Names& names, const std::string& otherwise) {
  for (const std::string& name : list) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw UsageError(fmt::format("{}: there is no {} '{}'; {}", option, kind, name, hint(name, names, otherwise)));
  }
}

void read_backends(const OptionTexts& texts, Options& options) {
  const Names backends(kBackends.begin(), kBackends.end());
  if (!texts.backends.empty() && texts.backends != "all") {
    options.backends = list_of("--backend", texts.backends);
    check_names("--backend", "backend", options.backends, backends, "write all, or some of shm,gloo,nccl");
  }
  if (!texts.require.empty()) {
    Names names = backends;
    names.insert(names.end(), {"cpu", "cuda"});
    options.require = list_of("--require", texts.require);
    check_names("--require", "backend or device", options.require, names, "write some of shm,gloo,nccl,cpu,cuda");
  }
  if (texts.device == "cpu") options.device = Options::Device::cpu;
  if (texts.device == "cuda") options.device = Options::Device::cuda;
  if (!texts.device.empty() && texts.device != "all" && options.device == Options::Device::all) {
    throw UsageError(fmt::format("--device takes all, cpu or cuda, not '{}'", texts.device));
  }
  if (options.device == Options::Device::cpu && options.backends == std::vector<std::string>{"nccl"})
    throw UsageError("--device cpu leaves nothing of --backend nccl, which needs GPUs; leave one of them out");
}

void read_properties(const OptionTexts& texts, std::span<const Property* const> known, Options& options) {
  const Names names = names_of(known);
  const std::string otherwise = "colcheck --list names them all";
  if (!texts.only.empty()) options.only = list_of("--only", texts.only);
  if (!texts.skip.empty()) options.skip = list_of("--skip", texts.skip);
  check_names("--only", "property", options.only, names, otherwise);
  check_names("--skip", "property", options.skip, names, otherwise);
  for (const Property* property : known) {
    const bool wanted = std::find(options.only.begin(), options.only.end(), property->name) != options.only.end();
    if (wanted && property->kind == Property::Kind::fault && !options.faults) {
      throw UsageError(fmt::format("--only: '{}' harms ranks on purpose; add --faults to allow it", property->name));
    }
  }
  if (chosen_properties(options, known).empty()) {
    throw UsageError("--only and --skip leave no property to check; colcheck --list names them all");
  }
}

void read_algorithms(const OptionTexts& texts, Options& options) {
  if (texts.algorithms.empty()) return;
  options.algorithms = list_of("--algo", texts.algorithms);
  for (const std::string& algorithm : options.algorithms) {
    try {
      AlgorithmSpec::parse(algorithm);
    } catch (const Error&) {
      throw UsageError(fmt::format("--algo takes names such as ring or knomial:radix=3, not '{}'", algorithm));
    }
  }
}

void read_repro(const OptionTexts& texts, std::span<const Property* const> known, Options& options) {
  try {
    options.repro = parse_token(texts.repro);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--repro: {}", error.what()));
  }
  check_names("--repro", "property", {options.repro->property}, names_of(known), "colcheck --list names them all");
  if (options.repro->ranks > tools::kMaxRanks) {
    throw UsageError(fmt::format("--repro: np={} is more than {} ranks", options.repro->ranks, tools::kMaxRanks));
  }
}

}  // namespace

void read_texts(const OptionTexts& texts, std::span<const Property* const> known, Options& options) {
  if (!texts.soak.empty()) options.soak = duration_of("--soak", texts.soak);
  if (!texts.timeout.empty()) options.timeout = duration_of("--timeout", texts.timeout);
  if (!texts.ranks.empty()) {
    options.ranks = tools::parse_ranks(texts.ranks);
    if (!options.ranks) {
      throw UsageError(fmt::format("--np takes numbers and ascending ranges from 1 to {}, such as 1-9,16, not '{}'",
                                   tools::kMaxRanks, texts.ranks));
    }
  }
  if (!texts.seed.empty()) {
    options.seed = tools::parse_seed(texts.seed);
    if (!options.seed) {
      throw UsageError(
          fmt::format("--seed takes a whole number of at most 64 bits, as 42 or 0x2a, not '{}'", texts.seed));
    }
  }
  read_backends(texts, options);
  read_properties(texts, known, options);
  const auto chosen = chosen_properties(options, known);
  if (options.device == Options::Device::cuda &&
      std::all_of(chosen.begin(), chosen.end(), [](const Property* p) { return p->on_gpus == OnGpus::nothing; }))
    throw UsageError("--device cuda leaves no property to check: none of those asked for is about GPUs");
  read_algorithms(texts, options);
  if (!texts.repro.empty()) read_repro(texts, known, options);
}

}  // namespace col::colcheck
