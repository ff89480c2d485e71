// What libcol looks for in this library.
#include "backend/build_id.hpp"
#include "backend/nccl/factory.hpp"

extern "C" COL_EXPORT const col::BackendModule* col_backend_entry() {
  static constexpr col::BackendModule kModule{col::backend::kBuildId, col::nccl_backend::make_factory};
  return &kModule;
}
