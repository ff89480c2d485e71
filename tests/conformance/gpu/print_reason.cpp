// Says whether the nccl backend can be used here, and why not.
#include <cstdio>

#include <col/col.hpp>

int main() {
  const std::string reason = col::nccl_unavailable_reason();
  std::printf("%s\n", reason.empty() ? "available" : reason.c_str());
  return col::nccl_available() == reason.empty() ? 0 : 1;
}
