#include "group/join/family.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/hash.hpp"
#include "core/joined.hpp"
#include "group/call/checks.hpp"
#include "group/call/operation.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/diagnosis/most_common.hpp"
#include "group/diagnosis/world_ranks.hpp"
#include "group/join/rendezvous.hpp"
#include "group/staging/staging.hpp"

namespace col::group {
namespace {

// How long those who hear two different lists wait for others, to tell which is the odd one.
constexpr Duration kOpinionTime = std::chrono::milliseconds(300);

// How the remaining ranks of a group agree, through the store, on the ranks that they leave out. The group itself may
// be broken: only its scope is used.
//
//   every rank that stays    writes whom it leaves out:  shrink/<number>/<rank> = words
//                            reads what the other ranks that stay write, and compares
//   a rank with an error     publishes it, and all end with the first one
class ShrinkAgreement {
 public:
  // `number`: the number of the agreement, equal on all ranks. `staying`: in rank order, with this rank.
  ShrinkAgreement(Surroundings& surroundings, std::uint64_t number, std::vector<int> staying);

  // Writes `words`, and returns when all ranks that stay have written the same. Throws, on all ranks that are still in
  // it: mismatch (who writes what), timeout (who has not come), peer_lost (a rank that should stay has died), the error
  // given to publish(), and those of wait.check() and the store.
  void reach(const std::string& words, WaitContext& wait);
  // Ends the agreement for all ranks with this error. Returns the error that came first.
  Error publish(const Error& error) noexcept;

 private:
  void collect();
  void compare(const std::string& words, WaitContext& wait);
  std::vector<int> missing() const;
  void look_for_dead(const std::vector<int>& absent) const;

  std::string key_of(std::size_t rank) const;

