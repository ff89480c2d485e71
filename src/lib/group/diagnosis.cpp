#include "group/diagnosis.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/duration.hpp"
#include "group/failure.hpp"

namespace col::group {
namespace {

using std::chrono::milliseconds;

// How long those who see two different calls wait for a majority to tell which is the odd one.
constexpr Duration kVotingTime = milliseconds(300);
// How long a broken connection waits for the rank that knows the cause to publish it.
constexpr Duration kExplainTime = milliseconds(250);

std::string board_key(const Operation& operation, int rank) {
  return fmt::format("board/{}/{}", operation.board, rank);
}

// A store that is gone (the job is being ended) tells nothing: the wait goes on to its deadline or the abort flag.
std::optional<std::string> peek(Store& store, const std::string& key) {
  try {
    return store.get(key);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

void clear_board(Surroundings& surroundings) noexcept {
  try {
    for (const std::string& key : surroundings.own_board_keys) surroundings.scope->erase(key);
  } catch (const std::exception&) {  // see peek()
  }
  surroundings.own_board_keys.clear();
}

Diagnosis::Diagnosis(Surroundings& surroundings, std::vector<Operation> operations)
    : surroundings_(surroundings), operations_(std::move(operations)), seen_(operations_.size()) {}

void Diagnosis::on_slow(Duration waited) {
  post();
  look_for_failure();
  look_for_lost_peer();
  look_for_mismatch(waited);
}

void Diagnosis::post() {
  if (posted_) return;
  posted_ = true;
  // The previous text stays until now, and not only until its operation ended: others may still ask who had come.
  clear_board(surroundings_);
  try {
    for (const Operation& operation : operations_) {
      std::string key = board_key(operation, surroundings_.rank);
      surroundings_.scope->set(key, operation.text);
      surroundings_.own_board_keys.push_back(std::move(key));
    }
  } catch (const std::exception&) {  // see peek()
  }
}

void Diagnosis::look_for_failure() const {
  if (const auto failure = published_failure(*surroundings_.scope)) throw *failure;
}

std::optional<RankActivity> Diagnosis::lost_peer() const {
  const auto& control = surroundings_.control;
  if (!control) return std::nullopt;
  for (int i = 0; i < control->local_ranks(); ++i) {
    const RankRecord& record = control->record(i);
    if (!record.lost()) continue;
    RankActivity activity = record.read();
    if (group_rank_of(activity.rank) >= 0) return activity;
  }
  return std::nullopt;
}

void Diagnosis::look_for_lost_peer() const {
  if (const auto cause = known_cause()) throw *cause;
}

// The cause that the control page can prove: the launcher's word, or a process that is gone.
std::optional<Error> Diagnosis::known_cause() const {
  if (surroundings_.control) {
    if (const auto cause = surroundings_.control->abort_cause())
      return Error(cause->code, cause->message, surroundings_.group, group_rank_of(cause->rank));
  }
  const auto lost = lost_peer();
  if (!lost) return std::nullopt;
  const int rank = group_rank_of(lost->rank);
  return Error(ErrorCode::peer_lost,
               fmt::format("rank {} (pid {}) has died{}; its own output says why", rank, lost->pid,
                           lost->op.empty() ? "" : fmt::format(" after it entered {}", lost->op)),
               surroundings_.group, rank);
}

void Diagnosis::look_for_mismatch(Duration waited) {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    for (const int rank : operation.counterparts) {
      if (seen_[i].count(rank) != 0) continue;
      if (auto text = peek(*surroundings_.scope, board_key(operation, rank))) seen_[i].emplace(rank, std::move(*text));
    }
    const bool differs = std::any_of(seen_[i].begin(), seen_[i].end(),
                                     [&](const auto& entry) { return entry.second != operation.text; });
    if (!differs) continue;
    if (!first_difference_) first_difference_ = waited;
    auto texts = seen_[i];
    texts.emplace(surroundings_.rank, operation.text);
    judge(operation, texts, waited);
  }
}

// Throws mismatch as soon as it is clear who the odd ranks are, or when waiting longer will not make it clearer.
void Diagnosis::judge(const Operation& operation, const std::map<int, std::string>& texts, Duration waited) const {
  std::map<std::string, std::vector<int>> callers;
  for (const auto& [rank, text] : texts) callers[text].push_back(rank);
  const auto most = std::max_element(callers.begin(), callers.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::size_t participants = operation.counterparts.size() + 1;
  const bool majority = 2 * most->second.size() > participants;
  const bool complete = texts.size() == participants;
  if (!majority && !complete && waited - *first_difference_ < kVotingTime) return;

  int odd = -1;
  std::vector<std::string> calls;
  for (const auto& [text, ranks] : callers) {
    if (majority && text != most->first && odd < 0) odd = ranks.front();
    calls.push_back(fmt::format("{} {} called {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), text));
  }
  const std::string verdict = odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : std::string();
  throw Error(ErrorCode::mismatch,
              fmt::format("{}{} (operation {}); {}", verdict, fmt::join(calls, "; "), operation.sequence,
                          operation.collective ? "every rank must make the same calls in the same order"
                                               : "a send and its recv must have the same count and dtype"),
              surroundings_.group, odd);
}

bool Diagnosis::has_arrived(const Operation& operation, int rank) const {
  if (peek(*surroundings_.scope, board_key(operation, rank))) return true;
  const auto& control = surroundings_.control;
  if (!control || !operation.collective) return false;
  for (int i = 0; i < control->local_ranks(); ++i) {
    const RankActivity activity = control->record(i).read();
    if (activity.state == RankActivity::State::absent || group_rank_of(activity.rank) != rank) continue;
    // Sequence numbers count collectives; the name comparison is cut as the record cuts it.
    return surroundings_.group.starts_with(activity.group) && activity.sequence >= operation.sequence;
  }
  return false;
}

void Diagnosis::on_timeout(Duration budget) {
  post();
  look_for_failure();
  look_for_lost_peer();
  look_for_mismatch(Deadline::kMaxBudget);
  std::vector<int> absent;
  const Operation& first = operations_.front();
  for (const Operation& operation : operations_) {
    for (const int rank : operation.counterparts) {
      if (!has_arrived(operation, rank)) absent.push_back(rank);
    }
  }
  const std::string limit = core::format_duration(budget);
  if (absent.empty())
    throw Error(ErrorCode::timeout,
                fmt::format("{} timed out after {}: all ranks have entered it, but the data did not arrive in time; "
                            "raise COL_TIMEOUT if it is merely large",
                            first.text, limit),
                surroundings_.group);
  throw Error(ErrorCode::timeout,
              fmt::format("{} timed out after {}: {} {} did not enter it (operation {}); look at what {} doing, or "
                          "raise COL_TIMEOUT",
                          first.text, limit, absent.size() == 1 ? "rank" : "ranks", fmt::join(absent, ", "),
                          first.sequence, absent.size() == 1 ? "that rank is" : "they are"),
              surroundings_.group, absent.front());
}

Error Diagnosis::explain(const Error& symptom) {
  const bool may_be_knock_on =
      symptom.code() == ErrorCode::peer_lost || symptom.code() == ErrorCode::aborted || symptom.code() == ErrorCode::io;
  if (!may_be_knock_on) return Error(symptom.code(), symptom.message(), surroundings_.group, symptom.rank());
  const Deadline until = Deadline::after(kExplainTime);
  for (;;) {
    if (const auto cause = known_cause()) return *cause;
    if (const auto failure = published_failure(*surroundings_.scope)) return *failure;
    if (until.expired()) return Error(symptom.code(), symptom.message(), surroundings_.group, symptom.rank());
    try {  // wakes as soon as a peer publishes, and looks at the control page in between
      surroundings_.scope->wait_for("failure", std::min<Duration>(milliseconds(10), until.remaining()));
    } catch (const Error&) {
    }
  }
}

int Diagnosis::group_rank_of(int global_rank) const {
  for (const PeerInfo& peer : surroundings_.peers) {
    if (peer.global_rank == global_rank) return peer.rank;
  }
  return -1;
}

}  // namespace col::group
