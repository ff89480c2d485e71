// Passes the ranks' output on to the user and into files, in whole lines. It never blocks and never loses a line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/output/line_mux.hpp"
#include "launch/output/sink.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {

// The child's ends of its output. Close them here when the child has them.
struct ChildStreams {
  tools::UniqueFd out;
  tools::UniqueFd err = {};  // empty if stderr is the same as stdout
  // If not empty: `out` is a pseudo-terminal, from which the rank also reads, and this is the end for our typing
  // (Input::add_terminal).
  tools::UniqueFd keyboard = {};
  bool is_terminal = false;  // `out` becomes the rank's controlling terminal

  int out_fd() const { return out.get(); }
  int err_fd() const { return err ? err.get() : out.get(); }
};

// It uses back-pressure instead of buffers: if the user's side is full, the ranks' pipes are not read, and the ranks
// wait as they would on the user's own pipe.
//
//     rank ── pipe or terminal ──┬─► console: stdout, stderr   (an outlet each, one when both lead to the same place)
//                                ├─► file                      (an outlet per file)
//                                └─► last lines of its stderr
//     rank ── file               when nothing is to be added to it, nor shown
//
// If the job writes its own files, a console without a reader does not matter, and a full one does not end the job.
class Output {
 public:
  using Time = LineMux::Time;
  enum class Stream { out, err };

  struct Wiring {
    int stdin_fd = -1;  // used only to ask for the size of its window
    int stdout_fd = 1, stderr_fd = 2;
    int ranks = 1;  // of this node
  };
  // The largest number of descriptors that stay open for each of `ranks` ranks of a node.
  static int files_per_rank(const OutputSpec& spec, int ranks);

  // `spec` must outlive it.
  Output(Events& events, const Wiring& wiring, const OutputSpec& spec);

  // Makes the rank's output; another process may have had its place before. Throws LaunchError (125) if a file cannot
  // be opened or the system has no more descriptors. `takes_input`: it reads our input, so with a pseudo-terminal it
  // has a keyboard.
  ChildStreams add_rank(const RankNames& names, bool takes_input);
  // Adds the output of another node's launcher to the console: complete lines that already have labels.
  void add_raw(Stream stream, tools::UniqueFd read_end);

  // A line from the launcher itself, without its newline.
  void say(std::string_view line);
  // The first directory that was created for files; empty if there is none.
  const std::string& made_folder() const noexcept { return files_.made_folder(); }
  // Text from the launcher itself that was requested on stdout: whole lines, without labels.
  void print(std::string_view text);

  // The user's terminal has another size (SIGWINCH).
  void copy_window_size();

  // Moves bytes: one read for each pipe with data, then writes. Returns true if there is more to do at once.
  bool work(Time now);
  std::optional<Time> deadline() const;

  // Whether every pipe was read to its end: those of ranks, and all.
  bool ranks_ended() const noexcept { return open_rank_pipes_ == 0; }
  bool all_ended() const noexcept { return open_rank_pipes_ + open_raw_pipes_ == 0; }
  bool all_written() const;
  // Stops waiting for pipes that some process still holds open. Their data has already been read.
  void give_up_rank_pipes(Time now);
  void give_up_pipes(Time now);
  void drop_unwritten();

  // The last lines of the stderr of a rank (or of all its output, if stdout and stderr are joined). Ranks are known
  // by their places. The bytes are unchanged: they need not be UTF-8.
  std::vector<std::string> last_stderr(std::size_t place) const;
  // Before a restart: gives up the ranks' pipes and forgets the ranks.
  void forget_ranks(Time now);

  // errno of a write that failed permanently (EPIPE: the reader is gone); 0 if there is none.
  int error() const noexcept { return error_; }
  // The name of the file that could not be written; "stdout", "stderr".
  const std::string& error_file() const noexcept { return error_file_; }
  // True if what could not be written is nowhere else. The pipes of that side are then closed, so that the ranks see it
  // too.
  bool is_cut_off() const noexcept { return cut_off_; }

 private:
  static constexpr std::size_t kReadBytes = 64 * 1024;  // what a pipe holds

  struct Outlet {
    Outlet(Sink to, std::string name, const LineMux::Options& options)
        : sink(std::move(to)), path(std::move(name)), lines(options) {}
    Sink sink;
    std::string path;  // or "stdout", "stderr"
    LineMux lines;
    bool blocked = false;  // registered for writability
    bool broken = false;
  };
  struct Route {
    std::size_t outlet;
    int source;
  };
  struct Pipe {
    tools::UniqueFd fd = {};
    std::vector<Route> routes = {};
    int tail = -1;  // index in ranks_ of the rank whose last lines these bytes are
    bool is_raw = false;
    bool is_terminal = false;
    bool ready = false;
    bool unused = false;  // may be used for another one
  };
  struct RankOutput {
    LineTail tail;
    std::string stderr_file = {};  // not empty: the lines are there
    off_t stderr_start = 0;
  };

  ChildStreams connect_terminal(const RankNames& names, bool takes_input);
  ChildStreams connect_pipes(const RankNames& names);
  tools::UniqueFd connect(const RankNames& names, Stream stream, const std::string& path, bool keep_tail);
  tools::UniqueFd open_directly(const RankNames& names, const std::string& path, bool keep_tail);
  std::string file_of(const RankNames& names, Stream stream) const;
  std::vector<Route> routes_of(const RankNames& names, Stream stream, const std::string& path);
  std::size_t file_outlet(const RankNames& names, const std::string& path);
  bool shows(int rank) const;
  void add_pipe(Pipe pipe);

  void on_pipe(std::size_t index);
  void on_sink(std::size_t index);
  bool wants(const Pipe& pipe) const;
  void read(Pipe& pipe, Time now);
  tools::UniqueFd end(Pipe& pipe, Time now);
  void write(std::size_t index);
  void fail(std::size_t index, int error);
  std::size_t console_of(Stream stream) const { return stream == Stream::out ? 0 : consoles_ - 1; }

  EventSource pipe_events_, sink_events_;  // a pipe has data; a sink has room
  Wiring wiring_;
  const OutputSpec& spec_;
  bool direct_ = false;  // ranks write directly to their files
  bool file_per_rank_ = false;
  OutputFiles files_;
  std::vector<std::unique_ptr<Outlet>> outlets_;  // consoles first
  std::size_t consoles_ = 0;                      // one for both streams if they lead to the same place
  std::unordered_map<std::string, std::size_t> file_outlets_;
  int own_source_ = -1;    // of lines that the launcher says
  int print_source_ = -1;  // and prints
  std::vector<Pipe> pipes_;
  std::vector<std::size_t> ready_;
  std::vector<tools::UniqueFd> silent_terminals_;
  std::vector<RankOutput> ranks_;
  std::size_t open_rank_pipes_ = 0;
  std::size_t open_raw_pipes_ = 0;
  LineStamp stamp_;
  std::unique_ptr<char[]> buffer_;
  int error_ = 0;
  bool cut_off_ = false;
  std::string error_file_;
};

}  // namespace col::launch