  Surroundings& surroundings_;
  const std::uint64_t number_;
  const std::shared_ptr<Store> failures_;  // the place of the first error; shared, because adapters keep it
  const std::vector<int> staying_;
  std::vector<std::string> heard_;  // by rank in the group; empty: nothing so far
};

ShrinkAgreement::ShrinkAgreement(Surroundings& surroundings, std::uint64_t number, std::vector<int> staying)
    : surroundings_(surroundings),
      number_(number),
      failures_(make_prefix_store(surroundings.scope, fmt::format("shrink/{}", number))),
      staying_(std::move(staying)),
      heard_(surroundings.peers.size()) {}

std::string ShrinkAgreement::key_of(std::size_t rank) const {
  return fmt::format("shrink/{}/{}", number_, rank);
}

// Those that are left out, too: one that is alive, and has another opinion, is heard.
void ShrinkAgreement::collect() {
  for (std::size_t rank = 0; rank < heard_.size(); ++rank) {
    if (!heard_[rank].empty()) continue;
    if (auto words = surroundings_.scope->get(key_of(rank))) heard_[rank] = *std::move(words);
  }
}

std::vector<int> ShrinkAgreement::missing() const {
  std::vector<int> absent;
  std::copy_if(staying_.begin(), staying_.end(), std::back_inserter(absent),
               [this](int rank) { return heard_[static_cast<std::size_t>(rank)].empty(); });
  return absent;
}

void ShrinkAgreement::look_for_dead(const std::vector<int>& absent) const {
  const auto& control = surroundings_.control;
  for (int i = 0; control && i < control->local_ranks(); ++i) {
    if (!control->record(i).lost()) continue;
    const int rank = surroundings_.rank_of(control->record(i).read().rank);
    if (std::find(absent.begin(), absent.end(), rank) == absent.end()) continue;
    throw Error(
        ErrorCode::peer_lost,
        fmt::format("rank {} has died, and is not among those that shrink() leaves out; leave it out as well", rank),
        surroundings_.group, rank);
  }
}

void ShrinkAgreement::compare(const std::string& words, WaitContext& wait) {
  const auto differs = [&](const std::string& other) { return !other.empty() && other != words; };
  if (std::none_of(heard_.begin(), heard_.end(), differs)) return;
  const Deadline voting = Deadline::after(std::min<Duration>(kOpinionTime, wait.deadline().remaining()));
  // Also for those that this rank leaves out: they may be alive, and have another opinion.
  for (;;) {
    const auto silent = std::find(heard_.begin(), heard_.end(), "");
    if (silent == heard_.end() || voting.expired()) break;
    doze(*surroundings_.scope, key_of(static_cast<std::size_t>(silent - heard_.begin())), wait);
    collect();
  }
  std::vector<int> ranks;
  std::vector<std::string> opinions, parts;
  for (std::size_t rank = 0; rank < heard_.size(); ++rank) {
    if (heard_[rank].empty()) continue;
    ranks.push_back(static_cast<int>(rank));
    opinions.push_back(heard_[rank]);
    parts.push_back(fmt::format("rank {} {}", rank, heard_[rank]));
  }
  const std::string& common = opinions[most_common(opinions)];
  const auto votes = static_cast<std::size_t>(std::count(opinions.begin(), opinions.end(), common));
  int odd = -1;
  if (2 * votes > opinions.size()) {
    const auto found = std::find_if(opinions.begin(), opinions.end(), [&](const auto& one) { return one != common; });
    odd = ranks[static_cast<std::size_t>(found - opinions.begin())];
  }
  throw Error(ErrorCode::mismatch,
              fmt::format("shrink: {}{}; all that stay must leave out the same ranks, under the same name",
                          odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "", core::joined(parts, "; ")),
              surroundings_.group, odd);
}

void ShrinkAgreement::reach(const std::string& words, WaitContext& wait) {
  const std::string own = key_of(static_cast<std::size_t>(surroundings_.rank));
  surroundings_.scope->set(own, words);
  surroundings_.own_board_keys.push_back(own);  // goes with the group: somebody may look at it late
  for (;;) {
    if (const auto failure = published_failure(*failures_, surroundings_.rank)) throw *failure;
    collect();
    compare(words, wait);
    const std::vector<int> absent = missing();
    if (absent.empty()) return;
    look_for_dead(absent);
    wait.describe(fmt::format("{} to shrink group '{}'", ranks_text(absent), surroundings_.group));
    try {
      wait.check();
    } catch (const Error& error) {
      const int about = error.code() == ErrorCode::timeout ? (absent.size() == 1 ? absent.front() : -1)
                                                           : surroundings_.rank_of(error.rank());
      throw Error(error.code(), error.message(), surroundings_.group, about);
    }
    doze(*surroundings_.scope, key_of(static_cast<std::size_t>(absent.front())), wait);
  }
}

Error ShrinkAgreement::publish(const Error& error) noexcept {
  return publish_failure(*failures_, error, surroundings_.rank);
}

}  // namespace

// What every rank says, by rank. Requires for this and the next three: this thread has a Use.
template <class T>
std::vector<T> Family::exchange(const T& own) {
  std::vector<T> all(static_cast<std::size_t>(core_.size()));
  Request request;
  request.collective = Collective::allgather;
  request.in = {&own, sizeof own, DType::uint8};
  request.out = {all.data(), all.size() * sizeof own, DType::uint8};
  collectives_.run_over(&lanes_.on_host(), request, {});
  return all;
}

std::vector<Family::Wish> Family::exchange_wishes(Wish own) {
  const Lane& lane = lanes_.own();
  own.can_connect = (lane.can.common_memory != nullptr && lane.can.common_memory->has_pool()) ||
                    (lane.can.drafts != nullptr && lane.can.drafts->can_draft());
  own.uses_gpu = current_gpu().has_value();
  own.can_split = lanes_.own().can.device != nullptr && lanes_.own().can.device->can_split();
  return exchange(own);
}

// A rank that has the name already cannot join, and the others must not wait for it.
void Family::require_free(std::string_view call, const std::vector<Wish>& wishes, const std::string& name) const {
  const auto holder = std::find_if(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.taken; });
  if (holder == wishes.end()) return;
  const auto rank = static_cast<int>(holder - wishes.begin());
  throw core_.error_about(rank, ErrorCode::already_initialized,
                          fmt::format("{}: rank {} is in a group {} already; choose another name", call, rank, name));
}

