// The structs of DLPack (github.com/dmlc/dlpack), by which libraries of arrays lend one another their memory.
#pragma once

#include <cstdint>

namespace col::python::dlpack {

struct Device {
  std::int32_t device_type;
  std::int32_t device_id;
};

inline constexpr std::int32_t kCuda = 2;  // a device_type

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

// In a capsule of the name "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

struct Version {
  std::uint32_t major, minor;
};

// In a capsule of the name "dltensor_versioned".
struct VersionedTensor {
  Version version;
  void* context;
  void (*deleter)(VersionedTensor*);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t kReadOnly = 1;

// In a capsule of the name "dlpack_exchange_api", the attribute __dlpack_c_exchange_api__ of a type.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  int (*allocate)(Tensor*, VersionedTensor**, void*, void (*)(void*, const char*, const char*));
  int (*managed_from_object)(void*, VersionedTensor**);
  int (*object_from_managed)(VersionedTensor*, void**);
  int (*tensor_from_object)(void*, Tensor*);  // may be null; the tensor is valid as long as the object is unchanged
  int (*current_stream)(std::int32_t, std::int32_t, void**);
};

}  // namespace col::python::dlpack
