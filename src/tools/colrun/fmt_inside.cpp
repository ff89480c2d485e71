// What colrun uses of fmt, inside the program: libfmt.so would need libstdc++.so, and to load both takes longer than to
// start a rank. Should anything be missing here, it is taken from libfmt.so; format_to() with an iterator that is none
// of fmt's own is such a thing.
#include <fmt/format.h>

namespace {

// All that formats text calls this.
[[gnu::used]] std::string (*const format_inside)(fmt::string_view, fmt::format_args) = &fmt::vformat;

}  // namespace
