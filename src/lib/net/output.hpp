// The data that is still to be sent over a connection.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/export/module_export.hpp"

namespace col::net {

// Shared: what they belong to may be replaced while they are being sent.
using SharedBytes = std::shared_ptr<const std::string>;

class COL_MODULE_EXPORT Output {
 public:
  void add(std::string_view bytes);
  // Refers to `body` until it is sent.
  void add(std::string_view head, SharedBytes body);

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  // Fills `pieces` with the first pieces in order, as many as fit, and returns their number. Valid until the next call
  // of any other function.
  std::size_t pieces(std::span<std::string_view> pieces) const noexcept;
  // Requires: size <= size(). The first `size` bytes have been sent.
  void drop_front(std::size_t size) noexcept;

 private:
  struct Piece {
    std::string head;
    SharedBytes body;  // may be null
    std::size_t size() const noexcept { return head.size() + (body ? body->size() : 0); }
  };
  std::deque<Piece> pieces_;
  std::size_t sent_ = 0;  // of the first piece
  std::size_t size_ = 0;
};

}  // namespace col::net
