// The kernels that are asked for against those in the fat binary, which stand-ins on the host would hide.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/nccl/kernels.hpp"
#include "support/catch.hpp"

using col::nccl_backend::Kernels;
using col::nccl_backend::kKernelImage;

namespace {

std::size_t occurrences(std::string_view text, std::string_view of) {
  std::size_t count = 0;
  for (std::size_t at = text.find(of); at != std::string_view::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("nccl kernels: each that is asked for is in the image, for every generation of GPUs", "[nccl]") {
  const std::string_view image(reinterpret_cast<const char*>(kKernelImage.data()), kKernelImage.size_bytes());
  const std::size_t generations = occurrences(image,
                                              "\x7f"
                                              "ELF");
  CHECK(generations >= 2);
  for (const std::string& name : Kernels::names()) {
    INFO(name);
    // In the table of symbols of each, and in the text that the driver compiles for the GPUs of other generations.
    CHECK(occurrences(image, std::string(1, '\0') + name + '\0') == generations);
    CHECK(occurrences(image, ".entry " + name + "(") == 1);
  }
  CHECK(occurrences(image, ".entry ") == Kernels::names().size());
  CHECK(occurrences(image, "fma.rn") == 0);  // a scaled sum rounds twice, as on the host
}

TEST_CASE("kernels: drivers of the generation of the compiler and newer ones serve, and older ones are named",
          "[nccl]") {
  using col::nccl_backend::Kernels;
  const int generation = col::nccl_backend::kKernelToolkit / 1000 * 1000;
  REQUIRE(generation >= 12000);
  CHECK(Kernels::why_not_with(generation) == "");
  CHECK(Kernels::why_not_with(generation + 1010) == "");
  const std::string problem = Kernels::why_not_with(generation - 960);
  CHECK(problem.find(" is for " + std::to_string(generation / 1000 - 1) + ".4: update it") != std::string::npos);
}
