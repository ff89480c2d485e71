// The kinds of memory of a case's buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <col/types.hpp>

namespace col::colcheck {

struct Case;

enum class Devices : std::uint8_t {
  cpu,    // the host
  cuda,   // each rank's GPU
  mixed,  // one or the other: device_of()
};

std::string_view to_string(Devices devices);
// Nothing if there is none of that name.
std::optional<Devices> devices_from_string(std::string_view name);

// The two buffers of a call; in place, the input is both.
enum class Side : std::uint8_t { input, output };

// The kind of memory of a rank's buffer. Mixed: inputs of even ranks are in host memory, and those of odd ranks in GPU
// memory. Outputs are the same in one half of the cases, and the opposite in the other half.
Device::Type device_of(const Case& c, int rank, Side side);

// Whether a rank needs a GPU: for its buffers, or for the backend.
bool needs_gpu(Devices devices, std::string_view backend);

}  // namespace col::colcheck
