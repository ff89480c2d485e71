// Finding the program to run, before anything is started.
#pragma once

#include <string>

namespace col::launch {

// The path of `name`: itself when it holds a slash, else the first executable file of that name in PATH.
// Throws LaunchError: 127 when there is none, 126 when there is one that cannot be executed.
std::string resolve_program(const std::string& name);

// Throws LaunchError (126) for a program that was found but that exec refused with `error`.
[[noreturn]] void refuse_program(const std::string& path, int error);

}  // namespace col::launch
