#include "support/fake_gpu/nccl/identity.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {
namespace {

constexpr char kMark[] = "fake nccl id";

struct Identity {
  char mark[16];
  uint64_t number;
};

}  // namespace

void make_identity(ncclUniqueId& id) {
  std::random_device random;
  Identity identity{};
  std::memcpy(identity.mark, kMark, sizeof kMark);
  identity.number = uint64_t{random()} << 32 | random();
  // The rest is not zero, as in real ones: who copies only a part loses something.
  std::memset(id.internal, 0x6E, sizeof id.internal);
  std::memcpy(id.internal, &identity, sizeof identity);
}

std::string text_of(const ncclUniqueId& id) {
  Identity identity;
  std::memcpy(&identity, id.internal, sizeof identity);
  const bool whole = id.internal[NCCL_UNIQUE_ID_BYTES - 1] == 0x6E;
  require(whole && std::memcmp(identity.mark, kMark, sizeof kMark) == 0, "not an identity of ncclGetUniqueId");
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(identity.number));
  return text;
}

}  // namespace fake_nccl
