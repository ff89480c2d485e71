// Copies the launcher's own input to ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/output/terminal.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {

// Reads from a descriptor of the user without ever blocking.
//
// Other processes share the user's descriptor, so its flags are not changed. This is the same in Sink.
class InputSource {
 public:
  // Adds itself to `events` (edge-triggered, index 0) if it can be waited for. -1: it is at its end.
  InputSource(int user_fd, EventSource& events);

  struct Outcome {
    std::size_t bytes = 0;
    enum class State { more, empty, ended } state = State::ended;  // empty: an event will tell when there is more
  };
  Outcome read(std::span<char> buffer);
  void close();

 private:
  tools::UniqueFd fd_;
  EventSource& events_;
  bool may_block_ = false;
  bool is_socket_ = false;
};

// One block of bytes is read, and written to every reader before the next block is read. So the slowest reader sets the
// pace, and memory is bounded. A reader that has closed its end is skipped. When the last reader has, our input is
// closed, so that its writer notices.
class Input {
 public:
  Input(Events& events, int stdin_fd);
  ~Input() { close(); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Readers are numbered in the order of these calls. Both throw LaunchError (125) if the system has no more files.
  // Returns the end from which the rank reads.
  tools::UniqueFd add_pipe();
  // `keyboard` is the other end of the rank's terminal (ChildStreams).
  void add_terminal(tools::UniqueFd keyboard);

  // All readers have been added: starts to read. If there are terminals among them and our input is a terminal, it is
  // raw until reading ends.
  void start();
  // Other processes wait for our reading: when the last reader is gone, our input is still read, and the data is
  // dropped.
  void keep_reading() { keeps_reading_ = true; }

  // Moves bytes. Returns true if there is more to do at once. Does nothing before start().
  bool work();

  // The rank has ended. A process that has inherited its input must not stop the others.
  void on_reader_end(std::size_t reader);
  // While the job is stopped, nothing is read, and our terminal has its original settings.
  void suspend();
  void resume();
  // Ends the input for all readers, also for terminals.
  void close();

 private:
  struct Reader {
    tools::UniqueFd fd;  // empty when it is gone
    bool is_terminal = false;
    bool ready = true;
    std::size_t written = 0;  // of block_
  };

  void on_event(std::size_t index);
  void add(tools::UniqueFd fd, bool is_terminal);
  void write(Reader& reader);
  bool all_have_block() const;
  bool read();
  void on_end();
  void drop(Reader& reader);

  static constexpr std::size_t kBlock = 64 * 1024;

  EventSource events_;
  RawTerminal terminal_;
  InputSource source_;
  std::vector<Reader> readers_;
  std::string buffer_;
  std::string block_;      // the block that every reader must get now
  char last_byte_ = '\n';  // the last byte that was read
  bool source_ready_ = true;
  bool started_ = false;
  bool suspended_ = false;
  bool keeps_reading_ = false;
  bool ended_ = false;
};

}  // namespace col::launch