// What the ranks of a child know of one another by this group. Every rank of this group calls it.
Connected Family::relatives(std::span<const int> ranks, const std::vector<Wish>& wishes) {
  Connected known;
  // As this group's token is equal on no others, so is this one.
  known.token = core::Hash().add(core_.token()).add(++connectings_).add(ranks.empty() ? -1 : ranks.front()).value();
  known.backend = lanes_.backend();
  known.origin = core_.surroundings().scope;
  known.peers.reserve(ranks.size());
  for (const int rank : ranks) {
    known.peers.push_back(core_.surroundings().peers[static_cast<std::size_t>(rank)]);
    known.peers.back().rank = static_cast<int>(known.peers.size()) - 1;
    known.may_stage |= wishes[static_cast<std::size_t>(rank)].uses_gpu;
  }
  return known;
}

// Every rank of this group calls it; null on those that join no other rank.
std::unique_ptr<Channel> Family::split_channel(std::span<const int> ranks, const std::string& child,
                                               const Connected& known) {
  const auto self = std::find(ranks.begin(), ranks.end(), core_.rank());
  const bool joins = self != ranks.end() && ranks.size() > 1;
  ConnectRequest request;
  if (joins) {
    request.group = child;
    request.rank = static_cast<int>(self - ranks.begin());
    request.size = static_cast<int>(ranks.size());
    request.store = make_prefix_store(core_.surroundings().scope, fmt::format("split/{:016x}", known.token));
    request.peers = known.peers;
    request.token = known.token;
    request.is_high_priority_stream = is_high_priority_stream_;
    request.settings = nccl_settings_;
  }
  const std::string what = fmt::format("the split for '{}'", child);
  // It hears where the split has failed: NCCL says nothing of that to the others.
  Diagnosis diagnosis(core_.surroundings(), {{.text = what, .collective = false, .counterparts = {}}});
  WaitContext wait = core_.waiting(Deadline::after(core_.timeout()), &diagnosis);
  try {
    return lanes_.own().can.device->split(joins ? ranks : std::span<const int>(), request, wait);
  } catch (...) {
    core_.fail_with_current(diagnosis, what);
  }
}

// Ranks that have heard of all others may use the new group already, and wait there for this one.
void Family::give_up(const std::string& child, const Connected& known, int rank, const Error& why) const {
  if (!host_.scope_of || core_.surroundings().store_is_mute()) return;
  Surroundings there;
  there.group = child;
  there.rank = rank;
  there.peers = known.peers;
  publish_failure(*host_.scope_of(child, known.token), left_because(there, rank, why), rank);
}

// In memory that the ranks of this group have in common: the first of `ranks` says where. No channel if there is no
// room.
void Family::reserve(const ConnectRequest& request, std::span<const int> ranks, Connected& known) {
  backend::CommonMemoryOps& memory = *lanes_.own().can.common_memory;
  std::optional<std::uint64_t> place;
  if (request.rank == 0) {
    try {
      if (auto reserved = memory.reserve(request)) {
        place = reserved->place;
        known.channel = std::move(reserved->channel);
      }
    } catch (const std::bad_alloc&) {  // the others must hear something
    }
  }
  const auto places = exchange(place);
  if (request.rank < 0) return;
  place = places[static_cast<std::size_t>(ranks.front())];
  if (place && request.rank != 0) known.channel = memory.open(*place, request);
}

// By what each of `ranks` says. No draft if one of them cannot.
void Family::draft(const ConnectRequest& request, std::span<const int> ranks, Connected& known) {
  struct Words {
    std::uint8_t length = 0;
    std::array<char, backend::Draft::kMostWords> text{};
  };
  Words own;
  std::unique_ptr<backend::Draft> begun;
  if (request.rank >= 0) {
    try {
      begun = lanes_.own().can.drafts->draft(request, ranks);
      if (begun != nullptr)
        own.length = static_cast<std::uint8_t>(begun->words().copy(own.text.data(), own.text.size()));
    } catch (const std::exception&) {  // the others must hear something; in the store, this rank says why
    }
  }
  const auto all = exchange(own);
  if (request.rank < 0) return;
  std::vector<std::string> words;
  for (const int rank : ranks) {
    const Words& said = all[static_cast<std::size_t>(rank)];
    if (said.length == 0) return;
    words.emplace_back(said.text.data(), said.length);
  }
  begun->hear(words);
  known.draft = std::move(begun);
}

