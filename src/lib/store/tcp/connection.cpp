#include "store/tcp/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/proof.hpp>

#include "core/clock/clock.hpp"
#include "net/stream.hpp"
#include "store/base/text.hpp"

namespace col::store::tcp {
namespace {

// On the stack: small, as a process may have many threads that wait.
constexpr std::size_t kChunk = std::size_t{8} << 10;
constexpr std::size_t kMaxErrorBytes = std::size_t{8} << 10;
// For the server to greet and to answer the hello: as long as it gives a client.
constexpr Duration kHandshakePatience = std::chrono::seconds(5);
constexpr std::string_view kOtherPort =
    "another program has that port: name the port of this job's store (COL_STORE, COL_RDZV_ENDPOINT)";

}  // namespace

Connection::Connection(const net::Endpoint& endpoint, std::string_view token, std::string_view job, Patience& patience,
                       bool once)
    : url_(url_of(endpoint)), fd_(connect_to(endpoint, patience, once)), reader_(kMaxErrorBytes) {
  patience.explain("it accepts connections, but says nothing: it is stopped, or no store of col");
  // The process that has the port now may be silent or slow, until the server has the port.
  Patience little = patience.part(kHandshakePatience, "proven who it is");
  try {
    const std::string nonce = read_greeting(little);
    shake_hands({.token = token, .job = job, .server_nonce = nonce}, little);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) patience.explain("it accepts connections and closes them without a word");
    if (error.code() != ErrorCode::timeout) throw;
    patience.check();
    throw Error(ErrorCode::io, error.message());
  }
  patience.explain({});
}

Connection::~Connection() {
  // A forked child may hold the socket open; the server is to know all the same.
  if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
}

// The server's nonce.
std::string Connection::read_greeting(Patience& patience) {
  while (true) {
    const std::string_view said = reader_.buffered();
    const std::size_t common = std::min(said.size(), kProtocol.size());
    if (said.substr(0, common) != kProtocol.substr(0, common))
      throw_stranger(fmt::format("says '{}'", printable(said.substr(0, kMaxGreetingBytes))));
    const std::string_view line = said.substr(0, said.find('\n') + 1);
    if (const auto nonce = nonce_in_greeting(line)) {
      std::string found(*nonce);
      reader_.drop_front(line.size());
      return found;
    }
    if (line == kFullGreeting)
      throw Error(
          ErrorCode::resource,
          fmt::format("the store at {} has as many connections as it takes; start the server with a larger limit "
                      "(StoreServerSpec::max_connections, ulimit -n), or use fewer ranks",
                      url_));
    if (!line.empty() || said.size() >= kMaxGreetingBytes)
      throw Error(ErrorCode::mismatch,
                  fmt::format("the store at {} says '{}', which is of another version of col than '{}'; use the same "
                              "version of col for all parts of the job",
                              url_, printable(said.substr(0, kMaxGreetingBytes)), printable(kGreetingStart)));
    if (!receive_some(patience)) throw_lost(0);
  }
}

void Connection::shake_hands(const Handshake& handshake, Patience& patience) {
  const auto id = next_id_++;
  const std::string nonce = make_nonce();
  send_text(make_hello(id, handshake, nonce), patience);
  std::optional<std::size_t> max_value_bytes;
  try {
    const Answer answer = receive(id, patience);
    if (answer.type == AnswerType::value) max_value_bytes = check_welcome(answer.bytes, handshake, nonce);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::mismatch) throw;
    throw Error(
        ErrorCode::mismatch,
        fmt::format("the store at {} refuses this process: {}; set COL_STORE_TOKEN, or COL_STORE_TOKEN_FILE, to "
                    "the token of this job, or name the port of this job's store (COL_STORE, "
                    "COL_RDZV_ENDPOINT) if that one is another job's",
                    url_, error.message()));
  }
  if (!max_value_bytes)
    throw_stranger("has not proven that it knows the token of this job, of which it was told nothing");
  max_value_bytes_ = *max_value_bytes;
  reader_.set_limit(max_value_bytes_ + kMaxErrorBytes);
}

std::uint64_t Connection::post(Request request) {
  request.id = next_id_++;
  posted_ += encode(request);
  return request.id;
}

void Connection::flush(Patience& patience) {
  if (posted_.empty()) return;
  send_text(posted_, patience);
  posted_.clear();
}

std::uint64_t Connection::send(const Request& request, Patience& patience) {
  const auto id = post(request);
  flush(patience);
  return id;
}

void Connection::send_text(std::string_view text, Patience& patience) {
  good_ = false;
  while (!text.empty()) {
    const net::Moved moved = net::send(fd_.get(), text);
    if (moved.has_ended) throw_lost(moved.error);
    text.remove_prefix(moved.bytes);
    if (moved.bytes == 0 && !net::wait_for(fd_.get(), POLLOUT, patience.slice())) patience.check();
  }
  good_ = true;
}

Answer Connection::receive(std::uint64_t id, Patience& patience) {
  while (true) {
    const Answer answer = receive_any(patience);
    if (answer.id != id) continue;  // of a wait that was given up
    if (answer.type == AnswerType::error) throw Error(answer.code, answer.bytes);
    return answer;
  }
}

Answer Connection::receive_any(Patience& patience) {
  while (true) {
    MessageReader::Message message;
    switch (reader_.next(message)) {
      case MessageReader::Status::complete: {
        const auto answer = decode_answer(message.header, message.body);
        if (!answer) throw_stranger("answers what is no message");
        return *answer;
      }
      case MessageReader::Status::incomplete:
        if (!receive_some(patience)) throw_lost(0);
        break;
      case MessageReader::Status::too_long:
      case MessageReader::Status::no_room:
        throw_stranger("answers what is no message");
    }
  }
}

// False at the end of the stream.
bool Connection::receive_some(Patience& patience) {
  std::array<char, kChunk> chunk;
  while (true) {
    // The kernel's own wait saves a call to poll, when there is time for it.
    const Duration slice = patience.slice();
    const bool blocks = slice == Patience::kLongestSlice && core::scheduler() == nullptr;
    if (blocks || net::wait_for(fd_.get(), POLLIN, slice)) {
      const net::Moved moved = net::receive(fd_.get(), chunk, blocks);
      if (moved.bytes > 0) {
        reader_.feed({chunk.data(), moved.bytes});
        return true;
      }
      if (moved.has_ended && moved.error != 0) throw_lost(moved.error);
      if (moved.has_ended) return false;
    }
    patience.check();
  }
}

void Connection::cancel(std::uint64_t id) noexcept {
  if (!std::exchange(good_, false)) return;
  try {
    const std::string text =
        encode(Request{.type = RequestType::cancel, .id = next_id_++, .number = static_cast<std::int64_t>(id)});
    good_ = net::send(fd_.get(), text).bytes == text.size();
  } catch (const std::exception&) {  // it stays unusable, and the server forgets the wait when it is closed
  }
}

void Connection::throw_lost(int error) {
  good_ = false;
  throw Error(ErrorCode::io,
              fmt::format("the store at {} has gone ({}); its process (rank 0, or the launcher on the first host) has "
                          "ended or was killed, or the network is down: see what it says last, and start the job again",
                          url_, error == 0 ? "it closed the connection" : std::generic_category().message(error)));
}

void Connection::throw_stranger(std::string_view why) {
  good_ = false;
  throw Error(ErrorCode::mismatch, fmt::format("{} answers, but is no store of col: it {}; {}", url_, why, kOtherPort));
}

}  // namespace col::store::tcp
