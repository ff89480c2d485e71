#include "common/status_line.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "common/text.hpp"

namespace col::tools {

void StatusLine::draw(const std::string& text) {
  if (!usable()) return;
  const std::size_t columns = columns_of(text);
  const std::string rest(std::max(columns, shown_) - columns, ' ');
  if (write("\r" + text + rest)) shown_ = columns;
}

void StatusLine::clear() {
  if (shown_ > 0 && write("\r" + std::string(shown_, ' ') + "\r")) shown_ = 0;
}

bool StatusLine::write(const std::string& text) {
  pollfd ready{fd_, POLLOUT, 0};
  // A terminal that has gone is ready to be written to, and to fail.
  if (::poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT) return false;
  return ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace col::tools
