#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "core/text_file.hpp"
#include "plan/plan_content.hpp"

namespace col {

struct PlanFile::Content : plan::PlanContent {};

namespace {

using plan::PlanContent;
using plan::RankSteps;

// True if blocks of `counts` are one after the other without gaps, as those of a file are.
bool packed(std::span<const std::size_t> counts, std::span<const std::size_t> displacements) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0 && displacements[i] != next) return false;
    next += counts[i];
  }
  return true;
}

std::optional<std::string> refuse_blocks(const PlanRequest& planned, const PlanRequest& called) {
  if (planned.count != called.count)
    return fmt::format("the plan is for {} elements, the call has {}", planned.count, called.count);
  if (!std::ranges::equal(planned.in_counts, called.in_counts) ||
      !std::ranges::equal(planned.out_counts, called.out_counts))
    return "the plan is for other counts than the call's";
  if (!packed(called.in_counts, called.in_displacements) || !packed(called.out_counts, called.out_displacements))
    return "the plan is for blocks that lie one after the other, the call's displacements leave gaps";
  return std::nullopt;
}

std::optional<std::string> refuse_elements(const PlanProblem& problem, const PlanRequest& request) {
  const PlanRequest planned = problem.request(request.rank);
  if (row_of(problem.spec().collective).has_data()) {
    if (auto why = refuse_blocks(planned, request)) return why;
  }
  if (planned.in_place != request.in_place)
    return planned.in_place ? "the plan is for calls in place, the call has two buffers"
                            : "the plan is for an input and an output of their own, the call is in place";
  if (planned.widens != request.widens)
    return planned.widens ? "the plan widens partial results (narrow floats), the call does not"
                          : "the call widens partial results (narrow floats), the plan does not";
  if (planned.wide_input != request.wide_input)
    return planned.wide_input ? "the plan takes a wide input, the call has one of the user's type"
                              : "the call has a wide input, the plan takes one of the user's type";
  return std::nullopt;
}

std::optional<std::string> refuse_chunks(const PlanContent& content, const PlanRequest& request) {
  const plan::Cut cut(request.count, content.problem.spec().count);
  // Every rank is looked at, so that all of them give one answer.
  for (const RankSteps& rank : content.ranks) {
    if (cut.fits(rank.scratch) && cut.fits(rank.wide)) continue;
    return fmt::format("its temporary buffers would have more than {} elements", plan::kMostElements);
  }
  return std::nullopt;
}

// Adds the steps of one round; in chunks, those that move an element of this count.
struct FileRounds {
  std::shared_ptr<const PlanContent> content;  // shared with the file and with the plans of other calls
  const RankSteps* rank;
  plan::Cut cut;

  Slice scaled(const Slice& slice) const { return slice.empty() ? Slice{} : cut.elements(slice); }

  void operator()(std::size_t index, Round& round) const {
    const std::size_t begin = index == 0 ? 0 : rank->round_ends[index - 1];
    for (std::size_t i = begin; i < rank->round_ends[index]; ++i) {
      Step step = rank->steps[i];
      if (content->in_chunks) {
        const bool signal = step.left.empty() && step.to.empty();
        step.left = scaled(step.left);
        step.right = scaled(step.right);
        step.to = scaled(step.to);
        if (!signal && step.left.empty() && step.to.empty()) continue;
      }
      round.add(step);
    }
  }
};

}  // namespace

PlanFile::PlanFile(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

PlanFile PlanFile::parse(std::string_view text) {
  return PlanFile(std::make_shared<const Content>(Content{plan::read_plan(text, "plan")}));
}

PlanFile PlanFile::load(const std::string& path) {
  const std::string text = core::read_text_file(path, "plan");
  return PlanFile(std::make_shared<const Content>(Content{plan::read_plan(text, fmt::format("plan '{}'", path))}));
}

const std::string& PlanFile::name() const noexcept {
  return content_->name;
}

Collective PlanFile::collective() const noexcept {
  return content_->problem.spec().collective;
}

int PlanFile::ranks() const noexcept {
  return content_->problem.size();
}

std::size_t PlanFile::chunks() const noexcept {
  return content_->in_chunks ? content_->problem.spec().count : 0;
}

std::uint64_t PlanFile::hash() const noexcept {
  return content_->hash;
}

std::optional<std::string> PlanFile::refuse(const PlanRequest& request) const {
  if (collective() != request.collective)
    return fmt::format("the plan is for {}, the call is {}", to_string(collective()), to_string(request.collective));
  if (ranks() != request.size) return fmt::format("the plan is for {} ranks, the group has {}", ranks(), request.size);
  const int root = content_->problem.spec().root;
  if (row_of(collective()).rooted && root != request.root)
    return fmt::format("the plan is for root {}, the call has root {}", root, request.root);
  return content_->in_chunks ? refuse_chunks(*content_, request) : refuse_elements(content_->problem, request);
}

Plan PlanFile::build(const PlanRequest& request) const {
  const RankSteps& rank = content_->ranks[static_cast<std::size_t>(request.rank)];
  const plan::Cut cut(request.count, content_->in_chunks ? content_->problem.spec().count : 1);
  Plan plan{.rounds = rank.round_ends.size(), .scratch = rank.scratch, .wide = rank.wide};
  if (content_->in_chunks) {
    plan.scratch = cut.begin(rank.scratch);
    plan.wide = cut.begin(rank.wide);
  }
  plan.generate = FileRounds{content_, &rank, cut};
  return plan;
}

}  // namespace col
