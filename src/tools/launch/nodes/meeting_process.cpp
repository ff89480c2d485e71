#include "core/clock/clock.hpp"
#include "launch/nodes/meeting.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <col/store.hpp>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/nodes/pulse.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/processes/limits.hpp"
#include "net/address.hpp"
#include "net/connect.hpp"

namespace col::launch {
namespace {

using Clock = core::Clock;
using Time = Clock::time_point;

constexpr std::size_t kMaxConnections = 4096;
constexpr std::size_t kMaxStrangers = 256;        // of these, that have not said who they are; the oldest goes first
constexpr std::chrono::milliseconds kDeaf{200};   // after a call that could not be taken
constexpr std::chrono::seconds kHelloTime{10};    // for a stranger to say hello
constexpr std::chrono::seconds kFarewellTime{2};  // for the last letters to be taken
constexpr std::chrono::seconds kLongestSleep{1};

// Sockets in, messages out: the system's side of a meeting.
class Host {
 public:
  Host(net::Listener listener, const MeetingSpec& spec)
      : listener_(std::move(listener)),
        meeting_(
            spec, [this](int restart) { return new_store(restart); }, Clock::now()),
        spec_(spec) {}

  void run() {
    std::optional<Time> farewell;
    while (!farewell || (Clock::now() < *farewell && !guests_.empty())) {
      wait();
      const Time now = Clock::now();
      take_calls();
      drop_silent(now);
      meeting_.tick(now);
      deliver(now);
      if (meeting_.over() && !farewell) farewell = now + kFarewellTime;
    }
  }

 private:
  struct Guest {
    Wire wire;
    std::string address;
    Time heard_at;
    bool leaving = false;  // once all is sent
  };

  MeetingStore new_store(int restart) {
    store_.reset();  // of the generation before: its keys are of no use any more
    StoreServerSpec spec;
    const std::string salt = make_store_token();
    spec.token = store_token_of(spec_.secret, spec_.id, restart, salt);
    spec.host = spec_.host;
    spec.job = store_job(spec_.job_id, restart);
    store_ = std::make_unique<StoreServer>(spec);
    return {store_->port(), salt};
  }

  void wait() {
    std::vector<pollfd> events;
    // A call that cannot be taken now would wake us again and again.
    const bool hears = guests_.size() < kMaxConnections && Clock::now() >= deaf_until_;
    for (const tools::UniqueFd& socket : listener_.sockets) events.push_back({hears ? socket.get() : -1, POLLIN, 0});
    for (const auto& [member, guest] : guests_) {
      const short wanted = guest.wire.all_sent() ? POLLIN : POLLIN | POLLOUT;
      events.push_back({guest.wire.fd(), wanted, 0});
    }
    Time latest = alive_at_ + spec_.pulse.interval;
    for (const auto& [member, guest] : guests_) latest = std::min(latest, guest.heard_at + patience_with(member));
    if (const auto due = meeting_.deadline()) latest = std::min(latest, *due);
    core::poll_for(events, std::min<Duration>(latest - Clock::now(), kLongestSleep));
    const Time now = Clock::now();
    const auto pause = pauses_.look(now, spec_.pulse);
    std::vector<std::pair<int, std::string>> gone;
    for (auto& [member, guest] : guests_) {
      guest.heard_at += pause;
      guest.wire.flush();
      while (const auto message = guest.wire.next()) {
        guest.heard_at = now;
        meeting_.on_message(member, guest.address, *message, now);
      }
      if (guest.wire.broken()) gone.emplace_back(member, guest.wire.why_broken());
    }
    for (const auto& [member, why] : gone) drop(member, why, now);
    if (now < alive_at_ + spec_.pulse.interval) return;
    alive_at_ = now;
    for (auto& [member, guest] : guests_) guest.wire.send(message_of(Alive{}));
  }

  void take_calls() {
    for (const tools::UniqueFd& listener : listener_.sockets) take_calls(listener.get());
  }

