// The byte streams of a simulated job: sockets of the kernel, between which lies the network. What one end writes is
// taken from it at once, and given to the other end when it arrives: so the code that uses a socket is the code that
// users run, down to its system calls, and none of them waits for anything real.
//
//   client ── socket ── socket ──(the simulator, later)── socket ── socket ── server
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/unique_fd.hpp"
#include "simulation/faults.hpp"
#include "simulation/network.hpp"

namespace col::test {

class Streams final : public Wires {
 public:
  Streams(Simulator& simulator, const Truth& truth, SimulatedNetwork& network);
  ~Streams() override;

  // A listening socket of the calling process. Clients find it by the port.
  int listen(int port) override;
  // A connected socket of the calling process; -1 with errno if nobody listens there.
  int connect(int port) override;
  // Takes what has been written. Called wherever a thread stands still.
  void take() override;
  // Closes what the simulator has of them.
  void close() { connections_.clear(); }

 private:
  struct Chunk {
    Simulator::Time arrives;
    std::string bytes;  // none: the end of the stream
  };
  struct End {
    core::UniqueFd fd;  // of the simulator's; the other end of it is the process's
    int process = -1;
    std::deque<Chunk> under_way;  // to this end
    Simulator::Time last = Simulator::Time::min();
    bool has_ended = false;  // nothing more comes from this end
    Duration again = {};     // until the kernel sends anew what has not arrived
  };
  struct Connection {
    std::array<End, 2> ends;
  };

  void take_from(Connection& connection, int side);
  void send_on(Connection& connection, int side, std::string bytes);
  void deliver(Connection& connection, int side);
  Duration part_of(Duration longest);
  void look_for_dead(Connection& connection);
  void watch(Connection& connection, int side);

  Simulator& simulator_;
  const Truth& truth_;
  SimulatedNetwork& network_;
  core::UniqueFd epoll_;
  std::map<int, std::pair<int, std::string>> listeners_;  // by port: whose, and the kernel's name
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace col::test
