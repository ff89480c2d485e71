#include "backend/gloo/connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <sys/uio.h>

#include "net/stream.hpp"

namespace col::gloo_backend {
namespace {

// What one call moves at most, so that others get their turn.
constexpr std::size_t kQuantum = std::size_t{512} << 10;
constexpr std::size_t kReadAhead = std::size_t{8} << 10;
constexpr std::size_t kFramesAtOnce = 16;

[[noreturn]] void fail(const char* what, int error) {
  if (error == 0) throw ::gloo::IoException("connection closed by the other side");
  throw ::gloo::IoException(fmt::format("{}: {}", what, std::strerror(error)));
}

}  // namespace

bool Connection::read(bool has_ended) {
  std::array<char, kReadAhead> ahead;
  for (std::size_t moved = 0; moved < kQuantum;) {
    std::array<iovec, 2> parts;
    std::size_t count = 0;
    const std::size_t direct = std::min(missing_, kQuantum);
    if (direct > 0) parts[count++] = {into_, direct};
    // Behind a part of a payload comes the rest of it.
    if (direct == missing_) parts[count++] = {ahead.data(), ahead.size()};
    const net::Moved moved_now = net::receive(socket_.get(), std::span(parts).first(count));
    if (moved_now.has_ended) fail("read", moved_now.error);
    const std::size_t bytes = moved_now.bytes;
    if (bytes == 0) return false;
    bytes_read_ += bytes;
    const std::size_t placed = std::min(bytes, direct);
    if (placed > 0) {
      into_ += placed;
      missing_ -= placed;
      if (missing_ == 0) end_payload();
    }
    take(ahead.data(), bytes - placed);
    moved += bytes;
    const std::size_t asked = direct + (count == 2 || direct == 0 ? ahead.size() : 0);
    // Less than asked for: nothing is left, and what comes is a new event. Of an end, there may be no other.
    if (bytes < asked && !has_ended) return false;
  }
  return true;
}

void Connection::take(const char* data, std::size_t bytes) {
  while (bytes > 0) {
    char* const to = missing_ > 0 ? into_ : reinterpret_cast<char*>(&frame_) + frame_bytes_;
    const std::size_t part = std::min(bytes, missing_ > 0 ? missing_ : sizeof(frame_) - frame_bytes_);
    std::memcpy(to, data, part);
    data += part;
    bytes -= part;
    if (missing_ > 0) {
      into_ += part;
      missing_ -= part;
      if (missing_ == 0) end_payload();
      continue;
    }
    frame_bytes_ += part;
    if (frame_bytes_ < sizeof(frame_)) return;
    frame_bytes_ = 0;
    begin_payload();
  }
}

void Connection::begin_payload() {
  if (!has_payload(frame_.kind)) return sink_.arrived(peer_, frame_, {});
  payload_ = sink_.place_for(peer_, frame_);
  into_ = payload_.operation != nullptr ? payload_.operation->data : payload_.kept.get();
  missing_ = frame_.bytes;
  if (missing_ == 0) end_payload();
}

void Connection::end_payload() {
  sink_.arrived(peer_, frame_, std::exchange(payload_, {}));
}

bool Connection::write() {
  is_stuck_ = true;
  for (std::size_t moved = 0; !out_.empty();) {
    if (moved >= kQuantum) return true;
    std::array<iovec, 2 * kFramesAtOnce> parts;
    std::size_t count = 0, asked = 0;
    for (Outgoing& one : out_) {
      if (count + 2 > parts.size() || asked >= kQuantum) break;
      const std::size_t of_frame = std::min(one.written, sizeof(one.frame));
      if (of_frame < sizeof(one.frame))
        parts[count++] = {reinterpret_cast<char*>(&one.frame) + of_frame, sizeof(one.frame) - of_frame};
      const std::size_t of_payload = one.written - of_frame;
      const std::size_t payload = std::min(one.payload_bytes() - of_payload, kQuantum);
      if (payload > 0) parts[count++] = {one.operation->data + of_payload, payload};
      asked += sizeof(one.frame) - of_frame + payload;
      if (of_payload + payload < one.payload_bytes()) break;
    }
    const net::Moved sent = net::send(socket_.get(), std::span(parts).first(count));
    if (sent.has_ended) fail("write", sent.error);
    if (sent.bytes == 0) return false;
    moved += sent.bytes;
    bytes_written_ += sent.bytes;
    for (std::size_t left = sent.bytes; !out_.empty();) {
      Outgoing& one = out_.front();
      const std::size_t part = std::min(left, sizeof(one.frame) + one.payload_bytes() - one.written);
      one.written += part;
      left -= part;
      if (one.written < sizeof(one.frame) + one.payload_bytes()) break;
      const Outgoing whole = std::move(one);
      out_.pop_front();
      if (whole.operation != nullptr) sink_.written(whole.operation);
    }
  }
  is_stuck_ = false;
  return false;
}

}  // namespace col::gloo_backend
