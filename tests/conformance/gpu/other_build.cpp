// A module of another build of col.
#include <col/backend.hpp>

extern "C" COL_EXPORT const col::BackendModule* col_backend_entry() {
  static constexpr col::BackendModule kModule{"0.0.0 another build", nullptr};
  return &kModule;
}
