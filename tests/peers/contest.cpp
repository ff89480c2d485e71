#include "contest.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "compute.hpp"
#include "options.hpp"
#include "pattern.hpp"
#include "start_line.hpp"
#include "statistics.hpp"
#include "wire.hpp"

namespace contest {
namespace {

class Measurement {
 public:
  Measurement(Contestant& contestant, const Options& options)
      : contestant_(contestant),
        options_(options),
        line_(options.start_line, contestant.rank(), contestant.size(), [this] { contestant_.progress(); }) {
    // One element for each rank, should the sizes be less.
    const std::size_t most = std::max(largest(options), std::size_t(contestant.size()) * sizeof(float));
    in_ = static_cast<float*>(contestant.allocate(most));
    out_ = static_cast<float*>(contestant.allocate(most));
  }

  // Whether all data was right.
  bool run() {
    bool right = true;
    for (const Options::Asked& cell : options_.cells) right = measure_cell(cell.operation, cell.bytes) && right;
    line_.meet();  // nobody leaves while another still works
    return right;
  }

 private:
  bool measure_cell(Operation operation, std::size_t bytes) {
    Cell cell = make_cell(operation, bytes, contestant_.rank(), contestant_.size());
    cell.in = in_;
    cell.out = out_;
    const std::int64_t begin = now_ns();
    if (!contestant_.prepare(cell)) {
      if (cell.rank == 0) print_missing(cell);
      return true;
    }
    std::size_t wrong = check(cell, 1);
    if (cell.computes()) choose_work(cell);
    const bool sums_pile_up = cell.operation == Operation::allreduce_in_place;
    if (sums_pile_up) clear(cell);
    // Large cells are warm from that run: the clock has been running since.
    loop(cell, {.seconds = options_.seconds / 5, .most = 100, .fewest = 0}, begin);
    if (!sums_pile_up) fill(cell, 2);
    const WireBytes before = count_wire();
    const auto samples = loop(cell, {.seconds = options_.seconds, .most_seconds = options_.most_seconds}, now_ns());
    const std::string wire = each_ranks_wire(before, samples.size());
    const auto by_rank = line_.collect(samples);
    wrong += sums_pile_up ? count_not_zero(cell) + check(cell, 2) : count_wrong(cell, 2);
    contestant_.finish(cell);
    wrong = total(wrong);
    if (cell.rank == 0)
      print_line(cell, summarize(by_rank, cell.point_to_point() ? 2 : cell.size, cell.repeats()),
                 {.wrong = wrong,
                  .spent_s = double(now_ns() - begin) * 1e-9,
                  .call_us = cell.computes() ? call_us_ : 0,
                  .wire = wire});
    return wrong == 0;
  }

  void perform(const Cell& cell) {
    constexpr std::int64_t kTests = 100;
    switch (cell.operation) {
      case Operation::then_compute:
        contestant_.run(as_allreduce(cell));
        return compute_.run(work_);
      case Operation::beside_compute:
        contestant_.start(cell);
        compute_.run(work_);
        return contestant_.wait();
      case Operation::beside_tests:
        contestant_.start(cell);
        for (std::int64_t i = 0; i < kTests; ++i) {
          compute_.run(work_ / kTests);
          contestant_.test();
        }
        return contestant_.wait();
      default:
        return contestant_.run(cell);
    }
  }

  static Cell as_allreduce(Cell cell) {
    cell.operation = Operation::allreduce;
    return cell;
  }

  // So much that it takes a little more than three times as long as the call; the same for all cells of that size, and
  // on all ranks. A count and not a time: a thread that the library lets run beside it must cost what it costs.
  void choose_work(const Cell& cell) {
    if (work_bytes_ == cell.bytes) return;
    constexpr double kTimesTheCall = 3.2;
    const auto by_rank = line_.collect(loop(as_allreduce(cell), {.seconds = options_.seconds, .most = 100}, now_ns()));
    const std::int64_t begin = now_ns();
    compute_.run(kTrialWork);
    const double ns_each = double(now_ns() - begin) / double(kTrialWork);
    if (cell.rank == 0) {
      call_us_ = summarize(by_rank, cell.size, 1).median_us;
      work_ = std::int64_t(kTimesTheCall * call_us_ * 1000 / ns_each);
    }
    work_ = line_.meet(work_);
    work_bytes_ = cell.bytes;
  }

  // Fresh input, spoiled output, one run.
  std::size_t check(const Cell& cell, unsigned seed) {
    fill(cell, seed);
    line_.meet();
    if (takes_part(cell)) perform(cell);
    const std::size_t wrong = count_wrong(cell, seed);
    line_.meet();
    return wrong;
  }

  std::vector<StartLine::Sample> loop(const Cell& cell, const Series& series, std::int64_t begin) {
    std::vector<StartLine::Sample> samples;
    samples.reserve(series.most);
    const auto goes_on = [&] { return series.goes_on(samples.size(), double(now_ns() - begin) * 1e-9); };
    while (line_.start(cell.rank == 0 ? std::int64_t(goes_on()) : 0) != 0) {
      StartLine::Sample sample;
      sample.begin_ns = now_ns();
      if (takes_part(cell)) perform(cell);
      sample.end_ns = now_ns();
      samples.push_back(sample);
    }
    return samples;
  }

  std::size_t total(std::size_t own) {
    const auto all = line_.collect({{0, std::int64_t(own)}});
    std::size_t sum = 0;
    for (const auto& rank : all) sum += std::size_t(rank[0].end_ns);
    return std::size_t(line_.meet(std::int64_t(sum)));
  }

  // Between two meetings of all ranks there is no traffic but that of the calls.
  WireBytes count_wire() {
    if (options_.wire.empty()) return {};
    line_.meet();
    const WireBytes now = wire_bytes(options_.wire);
    line_.meet();
    return now;
  }

  // On rank 0: [out,in] of each rank's interface in one call, by rank. Ranks of a host have the same one.
  std::string each_ranks_wire(WireBytes before, std::size_t calls) {
    if (options_.wire.empty()) return {};
    const WireBytes after = count_wire();
    const auto count = std::int64_t(std::max<std::size_t>(1, calls));
    const auto all = line_.collect({{(after.out - before.out) / count, (after.in - before.in) / count}});
    std::string text;
    for (const auto& rank : all)
      text +=
          (text.empty() ? "[" : ",[") + std::to_string(rank[0].begin_ns) + "," + std::to_string(rank[0].end_ns) + "]";
    return text;
  }

  static bool takes_part(const Cell& cell) { return !cell.point_to_point() || cell.rank < 2; }

  Contestant& contestant_;
  const Options& options_;
  StartLine line_;
  float* in_ = nullptr;
  float* out_ = nullptr;
  Compute compute_;
  static constexpr std::int64_t kTrialWork = 20'000;
  std::int64_t work_ = 0;  // units of Compute
  double call_us_ = 0;     // the call alone
  std::size_t work_bytes_ = 0;
};

}  // namespace

void* Contestant::allocate(std::size_t bytes) {
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = (bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, rounded, MADV_NOHUGEPAGE);
  std::fill_n(static_cast<float*>(memory), rounded / sizeof(float), 0.0f);
  return memory;
}

int measure(int argc, char** argv, const std::function<std::unique_ptr<Contestant>()>& make) {
  try {
    const Options options = parse(argc, argv);
    const std::unique_ptr<Contestant> contestant = make();
    Measurement measurement(*contestant, options);
    return measurement.run() ? 0 : 1;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    // The others may wait for this rank inside the contestant: end without its farewells.
    std::fflush(nullptr);
    _exit(1);
  }
}

}  // namespace contest
