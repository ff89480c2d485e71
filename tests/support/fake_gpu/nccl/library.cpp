#include "support/fake_gpu/nccl/library.hpp"

#include <mutex>

namespace fake_nccl {
namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};

LastError& shared_error() {
  static LastError* instance = new LastError;
  return *instance;
}

}  // namespace

void fail(ncclResult_t code, const std::string& text) {
  throw Failure{code, text};
}

void require(bool condition, const std::string& text) {
  if (!condition) fail(ncclInvalidArgument, text);
}

void require_cuda(int result, const std::string& text) {
  if (result != 0) fail(ncclUnhandledCudaError, text + ": CUDA error " + std::to_string(result));
}

fake_gpu::CallLog& call_log() {
  static fake_gpu::CallLog* instance = new fake_gpu::CallLog("FAKE_NCCL_FAIL");
  return *instance;
}

int version() {
  static const int number = static_cast<int>(fake_gpu::number_setting("FAKE_NCCL_VERSION", kBuiltVersion));
  return number;
}

void set_last_error(const std::string& text) {
  LastError& error = shared_error();
  std::lock_guard lock(error.mutex);
  error.text = text;
}

const char* last_error() {
  thread_local std::string copy;
  LastError& error = shared_error();
  std::lock_guard lock(error.mutex);
  copy = error.text;
  return copy.c_str();
}

}  // namespace fake_nccl
