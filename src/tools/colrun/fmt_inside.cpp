// The parts of fmt that colrun uses, inside of the program. libfmt.so would need libstdc++.so, and loading both takes
// longer than starting a rank. If anything is missing here, it is taken from libfmt.so; an example is format_to() with
// an iterator that is not one of fmt's own.
#include <fmt/format.h>

namespace {

// All that formats text calls this.
[[gnu::used]] std::string (*const format_inside)(fmt::string_view, fmt::format_args) = &fmt::vformat;

}  // namespace
