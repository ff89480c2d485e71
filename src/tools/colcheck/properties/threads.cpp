// Several threads of every rank, each with a group of its own: what they do at the same time does not mix.
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

constexpr std::uint64_t kThreadsOfRank = 3;
constexpr std::size_t kLength = 12;

// Case::variant: where the threads have their groups from.
enum Origin : std::uint64_t {
  kMadeBefore,    // by the rank's first thread
  kMadeInThread,  // each makes and destroys its own, all at the same time
  kOriginCount
};

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  if (!selection.wants_algorithm("")) return;
  std::size_t number = 0;
  for (const std::string& backend : selection.backends) {
    const auto ranks = ranks_for_sequences(selection);
    for (int i = 0; i < (quick ? 5 : 2 * kPrimitiveCount); ++i) {
      Case c;
      c.property = "threads";
      c.backend = backend;
      c.ranks = in_turn(ranks, number);
      c.variant = number / 2 % kOriginCount;
      c.primitive = static_cast<Primitive>((number * 7) % kPrimitiveCount);
      c.seed = mix(selection.seed, 54, ++number);
      all.push_back(std::move(c));
    }
  }
}

// What one thread does; what is wrong with its data.
std::string work(Context& context, Group group, const GroupSpec& spec, const Case& c, std::uint64_t thread) {
  const bool own = !group;
  if (own) group = context.init_group(spec);
  // The first thread has the primitive of the case, the others have what comes after it.
  const auto about = static_cast<Primitive>((static_cast<std::size_t>(c.primitive) + 5 * thread) % kPrimitiveCount);
  std::string problem = run_program(group, {.about = about}, mix(c.seed, 1, thread), kLength);
  if (own) context.destroy_group(spec.name);
  return problem;
}

Finding run(Rank& rank, const Case& c) {
  std::vector<Group> groups(kThreadsOfRank);
  std::vector<std::string> problems(kThreadsOfRank);
  std::vector<std::exception_ptr> failures(kThreadsOfRank);
  if (c.variant == kMadeBefore) {
    for (Group& group : groups) group = rank.make_group();
  }
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < kThreadsOfRank; ++t) {
      threads.emplace_back([&, t] {
        const GroupSpec spec{.name = fmt::format("{}/thread {}", rank.group().name(), t),
                             .rank = rank.rank(),
                             .world_size = rank.size(),
                             .backend_name = c.backend,
                             .timeout = rank.timeout()};
        try {
          problems[t] = work(rank.context(), groups[t], spec, c, t);
        } catch (...) {
          failures[t] = std::current_exception();
        }
      });
    }
  }
  for (Group& group : groups) rank.drop(group);
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (std::uint64_t t = 0; t < kThreadsOfRank; ++t) {
    if (!problems[t].empty()) return Finding::fail(fmt::format("thread {}: {}", t, problems[t]));
  }
  return Finding::pass();
}

}  // namespace

const Property kThreads{"threads", "threads of a rank that have a group each work at the same time, and all is right",
                        Property::Kind::group, &cases, &run};

}  // namespace col::colcheck
