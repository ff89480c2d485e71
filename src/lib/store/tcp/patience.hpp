// How long a client of the TCP store blocks: until a deadline, and no longer than its WaitContext allows.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <col/job.hpp>

namespace col::store::tcp {

class Patience {
 public:
  // The longest slice(), and that of a WaitContext.
  static constexpr Duration kLongestSlice = std::chrono::milliseconds(50);

  // `url` is the URL of the store, for the message of the timeout.
  Patience(Deadline deadline, std::string_view url, std::string_view what)
      : deadline_(deadline), url_(url), what_(what) {}
  // `what` says in words what the client waits for.
  Patience(WaitContext& wait, std::string_view url, std::string_view what)
      : deadline_(wait.deadline()), url_(url), what_(what), wait_(&wait) {
    explain({});
  }
  // The same, for a wait that its caller has described.
  Patience(WaitContext& wait, std::string_view url) : deadline_(wait.deadline()), url_(url), wait_(&wait) {}

  // The same for a part of the work, which must not take longer than `budget`.
  Patience part(Duration budget, std::string_view what) const;

  // How long to sleep before the next check().
  Duration slice() noexcept;
  // Throws timeout, or what WaitContext::check() throws, if the time is over.
  void check();
  // Sets why there is no success so far: "Connection refused". Empty: all is well. It becomes part of the timeout's
  // message.
  void explain(std::string why);

 private:
  Deadline deadline_;
  std::string_view url_;
  std::string_view what_;
  std::string why_;
  WaitContext* wait_ = nullptr;
};

}  // namespace col::store::tcp
