#include "group/diagnosis/announced.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/job/announced_calls.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "group/diagnosis/failure.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

// Between two looks at what other hosts say.
constexpr Duration kBeat = std::chrono::seconds(1);

std::string announced_key(int rank) {
  return fmt::format("announced/{}", rank);
}

std::vector<int> first_ranks(const std::vector<int>& hosts) {
  std::vector<int> first;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] == static_cast<int>(first.size())) first.push_back(static_cast<int>(rank));
  }
  return first.size() > 1 ? first : std::vector<int>();
}

}  // namespace

Announced::Announced(Surroundings& of)
    : of_(of),
      stream_(core::Hash().add(of.token).add("announced").value()),
      difference_(core::Hash().add(of.token).add("difference").value()),
      records_(of.peers.size()),
      hosts_(first_ranks(hosts_of(of.peers))),
      next_beat_(core::Clock::now() + kBeat) {}

void Announced::collective(std::uint64_t number, std::uint64_t hash) noexcept {
  last_ = number;
  hashes_[number % kKept] = hash;
  if (of_.record != nullptr) core::AnnouncedCalls::announce(*of_.record, stream_, number, hash);
}

void Announced::message(int peer, std::uint64_t stream, std::uint64_t number, std::uint64_t hash,
                        std::function<Operation()> describe) {
  if (of_.record == nullptr) return;
  const std::uint64_t own = core::Hash().add(of_.token).add(stream).value();
  if (messages_.size() == kKept) messages_.pop_front();
  messages_.push_back({peer, own, number, hash, std::move(describe)});
  core::AnnouncedCalls::announce(*of_.record, own, number, hash);
}

bool Announced::differ() noexcept {
  if (differ_) return true;
  try {
    for (int rank = 0; !differ_ && rank < of_.size(); ++rank) {
      const RankRecord* const other = rank != of_.rank ? record_of(rank) : nullptr;
      differ_ = other != nullptr && differs_from(*other);
    }
    differ_ = differ_ || has_other_messages() || hosts_differ();
    if (differ_) tell();
  } catch (const std::exception&) {  // out of memory, or the store is gone: the next look may see it
  }
  return differ_;
}

// A rank keeps its place on the page as long as the group lives.
const RankRecord* Announced::record_of(int rank) {
  const RankRecord*& known = records_[static_cast<std::size_t>(rank)];
  const PeerInfo& peer = of_.peers[static_cast<std::size_t>(rank)];
  const PeerInfo& own = of_.peers[static_cast<std::size_t>(of_.rank)];
  if (known == nullptr && peer.boot_id == own.boot_id) known = of_.record_of(peer.global_rank);
  return known;
}

// By the last collective that both have announced: its hash is of all before, too. A rank that is further behind
// compares by itself.
bool Announced::differs_from(const RankRecord& other) const noexcept {
  if (core::AnnouncedCalls::announced(other, difference_, 1)) return true;
  for (std::uint64_t number = last_; number > 0 && number + kKept > last_; --number) {
    const auto theirs = core::AnnouncedCalls::announced(other, stream_, number);
    if (theirs) return *theirs != hashes_[number % kKept];
  }
  return false;
}

bool Announced::has_other_messages() {
  for (auto message = messages_.begin(); message != messages_.end();) {
    const RankRecord* const peer = record_of(message->peer);
    const auto theirs = peer != nullptr ? core::AnnouncedCalls::announced(*peer, message->stream, message->number)
                                        : std::optional<std::uint64_t>();
    if (theirs && *theirs != message->hash) return true;
    message = theirs ? messages_.erase(message) : message + 1;
  }
  return false;
}

// ---- Between hosts

// Each compares with the next one: a difference shows between some two.
bool Announced::hosts_differ() {
  const auto own = std::find(hosts_.begin(), hosts_.end(), of_.rank);
  if (own == hosts_.end() || of_.store_is_mute() || core::Clock::now() < next_beat_) return false;
  next_beat_ = core::Clock::now() + kBeat;
  const store::CallLimit limit(kStoreTime);
  const int next = own + 1 == hosts_.end() ? hosts_.front() : *(own + 1);
  of_.scope->set(announced_key(of_.rank), encode());
  const auto theirs = of_.scope->get(announced_key(next));
  return theirs && differs_from(*theirs);
}

// "7 hash 6 hash …"
std::string Announced::encode() const {
  std::string text;
  for (std::uint64_t number = last_; number > 0 && number + kKept > last_; --number)
    text += fmt::format("{} {} ", number, hashes_[number % kKept]);
  return text;
}

bool Announced::differs_from(const std::string& calls) const {
  const char* at = calls.data();
  const char* const end = at + calls.size();
  const auto next = [&] {
    std::uint64_t value = 0;
    at = std::from_chars(at, end, value).ptr;
    if (at != end) ++at;
    return value;
  };
  while (at != end) {
    const std::uint64_t number = next(), hash = next();
    if (number == 0) return false;
    if (number <= last_ && number + kKept > last_) return hash != hashes_[number % kKept];
  }
  return false;
}

// For those that are further on, or have had their part of a message; and what this one has sent and received, for the
// board. Collectives are on it as soon as a wait lasts.
void Announced::tell() {
  if (of_.record != nullptr) core::AnnouncedCalls::announce(*of_.record, difference_, 1, 0);
  const store::CallLimit limit(kStoreTime);
  for (const Message& message : messages_) {
    const Operation operation = message.describe();
    std::string key = board_key(operation, of_.rank);
    of_.scope->set(key, operation.encode());
    of_.own_board_keys.push_back(std::move(key));
  }
}

}  // namespace col::group
