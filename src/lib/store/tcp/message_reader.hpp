// Cuts a stream of bytes into messages, with bounded memory: a length field alone never makes it allocate.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/tcp/budget.hpp"
#include "store/tcp/protocol.hpp"

namespace col::store::tcp {

class MessageReader {
 public:
  enum class Status {
    incomplete,  // feed() more
    complete,    // a message; its body is valid until the next call of anything
    too_long,    // the header announces more than the limit; nothing after it can be read
    no_room,     // the budget has no room for the body, which is skipped; only the header is valid
  };
  struct Message {
    Header header;
    std::string_view body;
  };

  // `budget` is charged for bodies above kFreeBytes; null: no charge. `limit`: the longest body.
  explicit MessageReader(std::size_t limit, Budget* budget = nullptr) noexcept : limit_(limit), budget_(budget) {}

  void set_limit(std::size_t limit) noexcept { limit_ = limit; }
  void feed(std::string_view bytes);
  Status next(Message& message);
  // Whether a message has begun and is not complete.
  bool in_message() const noexcept { return begin_ < buffer_.size() || skip_ > 0; }
  // Takes up to `most` unchanged bytes from the front: for what comes before the first message.
  std::string_view buffered() const noexcept { return std::string_view(buffer_).substr(begin_); }
  void drop_front(std::size_t size) noexcept { begin_ += size; }

  static constexpr std::size_t kFreeBytes = 4096;

 private:
  void skip() noexcept;
  void tidy();

  std::size_t limit_;
  Budget* const budget_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what has not been handed out
  std::size_t skip_ = 0;   // bytes of a body that has been refused
  bool charged_ = false;   // the message at begin_ has been looked at
  Charge charge_;
};

}  // namespace col::store::tcp
