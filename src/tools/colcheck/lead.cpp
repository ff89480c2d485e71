#include "colcheck/lead.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/exit_codes.hpp"

namespace col::colcheck {
namespace {

// A library in which calls hang costs a timeout for each: after so many, the rest will not be any different.
constexpr int kMostBrokenGroups = 25;

// Findings of several ranks about one case become one result. The lowest rank with the worst verdict has the word; a
// rank that blames another one gives way to a rank that does not.
class Merger {
 public:
  explicit Merger(std::span<const Case> cases) : heard_(cases.size()) {
    for (const Case& c : cases) results_.push_back({.c = c});
  }

  void add(int rank, const Answer::Entry& entry) {
    CaseResult& result = results_.at(entry.index);
    const Finding& finding = entry.finding;
    auto& [digest, only_blames] = heard_.at(entry.index);
    if (finding.verdict > result.verdict ||
        (finding.verdict == result.verdict && only_blames && !finding.blames_another)) {
      result.verdict = finding.verdict;
      result.text = finding.text;
      result.rank = rank;
      only_blames = finding.blames_another;
    }
    if (!finding.digest || result.verdict != Finding::Verdict::pass) return;
    if (!digest) digest = {rank, *finding.digest};
    if (digest->value == *finding.digest) return;
    result.verdict = Finding::Verdict::fail;
    result.rank = rank;
    result.text = fmt::format("its result is not, bit by bit, that of rank {}", digest->rank);
  }

  void add_all(int rank, const Answer& answer) {
    for (const Answer::Entry& entry : answer.entries) add(rank, entry);
    for (const Answer::Took& took : answer.times) results_.at(took.index).seconds = static_cast<double>(took.us) * 1e-6;
  }

  std::vector<CaseResult>& results() { return results_; }

 private:
  struct Digest {
    int rank;
    std::uint64_t value;
  };
  struct Heard {
    std::optional<Digest> digest = {};
    bool only_blames = false;
  };
  std::vector<CaseResult> results_;
  std::vector<Heard> heard_;
};

}  // namespace

std::vector<Answer> Lead::give(const Order& order) {
  // By then every rank has had as much time as this one needed; what it may still be in is a call or two.
  const Duration limit = 3 * options_.timeout + std::chrono::seconds(30);
  std::optional<Answer> own;
  try {
    std::vector<Answer> answers;
    for (const std::string& text : ranks_.give(encode(order), limit, [&](std::uint64_t number, const std::string&) {
           own = carry_out(context_, order, number, options_);
           return encode(*own);
         }))
      answers.push_back(decode_answer(text));
    return answers;
  } catch (const Error& error) {
    if (!own) throw;
    const bool died = error.code() != ErrorCode::timeout;
    Merger merger(order.cases);
    for (const Answer::Entry& entry : own->entries) merger.add(0, entry);
    merger.results().resize(own->done);
    throw RunEnded{died ? tools::exit_code::kRankDied : tools::exit_code::kRankTimeout, error.what(),
                   std::move(merger.results())};
  }
}

std::vector<RankGpu> Lead::look() {
  std::vector<RankGpu> gpus;
  for (Answer& answer : give({.kind = Order::Kind::look})) gpus.push_back(std::move(answer.gpu));
  return gpus;
}

std::optional<Natives> Lead::probe(const std::string& backend, int ranks, std::string& why) {
  std::vector<Answer> answers = give({.kind = Order::Kind::probe, .backend = backend, .ranks = ranks});
  for (const Answer& answer : answers) {
    if (answer.trouble.empty()) continue;
    why = answer.trouble;
    return std::nullopt;
  }
  return std::move(answers[0].natives);
}

std::vector<CaseResult> Lead::run(std::span<const Case> cases) {
  std::vector<CaseResult> all;
  while (!cases.empty()) {
    const Order order{.kind = Order::Kind::run,
                      .devices = cases[0].devices,
                      .backend = cases[0].backend,
                      .ranks = cases[0].ranks,
                      .cases = {cases.begin(), cases.end()}};
    const std::vector<Answer> answers = give(order);
    Merger merger(cases);
    std::size_t done = cases.size();  // up to the case that broke the group
    for (int rank = 0; rank < order.ranks; ++rank) {
      const Answer& answer = answers[static_cast<std::size_t>(rank)];
      if (!answer.trouble.empty()) {
        // Without a group none of them can be told from the others.
        for (std::size_t i = 0; i < cases.size(); ++i)
          merger.add(rank, {i, Finding::fail("no group: " + answer.trouble)});
      } else {
        done = std::min(done, answer.done);
        merger.add_all(rank, answer);
      }
    }
    for (std::size_t i = 0; i < done; ++i) all.push_back(std::move(merger.results()[i]));
    cases = cases.subspan(done);
    if (!cases.empty() && ++broken_groups_ == kMostBrokenGroups)
      throw RunEnded{tools::exit_code::kWrongData,
                     fmt::format("gave up after {} cases that broke their group", kMostBrokenGroups), std::move(all)};
  }
  return all;
}

std::vector<CaseResult> Lead::share(std::span<const Case> cases, int ranks) {
  const std::vector<Answer> answers =
      give({.kind = Order::Kind::share, .ranks = ranks, .cases = {cases.begin(), cases.end()}});
  Merger merger(cases);
  for (std::size_t rank = 0; rank < answers.size(); ++rank) merger.add_all(static_cast<int>(rank), answers[rank]);
  return std::move(merger.results());
}

}  // namespace col::colcheck
