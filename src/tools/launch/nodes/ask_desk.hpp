// Where coljob asks the launcher of a job of several nodes: a socket in the job's directory, which only the same user
// can open. One question a connection; messages are those between nodes (Ask, Answer).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/processes/events.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

class AskDesk {
 public:
  struct Request {
    int client = 0;
    AskedFor what = {};
  };
  // Without a socket, which a file system may refuse, it is never asked.
  AskDesk(const std::string& directory, Events& events, std::function<void(const Request&)> on_request);

  // Does nothing if that client is gone.
  void answer(int client, const JobStory& story);

 private:
  static constexpr std::size_t kListener = 0;  // others are of clients

  void on_event(std::size_t index);
  void take_calls();

  EventSource events_;
  std::function<void(const Request&)> on_request_;
  tools::UniqueFd listener_;
  std::map<int, Wire> clients_;
  int next_ = 1;
};

// ---- coljob's side

// A question to the launcher of the job in `directory`.
class AskingLauncher {
 public:
  // Asks. Nothing if there is no launcher that could be asked, because the job has one node or has ended, or if it does
  // not take more questions now.
  static std::optional<AskingLauncher> ask(const std::string& directory, const AskedFor& what);

  // Whether there is one, without a question.
  static bool can_ask(const std::string& directory);

  // The whole job; nothing if the launcher has not answered in its time. Blocks for that long at most.
  std::optional<JobStory> wait();
  // The same, if it has come. Else look again when fd() is readable, unless is_over().
  std::optional<JobStory> take();
  int fd() const noexcept { return wire_.fd(); }
  bool is_over() const noexcept { return has_answered_ || wire_.broken(); }  // nothing more will come

 private:
  AskingLauncher(Wire wire, bool stacks);

  Wire wire_;
  core::Clock::time_point until_;
  bool has_answered_ = false;
};

// How long a launcher waits for other nodes, and who asks it for its answer.
std::chrono::milliseconds answer_time(bool stacks);

}  // namespace col::launch
