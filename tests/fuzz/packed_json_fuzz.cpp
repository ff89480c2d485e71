// Bytes as packed JSON: they are read or are an invalid_argument, in memory in proportion to their size. What was read
// survives being packed again.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/error.hpp>

#include "json/packed_json.hpp"
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  nlohmann::json value;
  try {
    const col::fuzz::AllocationLimit limit(col::fuzz::bytes_for_text(size));
    value = col::core::unpacked(bytes, "fuzz");
  } catch (const col::Error& error) {
    if (error.code() != col::ErrorCode::invalid_argument)
      col::fuzz::fail(fmt::format("not an invalid_argument: {}", error.what()));
    return 0;
  }
  if (col::core::unpacked(col::core::packed(value), "again") != value)
    col::fuzz::fail("another value after being packed");
  return 0;
}
