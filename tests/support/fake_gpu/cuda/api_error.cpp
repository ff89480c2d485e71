// Entry points: names of errors. The stand-in's texts are the names in words.
#include <algorithm>
#include <cctype>
#include <map>

#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

struct ErrorName {
  CUresult code;
  const char* name;  // after CUDA_ERROR_
};

// Those that the stand-in gives, and those that it is told to give.
constexpr ErrorName kErrors[] = {
    {CUDA_ERROR_INVALID_VALUE, "INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "OUT_OF_MEMORY"},
    {CUDA_ERROR_NOT_INITIALIZED, "NOT_INITIALIZED"},
    {CUDA_ERROR_DEINITIALIZED, "DEINITIALIZED"},
    {CUDA_ERROR_NO_DEVICE, "NO_DEVICE"},
    {CUDA_ERROR_INVALID_DEVICE, "INVALID_DEVICE"},
    {CUDA_ERROR_INVALID_IMAGE, "INVALID_IMAGE"},
    {CUDA_ERROR_INVALID_CONTEXT, "INVALID_CONTEXT"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "NO_BINARY_FOR_GPU"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "ECC_UNCORRECTABLE"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "UNSUPPORTED_PTX_VERSION"},
    {CUDA_ERROR_INVALID_HANDLE, "INVALID_HANDLE"},
    {CUDA_ERROR_ILLEGAL_STATE, "ILLEGAL_STATE"},
    {CUDA_ERROR_NOT_FOUND, "NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "NOT_READY"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "ILLEGAL_ADDRESS"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "LAUNCH_OUT_OF_RESOURCES"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CONTEXT_IS_DESTROYED"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "HOST_MEMORY_ALREADY_REGISTERED"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "HOST_MEMORY_NOT_REGISTERED"},
    {CUDA_ERROR_LAUNCH_FAILED, "LAUNCH_FAILED"},
    {CUDA_ERROR_NOT_PERMITTED, "NOT_PERMITTED"},
    {CUDA_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "SYSTEM_DRIVER_MISMATCH"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "STREAM_CAPTURE_UNSUPPORTED"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "STREAM_CAPTURE_INVALIDATED"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "STREAM_CAPTURE_MERGE"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "STREAM_CAPTURE_UNMATCHED"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "STREAM_CAPTURE_UNJOINED"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "STREAM_CAPTURE_ISOLATION"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "STREAM_CAPTURE_IMPLICIT"},
    {CUDA_ERROR_CAPTURED_EVENT, "CAPTURED_EVENT"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "STREAM_CAPTURE_WRONG_THREAD"},
    {CUDA_ERROR_UNKNOWN, "UNKNOWN"},
};

struct ErrorText {
  std::string name, text;
};

ErrorText in_words(const std::string& name) {
  std::string text = name;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return letter == '_' ? ' ' : static_cast<char>(std::tolower(letter)); });
  return {"CUDA_ERROR_" + name, text};
}

const ErrorText* find_error(CUresult code) {
  static const auto* const errors = [] {
    auto* all = new std::map<CUresult, ErrorText>{{CUDA_SUCCESS, {"CUDA_SUCCESS", "no error"}}};
    for (const ErrorName& error : kErrors) (*all)[error.code] = in_words(error.name);
    return all;
  }();
  const auto found = errors->find(code);
  return found == errors->end() ? nullptr : &found->second;
}

CUresult tell(const char* entry_point, CUresult error, const char** text, std::string ErrorText::*what) {
  return entry(entry_point, Needs::nothing, [&](Call&) {
    const ErrorText* found = find_error(error);
    *text = found == nullptr ? nullptr : (found->*what).c_str();
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

}  // namespace

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  return tell("cuGetErrorName", error, text, &ErrorText::name);
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  return tell("cuGetErrorString", error, text, &ErrorText::text);
}
