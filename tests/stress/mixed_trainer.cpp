// What the stress test disturbs: ranks that make a random mix of collectives and check every result.
//
//   mixed_trainer SEED CALLS DIRECTORY [ALGORITHM]
//
// CALLS 0: until it is killed. DIRECTORY/rank.N holds the pid of rank N as soon as it has begun.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <col/col.hpp>

namespace {

using Values = std::vector<std::int32_t>;

// Element i of what a rank brings to a call.
std::int32_t input(int rank, std::size_t i, std::uint32_t call) {
  return static_cast<std::int32_t>(7 * call + 3 * static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(rank));
}
// Its sum over the ranks below `end`.
std::int32_t sum(int end, std::size_t i, std::uint32_t call) {
  const auto n = static_cast<std::uint32_t>(end);
  return static_cast<std::int32_t>(n * static_cast<std::uint32_t>(input(0, i, call)) + n * (n - 1) / 2);
}

class Trainer {
 public:
  Trainer(col::Group& group, std::string algorithm)
      : group_(group), rank_(group.rank()), size_(group.size()), algorithm_(std::move(algorithm)) {}

  void make_call(std::uint32_t call, unsigned kind, std::size_t count, int root) {
    call_ = call;
    const auto n = static_cast<std::size_t>(size_), r = static_cast<std::size_t>(rank_);
    col::Options options;
    options.algorithm = algorithm_;
    options.root = root;
    const bool is_root = rank_ == root;
    const Values in = inputs(count), all_in = inputs(n * count);
    Values out(count), all_out(n * count);
    const auto mine = [&](std::size_t i) { return sum(size_, i, call_); };
    const auto of_owner = [&](std::size_t i) { return input(static_cast<int>(i / count), i % count, call_); };
    switch (kind) {
      case 0:
        group_.allreduce(in, out, options);
        return check(out, mine);
      case 1:
        group_.reduce(in, out, options);
        return is_root ? check(out, mine) : void();
      case 2:
        if (is_root) out = in;
        group_.broadcast(out, options);
        return check(out, [&](std::size_t i) { return input(root, i, call_); });
      case 3:
        group_.allgather(in, all_out, options);
        return check(all_out, of_owner);
      case 4:
        group_.gather(in, is_root ? col::TensorView(all_out) : col::TensorView(nullptr, 0, col::DType::int32), options);
        return is_root ? check(all_out, of_owner) : void();
      case 5:
        group_.reduce_scatter(all_in, out, options);
        return check(out, [&](std::size_t i) { return mine(r * count + i); });
      case 6:
        group_.scatter(is_root ? col::ConstTensorView(all_in) : col::ConstTensorView(nullptr, 0, col::DType::int32),
                       out, options);
        return check(out, [&](std::size_t i) { return input(root, r * count + i, call_); });
      case 7:
        group_.alltoall(all_in, all_out, options);
        return check(all_out,
                     [&](std::size_t i) { return input(static_cast<int>(i / count), r * count + i % count, call_); });
      case 8:
        group_.scan(in, out, options);
        return check(out, [&](std::size_t i) { return sum(rank_ + 1, i, call_); });
      default:
        group_.barrier(options);
    }
  }

 private:
  Values inputs(std::size_t count) const {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = input(rank_, i, call_);
    return values;
  }
  template <class Wanted>
  void check(const Values& got, Wanted wanted) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] != wanted(i)) {
        throw std::runtime_error("call " + std::to_string(call_) + ": element " + std::to_string(i) + " of " +
                                 std::to_string(got.size()) + " is wrong");
      }
    }
  }

  col::Group& group_;
  const int rank_, size_;
  const std::string algorithm_;
  std::uint32_t call_ = 0;
};

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
    Trainer trainer(group, argc > 4 ? argv[4] : "");
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (std::uint32_t call = 1; calls == 0 || call <= calls; ++call) {
      const unsigned kind = below(10), size = below(20);
      const std::size_t count = size == 0 ? 1 + below(300'000) : size < 6 ? 1 + below(10'000) : 1 + below(50);
      trainer.make_call(call, kind, count, static_cast<int>(below(static_cast<unsigned>(group.size()))));
    }
    col::finalize();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