// Connects `ranks` by what connects this group, if that can. Every rank of this group calls it. Otherwise they need not
// meet either, if they do not run on GPUs, but have to connect through the store. Nothing on a rank that is not listed.
std::optional<Connected> Family::connect(std::span<const int> ranks, const std::string& child,
                                         const std::vector<Wish>& wishes) {
  Connected known = relatives(ranks, wishes);
  const bool on_host = core_.device().type == Device::Type::cpu && lanes_.backend() != "self";
  const auto self = std::find(ranks.begin(), ranks.end(), core_.rank());
  const bool joins = self != ranks.end() && ranks.size() > 1;
  if (std::all_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.can_split; })) {
    known.on_gpu = split_channel(ranks, child, known);
    if (!joins) return {};
    return known;
  }
  if (std::all_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.can_connect; })) {
    ConnectRequest request;
    request.group = child;
    request.rank = joins ? static_cast<int>(self - ranks.begin()) : -1;
    request.size = static_cast<int>(ranks.size());
    request.token = known.token;
    try {
      if (lanes_.own().can.common_memory != nullptr) {
        reserve(request, ranks, known);
      } else {
        request.peers = known.peers;
        request.same_host = share_loopback(known.peers);
        draft(request, ranks, known);
      }
    } catch (const Error& error) {
      if (joins) give_up(child, known, request.rank, error);
      throw;
    }
  } else if (!on_host) {
    return {};
  }
  if (!joins) return {};
  return known;
}

Group Family::split(std::string_view kind, int color, int key) {
  std::vector<int> ranks;
  std::string child;
  std::optional<Connected> connected;
  {
    const Use use(access_, core_.timeout());
    core_.check_name("default");
    // Counted by every rank, also by one that joins nothing.
    child = fmt::format("{}/{}{}", core_.name(), kind, ++children_);
    const std::string base = child;
    if (kind == "split") child += fmt::format(".{}", color);
    const auto wishes = exchange_wishes({.color = color,
                                         .order = static_cast<std::uint64_t>(static_cast<std::int64_t>(key)),
                                         .taken = color >= 0 && has_group(child)});
    require_free(kind, wishes, fmt::format("of the name that the call gives it ('{}…')", base));
    for (int rank = 0; color >= 0 && rank < core_.size(); ++rank) {
      if (wishes[static_cast<std::size_t>(rank)].color == color) ranks.push_back(rank);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      const auto key_of = [&](int rank) {
        return static_cast<std::int64_t>(wishes[static_cast<std::size_t>(rank)].order);
      };
      return key_of(a) < key_of(b);
    });
    connected = connect(ranks, child, wishes);
  }
  return make(ranks, std::move(child), std::move(connected), false);
}

std::vector<Family::Wish> Family::ask(std::span<const int> ranks, const std::string& name) {
  const Use use(access_, core_.timeout());
  core_.check_name("default");
  const bool joins = std::find(ranks.begin(), ranks.end(), core_.rank()) != ranks.end();
  core::Hash hash;
  hash.add(name).add(ranks.size());
  for (const int rank : ranks) hash.add(rank);
  return exchange_wishes({.order = hash.value(), .taken = joins && has_group(name)});
}

void Family::check_list(std::span<const int> ranks, const std::string& child) const {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  for (const int member : sorted) check_peer(member, "subgroup: rank", core_.shape());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw core_.own_error(ErrorCode::invalid_argument, fmt::format("subgroup '{}': a rank is listed twice in [{}]",
                                                                   child, core::joined(ranks, ", ")));
}

Group Family::subgroup(std::span<const int> ranks, std::string child, const std::vector<Wish>& wishes) {
  require_free("subgroup", wishes, fmt::format("'{}'", child));
  check_list(ranks, child);
  std::optional<Connected> connected;
  {
    const Use use(access_, core_.timeout());
    connected = connect(ranks, child, wishes);
  }
  return make(ranks, std::move(child), std::move(connected), true);
}

