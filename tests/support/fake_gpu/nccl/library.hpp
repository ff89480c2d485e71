// What the stand-in for NCCL shares between its entry points: version, calls and faults, texts of errors.
#pragma once

#include <nccl.h>

#include <string>

#include "support/fake_gpu/common.hpp"

namespace fake_nccl {

// Thrown inside the stand-in, caught by its entry points.
struct Failure {
  ncclResult_t code;
  std::string text;
};

[[noreturn]] void fail(ncclResult_t code, const std::string& text);
// Throws unless the condition holds: ncclInvalidArgument.
void require(bool condition, const std::string& text);
// ncclUnhandledCudaError for anything but success.
void require_cuda(int result, const std::string& text);

fake_gpu::CallLog& call_log();
// FAKE_NCCL_VERSION, or what the library was built as.
int version();
extern const int kBuiltVersion;
void set_last_error(const std::string& text);
const char* last_error();

// `since` is the version that brought the function: an older library does not have it.
template <typename Body>
ncclResult_t entry(const char* name, int since, Body body) {
  try {
    if (auto code = call_log().enter(name)) {
      set_last_error(std::string("fault set for ") + name);
      return static_cast<ncclResult_t>(*code);
    }
    if (version() < since) fail(ncclInvalidUsage, std::string(name) + " is not in this version");
    return body();
  } catch (const Failure& failure) {
    set_last_error(failure.text);
    return failure.code;
  }
}

}  // namespace fake_nccl
