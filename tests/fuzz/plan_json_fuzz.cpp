// Texts as plan files: each is read or is an invalid_argument, in memory in proportion to its size. What is read is
// verified; whether it is right or wrong, the verifier comes to an end. A plan in chunks that is right for one count is
// right for others.
#include <optional>
#include <string>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/plan_content.hpp"
#include "target.hpp"

namespace col {
namespace {

constexpr int kMostRanks = 16;
constexpr std::size_t kMostElements = 20000;  // of all buffers that are verified

// What the file is for, in its unit. PlanFile does not tell: who has a file has a request, too.
std::optional<plan::PlanContent> read(std::string_view text) {
  const fuzz::AllocationLimit limit(fuzz::bytes_for_text(text.size()));
  try {
    return plan::read_plan(text, "fuzz");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument)
      fuzz::fail(fmt::format("not an invalid_argument: {}", error.what()));
    if (error.message().empty()) fuzz::fail("a refusal without a reason");
    return std::nullopt;
  }
}

// Nothing when the problem is too large to be verified here, or not the file's.
std::optional<Verdict> verdict(const PlanFile& file, const PlanProblem& problem) {
  std::size_t elements = 0;
  for (int rank = 0; rank < problem.size(); ++rank) {
    if (file.refuse(problem.request(rank))) return std::nullopt;
    const Plan plan = file.build(problem.request(rank));
    for (const std::size_t more : {problem.input_count(rank), problem.output_count(rank), plan.scratch, plan.wide}) {
      elements += more;
      if (more > kMostElements || elements > kMostElements) return std::nullopt;
    }
  }
  Verdict verdict = verify(problem, [&](int rank) { return file.build(problem.request(rank)); });
  if (!verdict.good && verdict.problem.empty()) fuzz::fail("a verdict without a reason");
  return verdict;
}

void check_counts(const PlanFile& file, const PlanProblem& in_chunks) {
  PlanProblem::Spec spec = in_chunks.spec();
  const std::size_t chunks = spec.count;
  const auto one_each = verdict(file, in_chunks);
  if (!one_each) return;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, chunks / 2, chunks + 1, 3 * chunks - 1}) {
    spec.count = count;
    const auto other = verdict(file, PlanProblem(spec));
    if (other && one_each->good && !other->good)
      fuzz::fail(fmt::format("right for {} elements, wrong for {}: {}", chunks, count, other->problem));
  }
}

}  // namespace
}  // namespace col

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto content = col::read(text);
  if (!content || content->problem.size() > col::kMostRanks) return 0;
  const col::PlanFile file = col::PlanFile::parse(text);
  if (content->in_chunks)
    col::check_counts(file, content->problem);
  else if (const auto why = file.refuse(content->problem.request(0)))
    col::fuzz::fail(fmt::format("refuses the problem that it was written for: {}", *why));
  else
    (void)col::verdict(file, content->problem);
  return 0;
}