// Makes the group of `ranks`, on each of them. An empty handle on a rank that is not among them. `is_named`: by the
// user, so that somebody may look for the name.
Group Family::make(std::span<const int> ranks, std::string child, std::optional<Connected> connected, bool is_named) {
  const auto self = std::find(ranks.begin(), ranks.end(), core_.rank());
  if (self == ranks.end()) return {};
  GroupSpec spec{.name = std::move(child),
                 .rank = static_cast<int>(self - ranks.begin()),
                 .world_size = static_cast<int>(ranks.size()),
                 .timeout = core_.timeout(),
                 .is_high_priority_stream = is_high_priority_stream_,
                 .nccl_settings = nccl_settings_,
                 .is_kept = is_named};
  if (lanes_.backend() != "self") spec.backend_name = lanes_.backend();
  // A group of GPUs is made on that which the thread has made current, whatever this rank's number in it.
  const bool elsewhere = core_.device().type == Device::Type::cuda && current_gpu() != core_.device().index;
  const auto current = elsewhere ? gpus().make_current(core_.device().index) : nullptr;
  std::vector<int> members;
  for (const int member : ranks) members.push_back(core_.world_rank(member));
  return host_.make_group(spec, std::move(members), std::move(connected));
}

std::vector<int> Family::staying(std::span<const int> excluded) const {
  std::vector<int> leaving(excluded.begin(), excluded.end());
  std::sort(leaving.begin(), leaving.end());
  for (const int member : leaving) check_peer(member, "shrink: rank", core_.shape());
  if (std::adjacent_find(leaving.begin(), leaving.end()) != leaving.end())
    throw core_.own_error(ErrorCode::invalid_argument,
                          fmt::format("shrink: a rank is listed twice in [{}]", core::joined(excluded, ", ")));
  if (std::binary_search(leaving.begin(), leaving.end(), core_.rank()))
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("shrink: this is rank {}, which is to be left out; it does not call shrink(), but destroys "
                    "the group",
                    core_.rank()));
  std::vector<int> ranks;
  for (int member = 0; member < core_.size(); ++member) {
    if (!std::binary_search(leaving.begin(), leaving.end(), member)) ranks.push_back(member);
  }
  return ranks;
}

// Returns the name of the group to be made.
std::string Family::agree_to_shrink(std::span<const int> excluded, const std::vector<int>& ranks, std::string child) {
  const Use use(access_, core_.timeout());
  const std::uint64_t number = ++shrinks_;
  if (child.empty()) child = fmt::format("{}/shrink{}", core_.name(), number);
  std::vector<int> leaving(excluded.begin(), excluded.end());
  std::sort(leaving.begin(), leaving.end());
  const std::string whom = leaving.empty() ? "nobody" : ranks_text(leaving);
  ShrinkAgreement agreement(core_.surroundings(), number, ranks);
  try {
    if (has_group(child))
      throw core_.own_error(
          ErrorCode::already_initialized,
          fmt::format("shrink: rank {} is in a group '{}' already; choose another name", core_.rank(), child));
    WaitContext wait = core_.waiting(Deadline::after(core_.timeout()));
    agreement.reach(fmt::format("leaves out {} for '{}'", whom, child), wait);
  } catch (const Error& error) {
    WaitContext::take_interruption();  // as below
    const Error first = agreement.publish(error);
    throw with_world_rank(Error(first.code(), first.message(), core_.name(), first.rank(), first.world_rank()),
                          core_.surroundings().peers);
  } catch (...) {
    WaitContext::take_interruption();  // it is on its way, and is no cause of what comes later
    throw;
  }
  return child;
}

Group Family::shrink(std::span<const int> excluded, std::string child) {
  const std::vector<int> ranks = staying(excluded);
  const bool is_named = !child.empty();
  return make(ranks, agree_to_shrink(excluded, ranks, std::move(child)), {}, is_named);
}

}  // namespace col::group
