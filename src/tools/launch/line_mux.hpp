// Joins the output of many sources into one stream of whole lines. No descriptors here: bytes in, bytes out.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// Bytes pass unchanged and in the order of each source; two sources never share a line. Text without a newline waits
// for it, except that
// - it is passed on when its source falls silent for kSilence and no other line is open (a prompt shows), when its
//   source ends, and when it grows beyond kMaxHeld (a line of any length passes). That line is then open, and others
//   wait for its end;
// - after kPatience, or when its source has ended, an open line is ended by a newline of ours, so that a prompt or a
//   progress bar of one rank cannot hold up the rest for ever. These newlines, and those that end the last line of a
//   source with a label, are the only bytes that are ever added.
class LineMux {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr std::size_t kMaxHeld = 64 * 1024;     // per source
  static constexpr std::size_t kMaxQueued = 256 * 1024;  // beyond it no source is to be read
  static constexpr std::chrono::milliseconds kSilence{50};
  static constexpr std::chrono::milliseconds kPatience{1000};

  // Every line of the source begins with `label`. Returns its number: 0, 1, …
  int add_source(std::string label);

  void feed(int source, std::string_view bytes, Time now);
  void close(int source, Time now);
  // Does what is due at `now`; to be called at deadline().
  void tick(Time now);
  std::optional<Time> deadline() const;

  // Whether bytes of the source have room now; when not, it is to be asked again after the queue has drained.
  bool wants(int source) const;

  // What is to be written, in order. The caller consumes it.
  std::string_view pending() const { return std::string_view(queue_).substr(consumed_); }
  void consume(std::size_t bytes);

 private:
  struct Source {
    std::string label;
    std::string held{};  // not passed on yet
    Time fed_at{};
    bool closed = false;
    bool waits = false;    // in waiting_
    bool partial = false;  // in partial_
  };
  static constexpr int kNobody = -1;

  void pass_on(int index, Time now);
  void pass_on_waiting(Time now);
  void emit(int index, std::size_t bytes);
  void end_open_line();
  void note_partial(int index);
  bool is_open_for(int index) const { return open_ == kNobody || open_ == index; }

  std::vector<Source> sources_;
  std::string queue_;
  std::size_t consumed_ = 0;
  int open_ = kNobody;       // whose line is begun in the queue and not ended
  std::deque<int> waiting_;  // sources with something to pass on while another's line is open
  Time waiting_since_{};
  std::vector<int> partial_;  // sources that hold text without a newline
};

}  // namespace col::launch
