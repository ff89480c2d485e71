#include "backend/nccl/meeting.hpp"
#include "backend/seats.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace col::nccl_backend {
namespace {

constexpr const char* kTableKey = "table";
constexpr const char* kGivenUpKey = "given_up";  // the rank, and why
constexpr auto kCheckEvery = std::chrono::milliseconds(100);
constexpr auto kMutePause = std::chrono::seconds(5);
constexpr auto kLastLook = std::chrono::seconds(1);  // at who is missing, when the time is over

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

// Texts of any bytes in one, each behind its length.
void append(std::string& list, std::string_view text) {
  list += fmt::format("{}:{}", text.size(), text);
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> texts;
  while (!list.empty()) {
    std::size_t size = 0;
    const char* const colon = std::from_chars(list.data(), list.data() + list.size(), size).ptr;
    list.remove_prefix(std::min<std::size_t>(static_cast<std::size_t>(colon - list.data()) + 1, list.size()));
    texts.push_back(list.substr(0, size));
    list.remove_prefix(texts.back().size());
  }
  return texts;
}

}  // namespace

ncclUniqueId make_id(const NcclLibrary& nccl) {
  ncclUniqueId id{};
  const ncclResult_t result = nccl.GetUniqueId(&id);
  if (result == ncclSuccess) return id;
  throw Error(ErrorCode::io, fmt::format("nccl: cannot make an id: {} ({}); see NCCL_SOCKET_IFNAME",
                                         nccl.GetErrorString(result), nccl.GetLastError(nullptr)));
}

std::string seat_of(const GpuDevice& device, const std::string& boot_id, const NcclLibrary& nccl) {
  return fmt::format("{} {}", nccl.tells_parts_apart() ? device.uuid() : device.bus(), boot_id);
}

std::string Meeting::say_key(std::size_t place) const {
  return fmt::format("brings/{}", spec_.ranks[place]);
}

void Meeting::run(std::span<store::Call> calls, WaitContext& wait, const store::Answered& answered) const {
  if (!spec_.look) return store::run(*spec_.store, calls, wait, answered);
  Watch watch(spec_.look, wait);
  WaitContext watched(wait.deadline(), wait.page(), wait.record(), &watch);
  store::run(*spec_.store, calls, watched, answered);
}

// The first of them hears all, and says what it has heard: so the meeting of all takes as many keys as they are, and
// no rank more than two trips to the store.
Meeting::Table Meeting::exchange(const Offer& own, const MakeId& id, WaitContext& wait) {
  try {
    return spec_.place == 0 ? gather(own, id, wait) : say(own, wait);
  } catch (const Error& error) {
    throw with_missing(error);
  }
}

Meeting::Table Meeting::gather(const Offer& own, const MakeId& make_id, WaitContext& wait) const {
  std::vector<store::Call> calls;
  for (std::size_t place = 1; place < spec_.ranks.size(); ++place) calls.push_back(store::Call::wait(say_key(place)));
  const auto describe = [&] {
    const auto missing = std::ranges::find_if(calls, [](const store::Call& call) { return !call.answer; });
    if (missing == calls.end()) return;
    const int rank = spec_.ranks[static_cast<std::size_t>(missing - calls.begin()) + 1];
    wait.describe(fmt::format("rank {} to say which GPUs it brings", rank));
  };
  describe();
  run(calls, wait, [&](std::size_t) {
    describe();
    return true;
  });

  Table table{.offers = {own}};
  std::string said;
  append(said, encode(own));
  for (const store::Call& call : calls) {
    table.offers.push_back(decode(*call.answer));
    append(said, *call.answer);
  }
  std::optional<Error> problem;
  std::string id;
  try {
    judge(table);
    table.id = make_id();
    id.assign(table.id.internal, sizeof table.id.internal);
  } catch (const Error& error) {  // told to all before it is thrown
    problem = Error(error.code(), error.message(), spec_.group, error.rank() >= 0 ? error.rank() : spec_.ranks.front());
  }
  std::string text;
  append(text, id);
  append(text, problem ? fmt::format("{} {}", static_cast<int>(problem->code()), problem->message()) : "");
  spec_.store->set(kTableKey, text + said);
  if (problem) throw *problem;
  return table;
}

Meeting::Table Meeting::say(const Offer& own, WaitContext& wait) const {
  const int first = spec_.ranks.front();
  wait.describe(fmt::format("rank {} to say which GPUs all bring", first));
  std::vector<store::Call> calls{
      store::Call::set(say_key(spec_.place), encode(own)),
      store::Call::wait(kTableKey),
  };
  run(calls, wait, {});
  const std::vector<std::string_view> texts = split(*calls.back().answer);
  if (texts.size() != spec_.ranks.size() + 2)
    throw Error(ErrorCode::internal, "nccl: the table in the store has another size", spec_.group);
  Table table;
  for (const std::string_view offer : std::span(texts).subspan(2)) table.offers.push_back(decode(offer));
  judge(table);
  if (texts[0].size() != sizeof table.id.internal) {
    int code = static_cast<int>(ErrorCode::internal);
    const char* const why = std::from_chars(texts[1].data(), texts[1].data() + texts[1].size(), code).ptr;
    const auto after = static_cast<std::size_t>(why - texts[1].data());
    throw Error(static_cast<ErrorCode>(code), fmt::format("rank {} cannot connect:{}", first, texts[1].substr(after)),
                spec_.group, first);
  }
  std::memcpy(table.id.internal, texts[0].data(), sizeof table.id.internal);
  return table;
}

// Throws what all of them find in it.
void Meeting::judge(Table& table) const {
  require_same_terms(table.offers);
  table.has_shared_gpus = has_shared_gpus(table.offers);
}

// A timeout is that of the rank that has not come, of which only the first one knows.
Error Meeting::with_missing(const Error& error) const {
  if (error.code() != ErrorCode::timeout || error.rank() >= 0) return error;
  int missing = spec_.ranks.front();
  std::vector<store::Call> calls;
  for (std::size_t place = 1; place < spec_.ranks.size(); ++place) calls.push_back(store::Call::get(say_key(place)));
  try {
    WaitContext brief(Deadline::after(kLastLook));
    store::run(*spec_.store, calls, brief);
  } catch (const std::exception&) {
    return error;
  }
  for (std::size_t place = spec_.ranks.size() - 1; place > 0; --place) {
    if (!calls[place - 1].answer) missing = spec_.ranks[place];
  }
  if (missing == spec_.ranks[spec_.place]) return error;
  return Error(error.code(), fmt::format("rank {} has not said which GPUs it brings; {}", missing, error.message()),
               spec_.group, missing);
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

// The first of them, for all.
void Meeting::leave(WaitContext& wait) {
  if (spec_.place != 0) return;
  std::vector<store::Call> calls{store::Call::erase(kTableKey)};
  for (std::size_t place = 1; place < spec_.ranks.size(); ++place) calls.push_back(store::Call::erase(say_key(place)));
  run(calls, wait, {});
}

}  // namespace col::nccl_backend
