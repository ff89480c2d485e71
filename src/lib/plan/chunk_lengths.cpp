// Why a plan in chunks that is right for one count is right for every count.
//
// Chunk k is as long as chunk k mod C, and which of the C chunks are longer by one element depends on the count. So two
// slices of as many chunks are equally long for every count when they begin at the same chunk modulo C, or are whole
// blocks of C chunks. Where that holds for every message and every local step, a count only scales the plan.
#include <map>
#include <utility>

#include <fmt/format.h>

#include "plan/plan_content.hpp"

namespace col::plan {
namespace {

std::string text_of(const Slice& slice) {
  if (slice.empty()) return "[]";
  return fmt::format("[{}, {}, {}]", to_string(slice.buffer), slice.offset, slice.count);
}

bool equally_long(const Slice& a, const Slice& b, std::size_t chunks) {
  return a.count == b.count && (a.count % chunks == 0 || a.offset % chunks == b.offset % chunks);
}

// A step's way in the file, with what says where it is.
struct StepPlace {
  std::size_t rank, round, step;
  const Slice* slice;
  std::string text() const { return fmt::format("/plans/{}/{}/{}", rank, round, step); }
};

[[noreturn]] void refuse(std::string_view source, const StepPlace& at, const std::string& what, std::size_t chunks) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: at {}: {} (chunk k of any buffer is as long as chunk k mod {}: docs/plans.md)", source,
                          at.text(), what, chunks));
}

void check_local(std::string_view source, const StepPlace& at, const Step& step, std::size_t chunks) {
  const bool reduces = step.kind == Step::Kind::reduce;
  if (equally_long(step.left, step.to, chunks) && (!reduces || equally_long(step.right, step.to, chunks))) return;
  refuse(source, at,
         fmt::format("{}{} and {} differ in length for some counts", text_of(step.left),
                     reduces ? ", " + text_of(step.right) : "", text_of(step.to)),
         chunks);
}

}  // namespace

void check_chunk_lengths(const PlanContent& content, std::string_view source) {
  const std::size_t chunks = content.problem.spec().count;
  // Messages pair in the order in which the two ranks list them; how many there are is for verify() to compare.
  struct Messages {
    std::vector<StepPlace> sent, received;
  };
  std::map<std::pair<std::size_t, std::size_t>, Messages> between;
  for (std::size_t rank = 0; rank < content.ranks.size(); ++rank) {
    const RankSteps& steps = content.ranks[rank];
    std::size_t index = 0;
    for (std::size_t round = 0; round < steps.round_ends.size(); ++round) {
      for (std::size_t i = 0; index < steps.round_ends[round]; ++index, ++i) {
        const Step& step = steps.steps[index];
        const auto peer = static_cast<std::size_t>(step.peer);
        if (step.kind == Step::Kind::send)
          between[{rank, peer}].sent.push_back({rank, round, i, &step.left});
        else if (step.kind == Step::Kind::recv)
          between[{peer, rank}].received.push_back({rank, round, i, &step.to});
        else
          check_local(source, {rank, round, i, nullptr}, step, chunks);
      }
    }
  }
  for (const auto& [ends, messages] : between) {
    for (std::size_t i = 0; i < std::min(messages.sent.size(), messages.received.size()); ++i) {
      const StepPlace& sent = messages.sent[i];
      const StepPlace& received = messages.received[i];
      if (!equally_long(*sent.slice, *received.slice, chunks))
        refuse(source, sent,
               fmt::format("sends {}, which rank {} receives as {} at {}: they differ in length for some counts",
                           text_of(*sent.slice), ends.second, text_of(*received.slice), received.text()),
               chunks);
    }
  }
}

}  // namespace col::plan
