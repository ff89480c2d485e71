// Joins the output of many sources into one stream of whole lines. No descriptors here: bytes in, bytes out.
#pragma once

#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// Bytes pass unchanged and in the order of each source; two sources never share a line. Text without a newline waits
// for it, except that
// - it is passed on when its source falls silent for kSilence (a prompt shows), when its source ends, and when it grows
//   beyond kMaxHeld or all held text beyond its limit (a line of any length passes). That line is then open, and others
//   wait for its end;
// - after kPatience, or when its source has ended, an open line is ended by a newline of ours, so that a prompt or a
//   progress bar of one rank cannot hold up the rest for ever. These newlines, and those that end the last line of a
//   source with a label or a stamp, are the only bytes that are ever added.
class LineMux {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr std::size_t kMaxHeld = 64 * 1024;     // per source
  static constexpr std::size_t kMaxQueued = 256 * 1024;  // beyond it no source is to be read
  static constexpr std::chrono::milliseconds kSilence{50};
  static constexpr std::chrono::milliseconds kPatience{1000};

  struct Options {
    std::size_t max_held = 8 * 1024 * 1024;  // of all sources; each may exceed it by what it was fed last
    bool one_source = false;                 // there will never be another: nothing waits for the end of its line
    // The memory that an empty queue keeps for what comes next.
    std::size_t kept = std::numeric_limits<std::size_t>::max();
  };
  LineMux() : LineMux(Options{}) {}
  explicit LineMux(const Options& options) : options_(options) {}

  // Every line of the source begins with `label`. Returns its number; numbers of forgotten sources are used again.
  int add_source(std::string label);

  // Lines that begin in `bytes` begin with `stamp`, and then the label.
  void feed(int source, std::string_view bytes, Time now, std::string_view stamp = {});
  void close(int source, Time now);
  // What the source has said is still passed on; nothing of it may be asked or fed any more. Requires: it is closed.
  void forget(int source);
  // Does what is due at `now`; to be called at deadline().
  void tick(Time now);
  std::optional<Time> deadline() const;

  // Whether bytes of the source have room now; when not, it is to be asked again after the queue has drained.
  bool wants(int source) const;

  // What is to be written, in order. The caller consumes it.
  std::string_view pending() const { return std::string_view(queue_).substr(consumed_); }
  void consume(std::size_t bytes);
  // Nothing is pending, nor waits for the end of another's line.
  bool is_drained() const { return consumed_ == queue_.size() && waiting_.empty(); }

 private:
  struct Source {
    std::string label;
    std::string held{};     // not passed on yet; with labels and stamps
    std::size_t whole = 0;  // so much of `held` are whole lines
    Time fed_at{};
    bool at_start = true;    // the next byte begins a line
    bool decorated = false;  // has a label or was given a stamp
    bool closed = false;
    bool forgotten = false;
    bool waits = false;    // in waiting_
    bool partial = false;  // in partial_
    bool silent = false;   // for long enough: text without a newline is to be passed on
  };
  static constexpr int kNobody = -1;

  Source& at(int index) { return sources_[static_cast<std::size_t>(index)]; }
  const Source& at(int index) const { return sources_[static_cast<std::size_t>(index)]; }
  bool is_unused(int index) const;
  bool is_open_for(int index) const { return open_ == kNobody || open_ == index; }
  bool is_full(const Source& from) const {
    return from.held.size() >= kMaxHeld || (!from.held.empty() && held_ >= options_.max_held);
  }

  std::string_view queue_directly(int index, std::string_view bytes, std::string_view stamp);
  void decorate(Source& from, std::string_view text, std::string_view stamp, std::string& to);
  void hold(Source& from, std::string_view text, std::string_view stamp);
  void pass_on(int index, Time now);
  void pass_on_waiting(Time now);
  void wait(int index, Time now);
  void emit(int index, std::size_t bytes);
  void end_open_line();
  void note_partial(int index);

  Options options_;
  std::vector<Source> sources_;
  std::size_t forgotten_ = 0;  // sources
  std::size_t held_ = 0;       // bytes, of all sources
  std::string queue_;
  std::size_t consumed_ = 0;
  int open_ = kNobody;       // whose line is begun in the queue and not ended
  std::deque<int> waiting_;  // sources with something to pass on while another's line is open
  Time waiting_since_{};
  std::vector<int> partial_;  // sources that hold text without a newline and do not wait
  std::string prefix_;        // scratch: stamp and label
};

}  // namespace col::launch