  void take_calls(int listener) {
    while (guests_.size() < kMaxConnections) {
      tools::UniqueFd socket = net::accept(listener);
      if (!socket) {
        if (net::is_exhausted(errno)) deaf_until_ = Clock::now() + kDeaf;
        return;
      }
      std::string address = net::numeric_peer(socket.get());
      if (guests_.size() - meeting_.nodes() >= kMaxStrangers) drop_oldest_stranger();
      guests_.emplace(next_, Guest{Wire(std::move(socket)), std::move(address), Clock::now()});
      meeting_.on_call(next_++);
    }
  }

  void drop_silent(Time now) {
    std::vector<std::pair<int, std::string>> gone;
    for (const auto& [member, guest] : guests_) {
      if (now - guest.heard_at <= patience_with(member)) continue;
      gone.emplace_back(member, meeting_.has(member) ? spec_.pulse.why_lost() : "it did not say who it is");
    }
    for (const auto& [member, why] : gone) drop(member, why, now);
  }

  Milliseconds patience_with(int member) const {
    return meeting_.has(member) ? spec_.pulse.silence : Milliseconds(kHelloTime);
  }

  // A lower number means an earlier connection.
  void drop_oldest_stranger() {
    for (const auto& [member, guest] : guests_) {
      if (!meeting_.has(member)) return drop(member, "too many others came and did not say who they are", Clock::now());
    }
  }

  void drop(int member, const std::string& why, Time now) {
    const Guest& guest = guests_.at(member);
    if (!guest.wire.trusts() && !meeting_.over()) say_stranger(guest.address, why);
    guests_.erase(member);
    meeting_.on_lost(member, why, now);
  }

  void say_stranger(const std::string& address, const std::string& why) {
    if (std::exchange(has_said_stranger_, true)) return;
    const std::string text =
        fmt::format("{}: dropped a connection from {}, which has not proven to be of this job ({}); said once\n",
                    spec_.tool, address, why);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  }

  void deliver(Time now) {
    for (Meeting::Letter& letter : meeting_.take_letters()) {
      const auto guest = guests_.find(letter.to);
      if (guest == guests_.end()) continue;
      guest->second.wire.send(letter.message);
      if (meeting_.has(letter.to)) guest->second.wire.trust();  // now that it was welcomed
      guest->second.leaving = guest->second.leaving || letter.last;
    }
    std::vector<int> done;
    for (const auto& [member, guest] : guests_) {
      // A stranger that was refused; a member closes its end itself once it has read how the job ended.
      if (guest.leaving && guest.wire.all_sent() && !meeting_.has(member)) done.push_back(member);
    }
    for (const int member : done) drop(member, "it was refused", now);
  }

  net::Listener listener_;
  std::unique_ptr<StoreServer> store_;
  Meeting meeting_;
  const MeetingSpec spec_;
  bool has_said_stranger_ = false;
  std::map<int, Guest> guests_;
  int next_ = 0;
  Time deaf_until_{};
  Time alive_at_ = Clock::now();
  OwnPauses pauses_{alive_at_};
};

}  // namespace

void serve_meeting(net::Listener listener, const MeetingSpec& spec) {
  Host(std::move(listener), spec).run();
}

pid_t start_meeting(net::Listener listener, const MeetingSpec& spec, const std::vector<int>& close_in_child) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw LaunchError(tools::exit_code::kLauncher, "cannot start the process where the nodes meet: {}",
                      why_no_process(errno, 1));
  }
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  ::prctl(PR_SET_NAME, "col-meeting");
  for (const int fd : close_in_child) ::close(fd);
  try {
    serve_meeting(std::move(listener), spec);
  } catch (const std::exception& error) {
    // The nodes notice that it is gone; why, only this one can say.
    const std::string text = fmt::format("{}: the nodes cannot meet any more: {}\n", spec.tool, error.what());
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace col::launch
