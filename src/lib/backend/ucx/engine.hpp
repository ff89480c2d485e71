// The messages of one rank of one group over UCX's active messages, with a matching of our own.
//
// A slot and a sender do not fit into the 64 bits of a UCP tag. So each message carries a header, and finds its receive
// here, as in shared memory. UCX decides how it travels: a small one comes whole, and a large one is announced, and
// fetched when its receive is there, straight into its memory.
//
// All connections are made with the group: UCX ends a process whose peer dies while the two connect. Before a rank
// sends a message or takes one, the two have proven who they are (introduction.hpp). Messages are numbered, as UCX may
// use several rails: they are matched in the order of sending.
//
// A rank that leaves in good order removes its address from the store, says goodbye to those that it is connected to,
// and then closes. So a connection that closes is a loss, unless a goodbye came before, or the address is gone.
//
// One thread at a time may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "backend/match_table.hpp"
#include "backend/module.hpp"
#include "backend/ucx/introduction.hpp"
#include "backend/ucx/record.hpp"
#include "backend/ucx/sockets.hpp"
#include "backend/ucx/worker.hpp"

namespace col::ucx_backend {

// By which UCX knows our messages.
inline constexpr unsigned kMessageId = 1;

// As many calls of progress as UCX takes to close endpoints, or to notice that a peer has.
inline constexpr int kFewRounds = 8;

enum class Kind : std::uint32_t { hello = 1, proof, message, goodbye, broken };

// On the wire, before the data of every message.
struct Header {
  Kind kind = Kind::hello;
  std::int32_t from = -1;
  std::uint64_t key = 0;     // of the direction; 0 for hello and proof
  std::uint64_t slot = 0;    // of a message
  std::uint64_t number = 0;  // how many messages its rank has sent to this one before
};
static_assert(sizeof(Header) == 32);

// A send or a receive.
struct Operation {
  bool sending = false;
  bool done = false;
  int peer = kAnyPeer;                // for a receive from any peer: known once it is paired
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ticket = 0;
  ucs_status_t status = UCS_OK;  // an error of UCX's
  Header header = {};            // UCX reads it as long as the send lasts
  Operation* next = nullptr;     // in the table that it is in
};

class Engine {
 public:
  // Throws what choose_settings() and Worker throw, and unavailable (no libcrypto).
  Engine(const ConnectRequest& request, const backend::Module::Environment& environment);
  // Closes all connections, without a word. UCX may write into receives until it is over.
  ~Engine();

  // For the store, from which it is removed when the rank leaves.
  Record record() const;
  // The addresses of the hosts of all ranks: nobody else may connect from then on.
  void admit(const std::vector<std::string>& hosts) { sockets_.admit(hosts); }

  // Whether all peers are connected and have proven themselves; connects to those that are not. Throws peer_lost,
  // mismatch.
  bool has_met_all();
  // Throws peer_lost if one is lost.
  void require_peers() const;
  void sleep(Duration time) const { worker_->sleep(time); }

  Operation& send(int to, std::uint64_t slot, const std::byte* data, std::uint64_t bytes);
  // `from` may be kAnyPeer. Throws mismatch.
  Operation& receive(int from, std::uint64_t slot, std::byte* data, std::uint64_t bytes);
  // See backend::SideOps.
  backend::SideOps::Probed probe(std::span<const int> senders, std::uint64_t slot);
  Operation* find(Ticket ticket) noexcept;
  void remove(const Operation& operation) { operations_.erase(operation.ticket); }

  // Moves what can move without waiting. Returns whether it is time to look at the hosts, twice a second. Throws
  // mismatch, and io.
  bool progress();
  // Throws peer_lost if `operation` can never be done.
  void require_hope(const Operation& operation);
  // For a thread that is going to sleep: false if there is something to do now.
  bool arm() { return worker_ == nullptr || worker_->arm(); }
  int event_descriptor() const { return worker_->event_descriptor(); }

  // The last words of a rank that leaves in good order. Returns when they are on their way, or time is over.
  void say_goodbye() noexcept;
  // Tells the peers, as far as they can be told, and closes all connections: from then on, UCX touches no memory of an
  // operation.
  void break_off(const Error& cause) noexcept;

 private:
  // A message that came before its receive, or before one that was sent earlier.
  struct Arrival {
    int peer = -1;
    std::uint64_t slot = 0;
    std::uint64_t bytes = 0;
    void* announced = nullptr;         // UCX's name for a large one; it is still with its sender
    const std::byte* data = nullptr;   // of a small one
    std::vector<std::byte> kept = {};  // what `data` points to, once UCX wants its own back
    Arrival* next = nullptr;
    std::list<Arrival>::iterator place = {};
  };

  struct Peer {
    Engine* engine = nullptr;
    int rank = -1;
    ucp_ep_h endpoint = nullptr;
    std::unique_ptr<Introduction> introduction;
    bool greeted = false;                  // this rank has said hello
    std::optional<std::string> to_answer;  // the nonce of a hello
    std::string answered;                  // the one that was last answered
    bool proven = false;
    Keys keys;
    std::uint64_t sent = 0, taken = 0;        // messages
    std::deque<Operation*> outbox;            // until the peer has proven itself
    std::map<std::uint64_t, Arrival*> early;  // by number
    std::optional<std::uint64_t> leaves_at;   // it has said goodbye after that many messages
    std::optional<ucs_status_t> closed;       // the connection is
    bool left = false;                        // in good order
    std::string lost;                         // why; empty: it is not
  };

  // Words of this rank that are on their way.
  struct Note {
    Header header;
    std::string text;
    Engine* engine = nullptr;
    std::list<Note>::iterator place = {};
  };

  Peer* peer(int rank) noexcept;
  bool connect(Peer& peer);
  void greet(Peer& peer);
  void tell(Peer& peer, Kind kind, std::string text = {});
  void push_out(Peer& peer);
  void start(Peer& peer, Operation& send);

  ucs_status_t take(const Header& header, void* data, std::size_t bytes, bool announced);
  void take_hello(Peer& peer, std::string_view nonce);
  void take_proof(Peer& peer, std::string_view words);
  bool take_message(Peer& peer, const Header& header, Arrival arrival);
  bool deliver(Peer& peer, Arrival arrival);
  void pair(Arrival& arrival, Operation& receive);
  Arrival& keep(Arrival arrival);
  void note_goodbye(Peer& peer) noexcept;
  void say_stranger() noexcept;

  void close() noexcept;
  void attend();
  void settle(Peer& peer);
  Operation& add(int peer, std::uint64_t slot, std::uint64_t bytes);

  static ucs_status_t on_message(void* engine, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* parameters);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);
  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_received(void* request, ucs_status_t status, std::size_t bytes, void* operation);
  static void on_told(void* request, ucs_status_t status, void* note);

  const int rank_;
  const std::uint64_t token_;
  const std::string secret_;
  const std::shared_ptr<Store> store_;  // shared with the group layer
  const Settings settings_;
  // Peers and what UCX may still look at: they go after the worker.
  std::vector<Peer> peers_;  // by rank; this rank's place is not used
  std::unordered_map<std::uint64_t, Operation> operations_;
  std::uint64_t next_ticket_ = 1;
  std::list<Note> notes_;
  std::list<Arrival> arrivals_;
  backend::MatchTable<Operation> receives_;
  backend::MatchTable<Arrival> unexpected_;
  Sockets sockets_;
  bool is_closing_ = false;
  bool needs_attention_ = false;
  bool has_said_stranger_ = false;
  std::exception_ptr failure_;  // of a function that UCX called
  std::unique_ptr<Worker> worker_;
};

}  // namespace col::ucx_backend
