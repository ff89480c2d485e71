// What the ranks of one job call: the same, but for one call of one rank; and what one rank does, and how it was told.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>

namespace mismatches {

enum class Kind : std::uint8_t { op, count, dtype, root, reduce_op, order, skipped, extra, algorithm, counts };
inline constexpr std::array<std::string_view, 10> kKinds = {"op",    "count",   "dtype", "root",      "reduce_op",
                                                            "order", "skipped", "extra", "algorithm", "counts"};
enum class Mode : std::uint8_t { blocking, async, mixed };
inline constexpr std::array<std::string_view, 3> kModes = {"blocking", "async", "mixed"};
enum class Way : std::uint8_t { wait, wait_for, test };  // to the end of an asynchronous call

struct Step {
  col::Collective collective = col::Collective::barrier;
  std::size_t count = 0;  // elements of a rank's block, or of the vector
  col::DType dtype = col::DType::float32;
  col::ReduceOp op = col::ReduceOp::sum;
  int root = 0;
  int algorithm = -1;  // which of those that can serve the call; -1: the library's choice
  // v-forms: counts[r] of the vector forms; counts[s * n + r] is what rank s sends to rank r in alltoallv.
  std::vector<std::size_t> counts = {};
  bool asynchronous = false;
  int group = 0;        // 0: the world; 1: another group of all ranks
  std::size_t end = 0;  // asynchronous: before which step it is waited for
  Way way = Way::wait;

  bool same_call(const Step& other) const;
  std::string text() const;
};

struct Job {
  std::uint64_t number = 0;
  std::string backend;
  int ranks = 2;
  int culprit = 0;
  Kind kind = Kind::op;
  Mode mode = Mode::blocking;
  std::size_t place = 0;     // of the call that differs
  std::vector<Step> others;  // what the others call
  std::vector<Step> culprits;
  // Only two ranks can know of the difference, and neither is the odd one.
  bool is_between_two = false;

  std::string text() const;
};

// What is asked for; empty: drawn.
struct Wishes {
  std::string backend, mode, kind;
  int groups = 1;  // 2: some calls are made in another group of all ranks
};

// The job that follows from the numbers.
Job make_job(std::uint64_t seed, std::uint64_t number, const Wishes& wishes);

// How one rank was told. In memory that the ranks' parent sees.
struct Told {
  bool has_begun = false, has_ended = false;
  bool is_refused = false;  // the call that differs is none that this rank may make
  bool has_error = false;
  col::ErrorCode code = col::ErrorCode::internal;
  int rank = -1;
  double seconds = 0;  // from the begin of the call or the wait
  std::array<char, 16> where = {};
  std::array<char, 700> text = {};
};

// One rank of a job: makes its calls, waits for them, leaves, and notes how it was told.
void play(const Job& job, int rank, col::Context& context, Told& told);

}  // namespace mismatches
