#include "backend/nccl/meeting.hpp"
#include "backend/seats.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace col::nccl_backend {
namespace {

constexpr const char* kIdKey = "id";
constexpr const char* kGivenUpKey = "given_up";  // the rank, and why
constexpr auto kCheckEvery = std::chrono::milliseconds(100);
constexpr auto kMutePause = std::chrono::seconds(5);

// Looks at something else, too, while the store waits.
class Watch final : public WaitObserver {
 public:
  Watch(const std::function<void()>& look, WaitContext& outer) : look_(look), outer_(outer) {}

  bool on_slow(Duration /*waited*/) override {
    look_();
    outer_.check();
    return false;
  }
  void on_timeout(Duration /*budget*/) override { outer_.check(); }

 private:
  const std::function<void()>& look_;
  WaitContext& outer_;
};

// A line each: terms, devices, why alone, seats.
std::string encode(const Offer& offer) {
  return fmt::format("{}\n{}\n{}\n{}", offer.terms, offer.devices, offer.why_alone, fmt::join(offer.seats, "\n"));
}

Offer decode(std::string_view text) {
  const auto take_line = [&text] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  Offer offer;
  offer.terms = take_line();
  const std::string_view devices = take_line();
  std::from_chars(devices.data(), devices.data() + devices.size(), offer.devices);
  offer.why_alone = take_line();
  while (!text.empty()) offer.seats.emplace_back(take_line());
  return offer;
}

}  // namespace

std::string seat_of(const GpuDevice& device, const std::string& boot_id, const NcclLibrary& nccl) {
  return fmt::format("{} {}", nccl.tells_parts_apart() ? device.uuid() : device.bus(), boot_id);
}

std::string Meeting::say_key(std::size_t place) const {
  return fmt::format("brings/{}", spec_.ranks[place]);
}

std::string Meeting::hear(const std::string& key, WaitContext& wait) {
  if (!spec_.look) return spec_.store->wait(key, wait);
  Watch watch(spec_.look, wait);
  WaitContext watched(wait.deadline(), wait.page(), wait.record(), &watch);
  return spec_.store->wait(key, watched);
}

Meeting::Table Meeting::exchange(const Offer& own, WaitContext& wait) {
  spec_.store->set(say_key(spec_.place), encode(own));
  std::vector<Offer> offers;
  for (std::size_t place = 0; place < spec_.ranks.size(); ++place) {
    wait.describe(fmt::format("rank {} to say which GPUs it brings", spec_.ranks[place]));
    offers.push_back(decode(hear(say_key(place), wait)));
  }
  require_same_terms(offers);
  const bool shared = has_shared_gpus(offers);
  return {std::move(offers), shared};
}

void Meeting::require_same_terms(const std::vector<Offer>& offers) const {
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t place = 0; place < offers.size(); ++place)
    ranks_of[offers[place].terms].push_back(spec_.ranks[place]);
  if (ranks_of.size() == 1) return;
  const auto most = std::max_element(ranks_of.begin(), ranks_of.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  int odd = -1;
  std::vector<std::string> parts;
  for (const auto& [terms, ranks] : ranks_of) {
    if (odd < 0 && 2 * most->second.size() > offers.size() && terms != most->first) odd = ranks.front();
    parts.push_back(fmt::format("{} {}: {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), terms));
  }
  throw Error(ErrorCode::mismatch,
              fmt::format("the ranks do not connect alike; {}{}; all must call with the same",
                          odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "", fmt::join(parts, "; ")),
              spec_.group, odd);
}

// NCCL's own error names neither the ranks nor the device.
bool Meeting::has_shared_gpus(const std::vector<Offer>& offers) const {
  std::vector<backend::Seat> seats;
  for (std::size_t place = 0; place < offers.size(); ++place) {
    for (const std::string& seat : offers[place].seats)
      seats.push_back({spec_.ranks[place], seat, offers[place].why_alone});
  }
  const auto shared = backend::find_shared_device(seats);
  if (!shared || shared->problem.empty()) return shared.has_value();
  throw Error(ErrorCode::unavailable,
              fmt::format("ranks {} and {} are on one GPU ({}), and {}; {}", shared->first, shared->second,
                          shared->device.substr(0, shared->device.find(' ')), shared->problem, spec_.advice),
              spec_.group, shared->second);
}

ncclUniqueId Meeting::agree_on_id(const NcclLibrary& nccl, WaitContext& wait) {
  ncclUniqueId id{};
  const int first = spec_.ranks.front();
  if (spec_.place == 0) {
    if (const ncclResult_t result = nccl.GetUniqueId(&id); result != ncclSuccess)
      throw Error(ErrorCode::io,
                  fmt::format("nccl: cannot make an id: {} ({}); see NCCL_SOCKET_IFNAME", nccl.GetErrorString(result),
                              nccl.GetLastError(nullptr)),
                  spec_.group, first);
    spec_.store->set(kIdKey, std::string_view(id.internal, sizeof id.internal));
    return id;
  }
  wait.describe(fmt::format("rank {} to hand out NCCL's id", first));
  const std::string text = hear(kIdKey, wait);
  if (text.size() != sizeof id.internal)
    throw Error(ErrorCode::internal, "nccl: the id in the store has another size", spec_.group);
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  return id;
}

void Meeting::give_up(const Error& why) noexcept {
  try {
    const int rank = spec_.ranks[spec_.place];
    spec_.store->compare_set(kGivenUpKey, std::nullopt, fmt::format("{} {}", rank, why.message()));
  } catch (const std::exception&) {  // the others find out at their deadline
  }
}

void Meeting::check() {
  const auto now = core::Clock::now();
  if (now < next_check_) return;
  next_check_ = now + kCheckEvery;
  std::optional<std::string> text;
  try {
    text = spec_.store->get(kGivenUpKey);
  } catch (const std::exception&) {  // a store that fails tells nothing, and NCCL does not need it
    next_check_ = core::Clock::now() + kMutePause;
  }
  if (!text) return;
  int rank = -1;
  const char* const end = std::from_chars(text->data(), text->data() + text->size(), rank).ptr;
  throw Error(ErrorCode::peer_lost, fmt::format("rank {} cannot connect:{}", rank, end), spec_.group, rank);
}

void Meeting::leave() {
  spec_.store->erase(say_key(spec_.place));
  if (spec_.place == 0) spec_.store->erase(kIdKey);
}

}  // namespace col::nccl_backend
