#include "support/fake_gpu/cuda/machine.hpp"

#include <pthread.h>

#include "support/fake_gpu/cuda/stream.hpp"

namespace fake_gpu {
namespace {

std::string running_work(const Machine& machine) {
  std::string text;
  for (const Device& device : machine.devices) {
    if (device.primary == nullptr) continue;
    auto add = [&](const Stream& stream) {
      if (stream.running() != nullptr) text += std::string(text.empty() ? "" : ", ") + stream.running();
    };
    add(*device.primary->null_stream);
    for (const auto& stream : device.primary->streams) add(*stream);
  }
  return text.empty() ? "nothing runs" : "running: " + text;
}

}  // namespace

Machine::Machine()
    : delay(number_setting("FAKE_GPU_DELAY_US", 0)),
      driver_version(static_cast<int>(number_setting("FAKE_GPU_DRIVER", 13000))) {}

// A child is told, rather than asked for its pid at each of the many calls that only look at an event.
void Machine::start() {
  initialized = true;
  [[maybe_unused]] static const int told = pthread_atfork(nullptr, nullptr, [] { machine().lost = true; });
}

DeviceMemory* Machine::memory_of(uint64_t address) const {
  const int device = device_of(address);
  return device < 0 ? nullptr : devices[device].memory.get();
}

int Machine::device_of(uint64_t address) const {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].memory->owns(address)) return static_cast<int>(i);
  }
  return -1;
}

void Machine::wait(Lock& lock, const std::string& what, const std::function<bool()>& done) {
  // The system's clock, because ThreadSanitizer of gcc 12 does not know waits by the steady one.
  const auto deadline = std::chrono::system_clock::now() + longest_wait();
  if (changed.wait_until(lock, deadline, done)) return;
  die(what + " took longer than FAKE_GPU_TIMEOUT; " + running_work(*this));
}

Machine& machine() {
  static Machine* instance = new Machine;
  return *instance;
}

CallLog& call_log() {
  static CallLog* instance = new CallLog("FAKE_GPU_FAIL");
  return *instance;
}

}  // namespace fake_gpu
