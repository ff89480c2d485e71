// Jobs of three ranks that hang, each in its way, for what coljob says of them: the table that colcheck's drill `why`
// reads, under any launcher.
//
//   planted_hang --list       a line for each: name, cause, culprits, and words that the sentence must have, between
//   tabs planted_hang NAME DIR     one rank of it; creates DIR/<rank> when the rank comes to the place
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <col/col.hpp>

#include "colcheck/faults/hangs.hpp"

namespace {

using col::colcheck::Hang;
using col::launch::Why;

constexpr int kRanks = 3;

// No deed: its last rank does not come to the making of the group.
const Hang kNotJoined{
    "not_joined", Why::Cause::own_code, {2}, "in the making of group 'default': rank 2 .* has not joined", {}};

void list(const Hang& hang) {
  const std::vector<int> all = {0, 1, 2};
  fmt::print("{}\t{}\t{}\t{}\n", hang.name, to_string(hang.cause),
             fmt::join(hang.culprits.empty() ? all : hang.culprits, ","), hang.words);
}

const Hang& named(std::string_view name) {
  for (const Hang& hang : col::colcheck::hangs()) {
    if (hang.name == name) return hang;
  }
  if (name == kNotJoined.name) return kNotJoined;
  throw std::runtime_error("no such hang");
}

col::Group join(int rank) {
  const char* const url = std::getenv("PLANTED_STORE");
  if (url == nullptr) return col::init();
  static col::Context context(col::ContextSpec::meet(col::open_store(url), rank, kRanks, "planted"));
  return context.init_group({.rank = rank, .world_size = kRanks});
}

void run(const Hang& hang, const std::string& directory) {
  const int rank = std::atoi(std::getenv("COL_RANK"));
  const auto say_there = [&] { std::ofstream(directory + "/" + std::to_string(rank)); };
  if (&hang == &kNotJoined) say_there();
  if (&hang != &kNotJoined || rank != 2) {
    col::Group world = join(rank);
    say_there();
    do_part(hang, world, col::Device::Type::cpu);
  }
  for (;;) ::pause();  // in its own code
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && argv[1] == std::string_view("--list")) {
      for (const Hang& hang : col::colcheck::hangs()) list(hang);
      list(kNotJoined);
      return 0;
    }
    if (argc != 3) return 2;
    run(named(argv[1]), argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
