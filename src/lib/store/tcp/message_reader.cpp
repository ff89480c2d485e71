#include "store/tcp/message_reader.hpp"

#include <algorithm>
#include <utility>

namespace col::store::tcp {
namespace {

constexpr std::size_t kKeptCapacity = std::size_t{64} << 10;

}  // namespace

void MessageReader::feed(std::string_view bytes) {
  tidy();
  // What is skipped is not stored first.
  const std::size_t skipped = buffer_.empty() ? std::min(skip_, bytes.size()) : 0;
  skip_ -= skipped;
  buffer_ += bytes.substr(skipped);
}

MessageReader::Status MessageReader::next(Message& message) {
  tidy();
  skip();
  const std::string_view rest = buffered();
  if (rest.size() < kHeaderBytes) return Status::incomplete;
  const Header header = decode_header(rest);
  if (header.body_bytes > limit_) return Status::too_long;
  if (!charged_ && budget_ != nullptr && header.body_bytes > kFreeBytes) {
    auto charge = budget_->charge(header.body_bytes);
    if (!charge) {
      message = {header, {}};
      begin_ += kHeaderBytes;
      skip_ = header.body_bytes;
      skip();
      return Status::no_room;
    }
    charge_ = *std::move(charge);
  }
  charged_ = true;
  if (rest.size() - kHeaderBytes < header.body_bytes) return Status::incomplete;
  message = {header, rest.substr(kHeaderBytes, header.body_bytes)};
  begin_ += kHeaderBytes + header.body_bytes;
  charged_ = false;
  return Status::complete;
}

void MessageReader::skip() noexcept {
  const std::size_t skipped = std::min(skip_, buffer_.size() - begin_);
  begin_ += skipped;
  skip_ -= skipped;
}

void MessageReader::tidy() {
  if (!charged_) charge_ = {};
  if (begin_ == 0) return;
  if (begin_ < buffer_.size()) {
    // Amortised: what is moved is never more than what was handed out.
    if (begin_ < buffer_.size() - begin_) return;
    buffer_.erase(0, begin_);
  } else if (buffer_.capacity() > kKeptCapacity) {
    std::string().swap(buffer_);
  } else {
    buffer_.clear();
  }
  begin_ = 0;
}

}  // namespace col::store::tcp
