#include "json/packed_json.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/error.hpp>

namespace col::core {
namespace {

using nlohmann::json;

constexpr int kDeepestPacked = 32;  // the parser calls itself for each level
// A value takes 16 bytes of memory, and may have come as a single one.
constexpr std::size_t kMostValues = std::size_t{1} << 23;

template <class Json>
std::string packed_of(const Json& value) {
  std::string bytes;
  Json::to_msgpack(value, nlohmann::detail::output_adapter<char>(bytes));
  return bytes;
}

// Walks over packed values and keeps none of them. Each function is one that nlohmann's parser calls; false ends it.
class Walk {
 public:
  explicit Walk(std::size_t bytes) : bytes_(bytes) {}

  const std::string& refused() const { return refused_; }

  bool null() { return counts(); }
  bool boolean(bool) { return counts(); }
  bool number_integer(std::int64_t) { return counts(); }
  bool number_unsigned(std::uint64_t) { return counts(); }
  bool number_float(double number, const std::string&) {
    return std::isfinite(number) ? counts() : refuse("a number that is not finite");
  }
  bool string(std::string&) { return counts(); }
  bool binary(json::binary_t&) { return refuse("data that JSON has not"); }
  bool key(std::string&) { return true; }
  bool start_object(std::size_t members) { return begins(members, 2); }
  bool start_array(std::size_t values) { return begins(values, 1); }
  bool end_object() { return ends(); }
  bool end_array() { return ends(); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    return refuse(fmt::format("not whole at byte {} of {}", position, bytes_));
  }

 private:
  bool refuse(std::string what) {
    if (refused_.empty()) refused_ = std::move(what);
    return false;
  }
  bool counts() { return ++values_ <= kMostValues || refuse(fmt::format("more than {} values", kMostValues)); }
  bool begins(std::size_t parts, std::size_t bytes_of_part) {
    if (parts > bytes_ / bytes_of_part)
      return refuse("a list or an object that says that it is longer than all that came");
    if (++depth_ > kDeepestPacked)
      return refuse(fmt::format("lists and objects nested more than {} deep", kDeepestPacked));
    return counts();
  }
  bool ends() {
    --depth_;
    return true;
  }

  std::size_t bytes_, values_ = 0;
  int depth_ = 0;
  std::string refused_ = {};
};

}  // namespace

std::string packed(const json& value) {
  return packed_of(value);
}

std::string packed(const nlohmann::ordered_json& value) {
  return packed_of(value);
}

json unpacked(std::string_view bytes, std::string_view source) {
  Walk walk(bytes.size());
  if (!json::sax_parse(bytes.begin(), bytes.end(), &walk, json::input_format_t::msgpack))
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", source, walk.refused()));
  return json::from_msgpack(bytes.begin(), bytes.end());
}

}  // namespace col::core
