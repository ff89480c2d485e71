// Finds the program to run, before anything is started.
#pragma once

#include <string>

namespace col::launch {

// The path of `name`: `name` itself if it contains a slash, else the first executable file of that name in PATH. Throws
// LaunchError: 127 if there is none, 126 if there is one that cannot be executed.
std::string resolve_program(const std::string& name);

// Throws LaunchError (126) for a program that was found but that exec refused with `error`.
[[noreturn]] void refuse_program(const std::string& path, int error);

}  // namespace col::launch
