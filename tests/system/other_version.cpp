// Preloaded, it makes of this libcol one of another version, as far as the ranks that it talks to can see.
#include <string_view>

namespace col {
// The one of <col/group.hpp>, which libcol calls for all that it says of itself.
[[gnu::visibility("default")]] std::string_view version() noexcept {
  return "9.9.9";
}
}  // namespace col
