// Records which case this process was in when it crashed.
#pragma once

#include <string_view>

namespace col::colcheck {

// From here on, a fatal signal writes one line to stderr that names the rank and the case, and then ends the process as
// it would have without this. Call it once, before any other handler of these signals is installed.
void install_crash_note(int rank);

// The case that begins now. Async-signal-safe readers see this text or the one before, perhaps mixed.
void note_case(std::string_view token) noexcept;

}  // namespace col::colcheck
