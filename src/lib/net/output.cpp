#include "net/output.hpp"

#include <utility>

namespace col::net {
namespace {

// Copied rather than referred to: a piece of its own costs more.
constexpr std::size_t kSmallBytes = 512;
// What has been sent of a piece is kept until all of it is.
constexpr std::size_t kLargePiece = std::size_t{64} << 10;

}  // namespace

void Output::add(std::string_view bytes) {
  if (pieces_.empty() || pieces_.back().body || pieces_.back().head.size() >= kLargePiece) pieces_.emplace_back();
  pieces_.back().head += bytes;
  size_ += bytes.size();
}

void Output::add(std::string_view head, SharedBytes body) {
  add(head);
  if (body->size() <= kSmallBytes) return add(*body);
  size_ += body->size();
  pieces_.back().body = std::move(body);
}

std::size_t Output::pieces(std::span<std::string_view> pieces) const noexcept {
  std::size_t count = 0;
  std::size_t skipped = sent_;
  const auto show = [&](std::string_view text) {
    const std::size_t skip = std::min(skipped, text.size());
    skipped -= skip;
    if (skip < text.size() && count < pieces.size()) pieces[count++] = text.substr(skip);
  };
  for (const Piece& piece : pieces_) {
    if (count == pieces.size()) break;
    show(piece.head);
    if (piece.body) show(*piece.body);
  }
  return count;
}

void Output::drop_front(std::size_t size) noexcept {
  size_ -= size;
  sent_ += size;
  while (!pieces_.empty() && sent_ >= pieces_.front().size()) {
    sent_ -= pieces_.front().size();
    pieces_.pop_front();
  }
}

}  // namespace col::net
