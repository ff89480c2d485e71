// Chooses the algorithm of a call, and makes its plan for this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/group.hpp>
#include <col/plan.hpp>
#include <col/select.hpp>

#include "group/call/call_settings.hpp"
#include "group/call/checks.hpp"
#include "group/select/choose.hpp"

namespace col::group {

// Wishes of a call about its algorithm, in addition to the request.
struct CallWishes {
  std::string_view algorithm = {};  // Options::algorithm
  bool asynchronous = false;
  bool compress = false;
};

inline CallWishes wishes_of(const Options& options, bool asynchronous) {
  return {options.algorithm, asynchronous, options.compress};
}

// Comes before a plan that needs to know what the other ranks of the node know (Algorithm::neighbour_counts), or how
// many contributions each rank gives (PlanRequest::contributions).
struct CountsExchange {
  std::vector<std::size_t> sent;  // by this rank
  std::size_t received = 0;       // how many such numbers it gets
  std::function<std::shared_ptr<const Plan>(std::vector<std::size_t> received)> plan_of;
};

// Never changes once made. It lives as long as the dispatcher.
struct Decision {
  std::string algorithm;                  // as text: "knomial:radix=8"
  std::string reason = {};                // the rule that fired, or who asked for it, if somebody wanted to know
  std::shared_ptr<const Plan> plan = {};  // shared with executions; null: a native entry of the backend
  std::shared_ptr<const CountsExchange> exchange = {};  // if set, `plan` only moves its counts, and the plan follows
  std::string native = {};                              // its name
  bool starts = false;                                  // it need not block
  DType dtype = DType::uint8;                           // type of what is moved
  bool widens = false, wide_input = false;              // as in the plan's request
  std::vector<std::size_t> shares = {};                 // of a native entry in the tree's order: what each rank gives
  std::size_t length = 0;                               // as CallForm::length
  // The numbers of the algorithm for the flight recorder and for a timeline; set when they are first needed, with the
  // group's lock held.
  mutable std::optional<std::uint8_t> recorded = {};
  mutable std::optional<std::uint16_t> traced = {};
};

class Dispatcher {
 public:
  // `natives` and `settings` must outlive it. `nodes` is what hosts_of() returns. `starts_natives`: whether calls that
  // must not block may run by natives that need not.
  Dispatcher(Shape shape, std::vector<int> nodes, std::string backend, std::span<const NativeEntry> natives,
             bool starts_natives, const CallSettings& settings);

  // Requires: check() has passed. Equal calls get the same decision object, found without allocating. Throws
  // invalid_argument or unavailable if the requested algorithm cannot serve the call, and invalid_argument if this rank
  // gives another share of the contributions than before.
  std::shared_ptr<const Decision> decide(const Request& request, const CallWishes& wishes);

  // True if one of the backend's own algorithms can serve the call, or is asked for by name. All ranks get the same
  // answer.
  bool can_run_natively(const Request& request, const CallWishes& wishes) const;
  // Why the backend's own collective of that name cannot serve a call that asks for it; nothing if it can.
  std::optional<std::string> objection(const Request& request, const CallWishes& wishes, std::string_view own) const;

  // The decision in a sentence, for Group::explain(). Stores nothing, so other threads may decide meanwhile. `own`:
  // what the channel says about its own collectives; null if it has no more to say.
  std::string explain(const Request& request, const CallWishes& wishes, const backend::ReasonOps* own) const;

  // The names that CallWishes::algorithm may have: first the built-in ones, then the backend's own.
  std::vector<std::string> names(Collective collective) const;

 private:
  // All that a decision depends on.
  struct Key {
    Collective collective;
    std::size_t count;
    int root;
    DType dtype;
    bool widens, wide_input, in_place, minmax, commutative, arithmetic, built_in, deterministic, asynchronous;
    std::string_view algorithm;     // of the wishes; owned by the entry once it is kept
    bool is_tree = false;           // Order::tree, and so below
    bool knows_shares = false;      // of all ranks, or nothing moves
    std::size_t length = 0;         // elements of one contribution; 0: nothing moves, or this rank does not know it
    std::size_t given = 0;          // elements of this rank
    std::size_t contributions = 0;  // of all ranks, if the call says it
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    std::string algorithm;  // what key.algorithm points to
    Key key;
    std::shared_ptr<const Decision> decision;
  };
  struct Case;       // one call while it is decided
  struct OwnedPlan;  // with the arrays that its request points to

  Key key_of(const Request& request, const CallWishes& wishes) const;
  void add_contributions(const Request& request, Key& key) const;
  // The number that each rank contributes to a call in the tree's order. Requires: key.knows_shares. Throws
  // invalid_argument if this rank gives something else than that.
  std::vector<std::size_t> known_shares(const Key& key) const;
  // Null: the ranks have not told theirs of so many. What it points to stays as it is.
  const std::vector<std::size_t>* told(std::size_t contributions) const;
  std::shared_ptr<const CountsExchange> exchange_of_shares(const Algorithm& algorithm, const Case& c,
                                                           std::shared_ptr<const OwnedPlan> owned) const;
  std::shared_ptr<const Decision> make(const Request& request, const Key& key, Reasons reasons) const;
  Choice choose_for(const Case& c, Reasons reasons) const;
  std::optional<std::string> why_not(const AlgorithmSpec& spec, const Case& c, bool by_name) const;
  std::optional<std::string> why_not_native(const NativeEntry& entry, const Case& c, bool by_name) const;
  std::optional<std::string> why_not_file(const AlgorithmSpec& spec, const Case& c) const;
  const NativeEntry* native(Collective collective, std::string_view name) const;
  const PlanFile& file(const std::string& path) const;

  Shape shape_;
  std::vector<int> nodes_;
  std::string backend_;
  std::span<const NativeEntry> natives_;
  bool starts_natives_;
  const CallSettings& settings_;
  std::vector<std::unique_ptr<Entry>> entries_;  // few; an entry that is used moves to the front
  mutable std::map<std::string, PlanFile> files_;
  // The shares that ranks have told one another in the first blocking call of so many contributions. All ranks make the
  // same blocking calls one after the other, so they all have it from the next call on; others may be under way before
  // that.
  mutable std::map<std::size_t, std::vector<std::size_t>> shares_;
  mutable std::mutex telling_;  // held to look into them, or add to them: another thread may explain
};

}  // namespace col::group
