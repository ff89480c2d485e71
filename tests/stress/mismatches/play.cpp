#include "plan.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "support/collectives.hpp"

namespace mismatches {
namespace {

using col::Collective;
using Clock = std::chrono::steady_clock;

template <std::size_t N>
void copy(std::array<char, N>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), N - 1);
}

// A step with its memory, which lives as long as the job.
struct Part {
  Step step;
  std::vector<std::byte> in = {}, out = {};
  std::vector<std::size_t> in_counts = {}, out_counts = {};
  std::optional<col::Work> work = {};
};

class Player {
 public:
  Player(const Job& job, int rank, col::Context& context, Told& told)
      : rank_(rank), steps_(rank == job.culprit ? job.culprits : job.others), context_(context), told_(told) {
    parts_.reserve(steps_.size());
    for (const Step& step : steps_) parts_.push_back({.step = step});
    for (const char* const name : {"default", "second"})
      groups_.push_back(
          context.init_group({.name = name, .rank = rank, .world_size = job.ranks, .backend_name = job.backend}));
  }

  void play() {
    told_.has_begun = true;
    try {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
          if (parts_[k].step.end == i) end(parts_[k]);
        }
        timed("call", [&] { begin(parts_[i]); });
      }
      // In an order of this rank's own.
      for (std::size_t i = 0; i < parts_.size(); ++i)
        end(parts_[(i + static_cast<std::size_t>(rank_)) % parts_.size()]);
      timed("finalize", [&] { context_.finalize(); });
    } catch (const col::Error& error) {
      if (error.code() == col::ErrorCode::invalid_argument) told_.is_refused = true;
      told_.has_error = true;
      told_.code = error.code();
      told_.rank = error.rank();
      told_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
      copy(told_.text, error.what());
    }
    told_.has_ended = true;
  }

 private:
  void timed(std::string_view where, const std::function<void()>& work) {
    copy(told_.where, where);
    begun_ = Clock::now();
    work();
  }

  void end(Part& part) {
    if (!part.work) return;
    timed("wait", [&] {
      switch (part.step.way) {
        case Way::wait:
          return part.work->wait();
        case Way::wait_for:
          while (!part.work->wait_for(std::chrono::milliseconds(20))) continue;
          return;
        case Way::test:
          while (!part.work->test()) continue;
          return;
      }
    });
    part.work.reset();
  }

  static std::string algorithm(col::Group& group, const Step& step) {
    int number = 0;
    for (const std::string& name : group.algorithms(step.collective)) {
      try {
        const col::Options options{.op = step.op, .root = step.root, .algorithm = name};
        group.explain(step.collective, step.count * col::size_of(step.dtype), step.dtype, options);
        if (number++ == step.algorithm) return name;
      } catch (const col::Error&) {  // not for this call
      }
    }
    throw col::Error(col::ErrorCode::invalid_argument, "there is no other algorithm");
  }

  void begin(Part& part) {
    const Step& step = part.step;
    col::Group& group = groups_[static_cast<std::size_t>(step.group)];
    col::Options options{.op = step.op, .root = step.root};
    std::string name;
    if (step.algorithm >= 0) {
      name = algorithm(group, step);
      options.algorithm = name;
    }
    const int ranks = group.size();
    auto lengths = col::test::lengths_of({step.collective, ranks, step.root, step.count, step.counts}, rank_);
    if (col::row_of(step.collective).counts == col::BlockCounts::root && step.root != rank_)
      lengths.in_counts = lengths.out_counts = {};
    part.in_counts = std::move(lengths.in_counts);
    part.out_counts = std::move(lengths.out_counts);
    part.in.resize(lengths.in * col::size_of(step.dtype));
    part.out.resize(lengths.out * col::size_of(step.dtype));
    const col::Call call{step.collective,
                         {part.in.data(), lengths.in, step.dtype},
                         {part.out.data(), lengths.out, step.dtype},
                         part.in_counts,
                         part.out_counts};
    if (step.asynchronous)
      part.work = group.start(call, options);
    else
      group.run(call, options);
  }

  const int rank_;
  const std::vector<Step>& steps_;
  col::Context& context_;
  Told& told_;
  std::vector<col::Group> groups_;
  std::vector<Part> parts_;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace

void play(const Job& job, int rank, col::Context& context, Told& told) {
  // Its memory outlives the context: after an error of one group, calls of the other one may be under way. The process
  // ends without running destructors.
  static std::optional<Player> player;
  player.emplace(job, rank, context, told).play();
}

}  // namespace mismatches
