// What the stress test disturbs: ranks that make a random mix of collectives and check every result.
//
//   mixed_trainer SEED CALLS DIRECTORY [ALGORITHM]
//
// CALLS 0: until it is killed. DIRECTORY/rank.N holds the pid of rank N as soon as it has begun.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>

#include "support/collectives.hpp"

namespace {

using enum col::Collective;

constexpr std::array kKinds = {allreduce,      reduce,  broadcast, allgather, gather,
                               reduce_scatter, scatter, alltoall,  scan,      barrier};

// Element i of what a rank brings to a call.
std::int32_t input(int rank, std::size_t i, std::uint32_t call) {
  return static_cast<std::int32_t>(7 * call + 3 * static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(rank));
}

void make_call(col::Group& group, std::uint32_t call, const col::tools::ReferenceCall& what,
               std::string_view algorithm) {
  const auto value = [&](int rank, std::size_t i) { return input(rank, i, call); };
  auto sides = col::test::sides_of(what, group.rank(), std::int32_t{0}, value);
  // What only the root has.
  if (what.collective == scatter && group.rank() != what.root) sides.in.clear();
  if (what.collective == gather && group.rank() != what.root) sides.before = sides.want = {};
  std::vector<std::int32_t> out = sides.before;
  col::test::run_by_name(group, {what.collective, sides.in, out, {}, {}}, {.root = what.root, .algorithm = algorithm});
  const auto wrong = std::mismatch(out.begin(), out.end(), sides.want.begin()).first;
  if (wrong == out.end()) return;
  throw std::runtime_error("call " + std::to_string(call) + ": element " + std::to_string(wrong - out.begin()) +
                           " of " + std::to_string(out.size()) + " is wrong");
}

void tell_pid(const std::string& directory) {
  const char* const rank = std::getenv("COL_RANK");
  if (rank == nullptr) throw std::runtime_error("start it with colrun");
  const std::string name = directory + "/rank." + rank;
  std::ofstream(name + ".new") << ::getpid() << "\n";
  if (std::rename((name + ".new").c_str(), name.c_str()) != 0) throw std::runtime_error("cannot write " + name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fputs("usage: mixed_trainer SEED CALLS DIRECTORY [ALGORITHM]\n", stderr), 2;
  try {
    std::mt19937 random(static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)));
    const std::uint64_t calls = std::strtoull(argv[2], nullptr, 10);
    tell_pid(argv[3]);
    col::Group group = col::init();
    const std::string algorithm = argc > 4 ? argv[4] : "";
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (std::uint32_t call = 1; calls == 0 || call <= calls; ++call) {
      const unsigned kind = below(10), size = below(20);
      const std::size_t count = size == 0 ? 1 + below(300'000) : size < 6 ? 1 + below(10'000) : 1 + below(50);
      const int root = static_cast<int>(below(static_cast<unsigned>(group.size())));
      make_call(group, call, {.collective = kKinds[kind], .size = group.size(), .root = root, .count = count},
                algorithm);
    }
    col::finalize();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
