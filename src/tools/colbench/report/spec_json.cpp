#include "colbench/report/spec_json.hpp"

namespace col::colbench {

using Json = nlohmann::ordered_json;

Json json_of_spec(const CellSpec& spec) {
  Json pair;
  if (spec.pair) pair = {spec.pair->first, spec.pair->second};
  return {{"operation", to_string(spec.operation)},
          {"backend", spec.backend},
          {"algorithm", spec.algorithm},
          {"device", to_string(spec.device)},
          {"dtype", col::to_string(spec.dtype)},
          {"op", col::to_string(spec.op)},
          {"root", spec.root == kRotatingRoot ? Json("rotate") : Json(spec.root)},
          {"bytes", spec.bytes},
          {"ranks", spec.ranks},
          {"in_place", spec.in_place},
          {"cadence", to_string(spec.cadence)},
          {"cache", to_string(spec.cache)},
          {"groups", spec.groups.empty() ? Json() : Json(spec.groups)},
          {"pair", std::move(pair)}};
}

}  // namespace col::colbench
