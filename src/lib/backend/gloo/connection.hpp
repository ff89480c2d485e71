// One connection between two ranks: frames are put in, and come out. Never blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <gloo/common/error.h>

#include "backend/gloo/frames.hpp"
#include "backend/gloo/operation.hpp"
#include "core/unique_fd.hpp"

namespace col::gloo_backend {

// Why a connection has ended.
inline std::exception_ptr io_failure(const std::string& what) {
  return std::make_exception_ptr(::gloo::IoException(what));
}

// Where the payload of a frame is read to: the memory of `operation`, or `kept`.
struct Payload {
  OperationPtr operation = nullptr;
  std::unique_ptr<char[]> kept = nullptr;
};

// What a connection tells. All of it may throw IoException, upon which the caller of read() or write() has to close it.
class FrameSink {
 public:
  // Called before the payload is read.
  virtual Payload place_for(int peer, const Frame& frame) = 0;
  // The frame is there, with its payload.
  virtual void arrived(int peer, const Frame& frame, Payload payload) = 0;
  // The payload, from the memory of the operation, is in the socket.
  virtual void written(const OperationPtr& operation) = 0;

 protected:
  ~FrameSink() = default;
};

class Connection {
 public:
  Connection(int peer, FrameSink& sink) : peer_(peer), sink_(sink) {}

  // It is connected; before, it only keeps what is put in.
  void open(core::UniqueFd socket) { socket_ = std::move(socket); }
  bool is_open() const noexcept { return static_cast<bool>(socket_); }
  int socket() const noexcept { return socket_.get(); }

  // The payload is that of the operation.
  void put(const Frame& frame, OperationPtr operation = nullptr) { out_.push_back({frame, std::move(operation), 0}); }
  bool has_more_to_write() const noexcept { return !out_.empty(); }
  // Whether the last write() has left something.
  bool is_stuck() const noexcept { return is_stuck_; }

  // So far.
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  std::uint64_t bytes_written() const noexcept { return bytes_written_; }

  // Both move at most some hundred kilobytes, and return whether there may be more to do right now. They throw
  // IoException when the connection has ended. Requires: is_open().
  // `has_ended`: the other side writes no more, so read to the end.
  bool read(bool has_ended);
  bool write();

 private:
  struct Outgoing {
    Frame frame;
    OperationPtr operation;
    std::size_t written;

    std::size_t payload_bytes() const noexcept { return has_payload(frame.kind) ? frame.bytes : 0; }
  };

  void take(const char* data, std::size_t bytes);
  void begin_payload();
  void end_payload();

  const int peer_;
  FrameSink& sink_;
  core::UniqueFd socket_;
  std::deque<Outgoing> out_;
  bool is_stuck_ = false;
  std::uint64_t bytes_read_ = 0, bytes_written_ = 0;
  // What is being read.
  Frame frame_;
  std::size_t frame_bytes_ = 0;  // of frame_ that are there
  Payload payload_;
  char* into_ = nullptr;
  std::size_t missing_ = 0;  // of the payload
};

}  // namespace col::gloo_backend
