#include "colrun/spellings.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "colrun/option_table.hpp"

namespace col::colrun {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// Options of mpirun and mpiexec that mean the same under another name.
constexpr std::array kSame = {
    Pair{"-np", "--np"},
    Pair{"-host", "--host"},
    Pair{"-hosts", "--host"},
    Pair{"--hosts", "--host"},
    Pair{"-hostfile", "--hostfile"},
    Pair{"-machinefile", "--hostfile"},
    Pair{"--machinefile", "--hostfile"},
    Pair{"--tag-output", "--label"},
    Pair{"-prepend-rank", "--label"},
    Pair{"--timestamp-output", "--timestamp"},
};

constexpr std::array kInstead = {
    Pair{"--oversubscribe", "colrun allows more ranks than processors; leave it out"},
    Pair{"--allow-run-as-root", "colrun does not mind; leave it out"},
    Pair{"--output-filename", "write --output file=PATTERN, such as file=run/%R.%s"},
    Pair{"--log-dir", "write --output file=PATTERN, such as file=run/%R.%s"},
    Pair{"--redirects", "write --output file=PATTERN, such as file=run/%R.%s"},
    Pair{"--rdzv-conf", "write --rdzv-timeout TIME"},
    Pair{"--genv", "write -x NAME=VALUE"},
    Pair{"-genv", "write -x NAME=VALUE"},
    Pair{"--export", "ranks inherit the environment; write -x NAME=VALUE for what differs"},
    Pair{"--no-python", "colrun runs any program; leave it out"},
    Pair{"-m", "write the program out: python3 -m MODULE"},
    Pair{"--module", "write the program out: python3 -m MODULE"},
    Pair{"-N", "write -n N, which counts the ranks of each node, or --nnodes N for nodes"},
    Pair{"-ppn", "write -n N, which counts the ranks of each node"},
    Pair{"-t", "write --timeout TIME, --tee or --timestamp"},
};

template <std::size_t kSize>
std::optional<std::string_view> look_up(const std::array<Pair, kSize>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Pair& pair) { return pair.first == name; });
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

// torchrun takes underscores too.
std::string with_dashes(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

}  // namespace

std::string own_spelling(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const std::string rest = argument.substr(name.size());
  if (const auto same = look_up(kSame, name)) return std::string(*same) + rest;
  return name.starts_with("--") ? with_dashes(name) + rest : argument;
}

std::optional<std::string_view> instead_of(std::string_view name) {
  return look_up(kInstead, name);
}

}  // namespace col::colrun
