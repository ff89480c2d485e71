#include "launch/nodes/ask_desk.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

#include <col/error.hpp>

#include "core/clock/clock.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/report/report_json.hpp"
#include "launch/report/stacks.hpp"
#include "net/connect.hpp"
#include "net/listener.hpp"

namespace col::launch {
namespace {

using Clock = core::Clock;

constexpr std::size_t kMaxClients = 16;
// Others have answered in a fraction of it, or will not. With what else it takes, an answer is there within a second.
constexpr std::chrono::milliseconds kAnswerTime{600};
constexpr std::chrono::milliseconds kStackTime = StackTaker::kUsualTime + std::chrono::milliseconds(1000);
// Longer than a launcher waits for the other nodes.
constexpr std::chrono::milliseconds kMore{300};

// The socket of a directory, by whatever path: that of a socket has only 107 characters.
struct SocketPlace {
  explicit SocketPlace(const std::string& directory)
      : opened(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", opened.get(), kAskSocket);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  tools::UniqueFd opened;
  sockaddr_un address{};
};

struct Call {
  tools::UniqueFd socket = {};  // empty: nobody has taken it
  bool is_there = false;        // a launcher, even if so many have called that it has not heard them yet
};

Call call(const std::string& directory) {
  tools::UniqueFd socket = net::make_socket(AF_UNIX);
  const SocketPlace place(directory);
  if (!socket || !place.opened) return {};
  if (::connect(socket.get(), place.get(), sizeof place.address) != 0) return {.is_there = errno == EAGAIN};
  return {.socket = std::move(socket), .is_there = true};
}

}  // namespace

std::chrono::milliseconds answer_time(bool stacks) {
  return stacks ? kStackTime : kAnswerTime;
}

AskDesk::AskDesk(const std::string& directory, Events& events, std::function<void(const Request&)> on_request)
    : events_(events, [this](std::size_t index) { on_event(index); }), on_request_(std::move(on_request)) {
  tools::UniqueFd socket = net::make_socket(AF_UNIX);
  const SocketPlace place(directory);
  if (!socket || !place.opened || ::bind(socket.get(), place.get(), sizeof place.address) != 0 ||
      ::listen(socket.get(), static_cast<int>(kMaxClients)) != 0 || !events_.add(socket.get(), EPOLLIN, kListener))
    return;
  listener_ = std::move(socket);
}

void AskDesk::take_calls() {
  for (;;) {
    tools::UniqueFd socket = net::accept(listener_.get());
    if (!socket) return;
    if (clients_.size() >= kMaxClients) clients_.erase(clients_.begin());
    const int client = next_++;
    const int fd = socket.get();
    clients_.emplace(client, Wire(std::move(socket)));
    if (!events_.add(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, static_cast<std::size_t>(client)))
      clients_.erase(client);
  }
}

void AskDesk::on_event(std::size_t index) {
  if (index == kListener) return take_calls();
  const auto found = clients_.find(static_cast<int>(index));
  if (found == clients_.end()) return;
  std::vector<Request> requests;
  Wire& wire = found->second;
  wire.flush();
  bool is_understood = true;
  while (const auto message = wire.next()) {
    if (said(*message) != Ask::kSay) continue;
    wire.trust();  // who opened the socket is this user
    try {
      const auto ask = read_as<Ask>(*message);
      requests.push_back({found->first, {.calls = ask.calls, .stacks = ask.stacks, .use = ask.use}});
    } catch (const MessageError&) {
      is_understood = false;
    }
  }
  if (wire.broken() || !is_understood) clients_.erase(found);
  for (const Request& request : requests) on_request_(request);
}

void AskDesk::answer(int client, const JobStory& story) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.send(message_of(Answer{.story = story_to_json(story)}));
}

AskingLauncher::AskingLauncher(Wire wire, bool stacks)
    : wire_(std::move(wire)), until_(Clock::now() + answer_time(stacks) + kMore) {}

bool AskingLauncher::can_ask(const std::string& directory) {
  return call(directory).is_there;
}

std::optional<AskingLauncher> AskingLauncher::ask(const std::string& directory, const AskedFor& what) {
  tools::UniqueFd socket = call(directory).socket;
  if (!socket) return std::nullopt;
  AskingLauncher asking(Wire(std::move(socket)), what.stacks);
  asking.wire_.send(message_of(ask_of(0, what)));
  asking.wire_.trust();
  return asking;
}

std::optional<JobStory> AskingLauncher::take() {
  while (const auto message = wire_.next()) {
    if (said(*message) != Answer::kSay) continue;
    has_answered_ = true;
    try {
      return story_from_json(read_as<Answer>(*message).story);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<JobStory> AskingLauncher::wait() {
  for (;;) {
    if (std::optional<JobStory> story = take()) return story;
    const auto left = until_ - Clock::now();
    if (left <= Duration::zero() || is_over()) return std::nullopt;
    pollfd readable{fd(), POLLIN, 0};
    core::poll_for({&readable, 1}, left);
  }
}

}  // namespace col::launch
