// Joins the output of many sources into one stream of whole lines, which may begin with the time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock/clock.hpp"
#include "launch/job/job_spec.hpp"

namespace col::launch {

// The time at the start of a line of output, local, as "12:04:07.123456 ".
class LineStamp {
 public:
  // Valid until the next call.
  std::string_view text(std::chrono::system_clock::time_point time);

 private:
  std::time_t second_ = -1;  // to which the first part of text_ belongs
  char text_[17] = {};
};

// Joins the output of many sources into one stream of whole lines. It has no descriptors: bytes come in, bytes go out.
//
// Bytes pass unchanged, in the order of each source. Two sources never share a line. Text without a newline waits for
// its newline, or for the end of its source, with these exceptions:
// - More than kMaxHeld of it is passed on, so a line of any length passes.
// - Unfinished::shown (a terminal): it is passed on when its source is silent for kSilence, so a prompt shows.
// - Unfinished::passed (nobody else writes there): it passes at once.
// Its line is then open, and others wait for its end. After kPatience, or when its source has ended, a newline of ours
// ends it, so a prompt, a progress bar or a line without end cannot delay the others forever. A line that was cut says
// so: kGoesOn ends the first part, and kGoneOn begins the rest. On a terminal, a prompt needs no such words. They, the
// newlines, and newlines at the end of the last line of a source with a label or a stamp, or of every source
// (Options::ends_lines), are the only bytes that are ever added.
class LineMux {
 public:
  using Clock = core::Clock;
  using Time = Clock::time_point;
  static constexpr std::size_t kMaxHeld = 64 * 1024;     // per source
  static constexpr std::size_t kMaxQueued = 256 * 1024;  // above it, no source should be read
  static constexpr std::chrono::milliseconds kSilence{50};
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr std::string_view kGoesOn = " [line continues]";
  static constexpr std::string_view kGoneOn = "[line continued] ";

  struct Options {
    Unfinished unfinished = Unfinished::held;
    bool ends_lines = false;                 // the last line of every source gets a newline
    std::size_t max_held = 8 * 1024 * 1024;  // of whole lines, for all sources; each may exceed it by its last feed
    // How much memory an empty queue keeps for later bytes.
    std::size_t kept = std::numeric_limits<std::size_t>::max();
  };
  LineMux() : LineMux(Options{}) {}
  explicit LineMux(const Options& options) : options_(options) {}

  // Every line of the source begins with `label`. Returns its number. Numbers of forgotten sources are used again.
  int add_source(std::string label);

  // Lines that begin in `bytes` begin with `stamp`, followed by the label.
  void feed(int source, std::string_view bytes, Time now, std::string_view stamp = {});
  void close(int source, Time now);
  // Bytes of the source are still passed on, but no function may be called for it any more. Requires: it is closed.
  void forget(int source);
  // Does what is due at `now`. Call it at deadline().
  void tick(Time now);
  std::optional<Time> deadline() const;

  // Whether there is room for bytes of the source now. If not, ask again after the queue has drained.
  bool wants(int source) const;

  // The bytes to write, in order. The caller consumes them.
  std::string_view pending() const { return std::string_view(queue_).substr(consumed_); }
  void consume(std::size_t bytes);
  // Whether nothing is pending, and nothing waits for the end of another source's line.
  bool is_drained() const { return consumed_ == queue_.size() && waiting_.empty(); }

 private:
  struct Source {
    std::string label;
    std::string held{};     // not passed on yet; contains labels and stamps
    std::size_t whole = 0;  // how many bytes of `held` are whole lines
    Time fed_at{};
    bool at_start = true;    // the next byte begins a line
    bool decorated = false;  // has a label or was given a stamp
    bool closed = false;
    bool forgotten = false;
    bool waits = false;    // in waiting_
    bool partial = false;  // in partial_
    bool silent = false;   // silent for long enough: text without a newline must be passed on
    bool cut = false;      // what comes next is the rest of a line that was cut
  };
  static constexpr int kNobody = -1;

  Source& at(int index) { return sources_[static_cast<std::size_t>(index)]; }
  const Source& at(int index) const { return sources_[static_cast<std::size_t>(index)]; }
  bool is_unused(int index) const;
  bool is_open_for(int index) const { return open_ == kNobody || open_ == index; }
  static bool is_full(const Source& from) { return from.held.size() - from.whole >= kMaxHeld; }

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
  std::size_t whole_ = 0;      // bytes of whole lines that all sources hold
  std::string queue_;
  std::size_t consumed_ = 0;
  int open_ = kNobody;       // the source with an open line in the queue
  std::deque<int> waiting_;  // sources with something to pass on while another source's line is open
  Time waiting_since_{};
  std::vector<int> partial_;  // sources with text without a newline that do not wait
  std::string prefix_;        // scratch: stamp and label
};

// The last lines of a stream, in bounded memory.
//
// If a carriage return restarts a line (a progress bar), only the text after it is kept: what a terminal shows last.
class LineTail {
 public:
  static constexpr std::size_t kLines = 20;
  static constexpr std::size_t kLineBytes = 4 * 1024;  // the rest of a longer line is cut off

  // Keeps about `max_bytes` at most, and drops old lines first.
  explicit LineTail(std::size_t max_bytes = kLines * kLineBytes) : max_bytes_(max_bytes) {}

  void feed(std::string_view bytes);
  // The oldest line first, without newlines; also an unfinished last line.
  std::vector<std::string> lines() const;

 private:
  void append(std::string_view text);
  void end_line();

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;  // in ended_
  std::deque<std::string> ended_;
  std::string open_;
};

// The same for the content of a file from `first` on; empty if it cannot be read.
std::vector<std::string> last_lines_of_file(const std::string& path, off_t first);

}  // namespace col::launch
