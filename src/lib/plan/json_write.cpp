// plan_to_json(): text is put together directly, so that no more than one round per rank is held besides it.
#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "core/joined.hpp"
#include "json/json_fields.hpp"
#include "plan/plan_content.hpp"

namespace col {
namespace {

using Text = fmt::memory_buffer;

template <class... Arguments>
void put(Text& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

std::string text_of(const Slice& slice) {
  if (slice.empty()) return "[]";
  return fmt::format("[\"{}\", {}, {}]", to_string(slice.buffer), slice.offset, slice.count);
}

std::string text_of(const Step& step) {
  switch (step.kind) {
    case Step::Kind::send:
      return fmt::format(R"({{"send": {}, "to": {}}})", text_of(step.left), step.peer);
    case Step::Kind::recv:
      return fmt::format(R"({{"recv": {}, "from": {}}})", text_of(step.to), step.peer);
    case Step::Kind::reduce:
      return fmt::format(R"({{"reduce": [{}, {}], "into": {}}})", text_of(step.left), text_of(step.right),
                         text_of(step.to));
    case Step::Kind::copy:
    case Step::Kind::convert:
      break;
  }
  return fmt::format(R"({{"{}": {}, "into": {}}})", to_string(step.kind), text_of(step.left), text_of(step.to));
}

// True if a step is worth writing: one without elements does something only if it is a message.
bool counts(const Step& step) {
  return step.is_message() || !step.to.empty();
}

void put_counts(Text& out, const PlanProblem::Spec& spec) {
  if (!row_of(spec.collective).has_data()) return;
  const std::span<const std::size_t> counts = spec.counts;
  if (!row_of(spec.collective).has_counts()) {
    put(out, "  \"count\": {},\n", spec.count);
  } else if (row_of(spec.collective).counts != BlockCounts::pairs) {
    put(out, "  \"counts\": [{}],\n", core::joined(counts, ", "));
  } else {
    const auto size = static_cast<std::size_t>(spec.size);
    put(out, "  \"counts\": [");
    for (std::size_t row = 0; row < size; ++row)
      put(out, "{}[{}]", row == 0 ? "" : ", ", core::joined(counts.subspan(row * size, size), ", "));
    put(out, "],\n");
  }
}

// One number when it is the same on all ranks.
void put_temporary(Text& out, std::string_view name, const std::vector<std::size_t>& sizes) {
  if (std::all_of(sizes.begin(), sizes.end(), [&](std::size_t size) { return size == sizes.front(); }))
    put(out, "  \"{}\": {},\n", name, sizes.front());
  else
    put(out, "  \"{}\": [{}],\n", name, core::joined(sizes, ", "));
}

void put_rank(Text& out, const Plan& plan) {
  put(out, "    [");
  Round round;
  for (std::size_t index = 0; index < plan.rounds; ++index) {
    plan.round(index, round);
    put(out, "{}      [", index == 0 ? "\n" : ",\n");
    bool first = true;
    for (const Step& step : round.steps()) {
      if (!counts(step)) continue;
      put(out, "{}{}", first ? "" : ", ", text_of(step));
      first = false;
    }
    put(out, "]");
  }
  put(out, "{}]", plan.rounds == 0 ? "" : "\n    ");
}

}  // namespace

std::string plan_to_json(const PlanProblem& problem, const PlanOfRank& plans, std::string_view name) {
  const PlanProblem::Spec& spec = problem.spec();
  std::vector<Plan> of_rank;
  std::vector<std::size_t> scratch, wide;
  for (int rank = 0; rank < spec.size; ++rank) {
    of_rank.push_back(plans(rank));
    scratch.push_back(of_rank.back().scratch);
    wide.push_back(of_rank.back().wide);
  }
  Text out;
  put(out, "{{\n  \"version\": {},\n  \"name\": {},\n", plan::kPlanVersion, core::json_line(name));
  put(out, "  \"collective\": \"{}\",\n  \"ranks\": {},\n", to_string(spec.collective), spec.size);
  if (row_of(spec.collective).rooted) put(out, "  \"root\": {},\n", spec.root);
  put(out, "  \"unit\": \"elements\",\n");
  put_counts(out, spec);
  put(out, "  \"in_place\": {},\n  \"widens\": {},\n  \"wide_input\": {},\n", spec.in_place, spec.widens,
      spec.wide_input);
  put_temporary(out, "scratch", scratch);
  put_temporary(out, "wide", wide);
  put(out, "  \"plans\": [\n");
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    put_rank(out, of_rank[rank]);
    put(out, "{}\n", rank + 1 < of_rank.size() ? "," : "");
  }
  put(out, "  ]\n}}\n");
  return fmt::to_string(out);
}

}  // namespace col
