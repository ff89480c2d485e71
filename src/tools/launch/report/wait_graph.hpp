// The ranks of a job as nodes, with an edge from each that waits to those that it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launch/report/job_story.hpp"

namespace col::launch {

// How a rank is for those that wait for it.
enum class RankState { outside, inside, waiting, stopped, left, dead };

struct WaitEdge {
  std::size_t from, to;  // indices of ranks
  bool by_call;  // `to` is known to lack what `from` waits for; otherwise `from` has only found that it is held up
};

// A message that is not the one that is waited for.
struct WrongTag {
  std::size_t receiver, sender;
  std::vector<int> tags;  // that were sent
  bool sender_waits;      // the sender waits, too
};

class WaitGraph {
 public:
  explicit WaitGraph(const JobStory& story);

  std::size_t size() const { return story_.ranks.size(); }
  const JobStory& story() const { return story_; }
  const RankStory& rank(std::size_t index) const { return story_.ranks[index]; }
  RankState state(std::size_t index) const { return states_[index]; }
  bool waits(std::size_t index) const { return states_[index] == RankState::waiting; }
  const std::vector<WaitEdge>& edges() const { return edges_; }
  // The ranks that it waits for, ascending.
  std::vector<int> awaited_by(std::size_t index) const;
  // In seconds; 0: not known.
  double since(std::size_t index) const;
  // The number of the last collective that a rank has called in a group; nothing if it is not known to be in it.
  std::optional<std::uint64_t> progress(std::size_t index, const std::string& group) const;
  // Whether it has started that collective, and not ended it.
  bool has_open(std::size_t index, const std::string& group, std::uint64_t sequence) const;

  // Ranks that nobody else is the reason for, and that others wait for.
  std::vector<std::size_t> ends() const;
  // All that lead to it.
  std::set<std::size_t> behind(std::size_t end) const;
  // The ranks of a circle, each waiting for the next; empty if there is none.
  std::vector<std::size_t> circle() const;
  std::optional<WrongTag> wrong_tag() const;
  // Two ranks whose calls should be the same, and are not: the one to blame first.
  std::optional<std::pair<std::size_t, std::size_t>> different() const;

 private:
  std::optional<std::size_t> index_of(int rank) const;
  std::uint64_t token(std::size_t index, const std::string& group) const;
  void look_at_call(std::size_t from);
  void look_at_message(std::size_t from);
  void look_at_entry(std::size_t from);
  void add(std::size_t from, std::size_t to, bool by_call) { edges_.push_back({from, to, by_call}); }
  std::optional<WrongTag> wrong_tag_of(std::size_t receiver, std::size_t sender) const;

  const JobStory& story_;
  std::vector<RankState> states_;
  std::map<int, std::size_t> indices_;
  std::vector<WaitEdge> edges_;
};

bool is_message(const RankActivity& activity);
bool is_join(const RankActivity& activity);  // the making of a group

}  // namespace col::launch
