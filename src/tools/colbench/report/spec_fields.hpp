// What a row measures, as a member of JSON documents.
#pragma once

#include <cstdint>
#include <limits>

#include "colbench/cell/cell.hpp"
#include "json/json_fields.hpp"

namespace col::colbench {

inline constexpr int kMostInJson = 1'000'000;  // more ranks, launches, … than there can be
inline constexpr core::Within kRankInJson = core::within(0, kMostInJson);
inline constexpr core::Within kSizeInJson = core::within(0, std::numeric_limits<std::int64_t>::max());

// A rank, or "rotate".
struct RootInJson {
  void write(core::JsonBuilder& out, int root) const {
    if (root == kRotatingRoot)
      out.add("rotate");
    else
      core::write_json(out, root);
  }
  void read(const core::JsonPlace& place, int& root) const {
    if (place.is_text() && place.text() == "rotate")
      root = kRotatingRoot;
    else
      kRankInJson.read(place, root);
  }
};

// A type by its name; an opaque one has its size in it.
struct DTypeName {
  void write(core::JsonBuilder& out, DType dtype) const { out.add(col::to_string(dtype)); }
  void read(const core::JsonPlace& place, DType& dtype) const {
    if (place.is_text() && place.text().starts_with("bytes[")) {
      try {
        dtype = dtype_from_string(place.text());
        return;
      } catch (const Error&) {  // said below
      }
    }
    core::Named{DType{kDTypeCount - 1}, col::to_string}.read(place, dtype);
  }
};

// "spec" in report/json.hpp.
template <class Visit>
void fields(CellSpec& spec, Visit& visit) {
  auto& [operation, backend, algorithm, device, dtype, op, root, bytes, ranks, in_place, cadence, cache, groups, pair,
         order] = spec;
  visit("operation", operation, core::Named{Operation{kOperationCount - 1}, to_string});
  visit("backend", backend);
  visit("algorithm", algorithm);
  visit("device", device, core::Named{Devices{kDevicesCount - 1}, to_string});
  visit("dtype", dtype, DTypeName());
  visit("op", op, core::Named{ReduceOp{kReduceOpCount - 1}, col::to_string});
  visit("root", root, RootInJson());
  visit("bytes", bytes, kSizeInJson);
  visit("ranks", ranks, core::within(1, kMostInJson));
  visit("in_place", in_place);
  visit("cadence", cadence, core::Named{Cadence::prepared, to_string});
  visit("cache", cache, core::Named{CacheState::rotate, to_string});
  visit("groups", groups, core::TextOrNull());
  visit("pair", pair, kRankInJson);
  visit.if_set("order", order, order != col::Order::any, core::Named{col::Order::exact, col::to_string});
}

}  // namespace col::colbench
