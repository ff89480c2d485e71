// The environment of the stand-ins, and their way to end a process that cannot go on.
#pragma once

#include <chrono>
#include <string>

namespace fake_gpu {

std::string text_setting(const char* name, const std::string& otherwise);
// A value that is no number ends the process: a test with a misspelt setting must not pass.
long number_setting(const char* name, long otherwise);

// How long anything may wait before the process is ended: FAKE_GPU_TIMEOUT seconds.
std::chrono::seconds longest_wait();

// Says on stderr what is wrong and aborts: for waits without end and for wrong use that would go unnoticed.
[[noreturn]] void die(const std::string& text);

}  // namespace fake_gpu
