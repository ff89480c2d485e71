#include "store/file_name.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"

namespace col::store {
namespace {

constexpr std::string_view kEmptyKey = "%";
constexpr std::string_view kBucketMark = "%%";

bool stands_for_itself(char c, std::size_t position) noexcept {
  if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) return true;
  if (c == '.') return position != 0;  // "." and ".." are no files, and hidden names are left to the file system
  return c == '_' || c == '-' || c == ':' || c == ',' || c == '=' || c == '@' || c == '+';
}

}  // namespace

std::string encode(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string name;
  name.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (stands_for_itself(bytes[i], i)) {
      name += bytes[i];
    } else {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      name += '%';
      name += kDigits[byte >> 4];
      name += kDigits[byte & 15];
    }
  }
  return name;
}

FileName file_name(std::string_view key, KeyHash hash) {
  if (key.empty()) return {std::string(kEmptyKey)};
  if (key.size() <= kLongestName) {  // a longer key has a longer name: spare the encoding of megabytes
    std::string name = encode(key);
    if (name.size() <= kLongestName) return {std::move(name)};
  }
  return {fmt::format("{}{:016x}", kBucketMark, hash(key)), true};
}

bool is_bucket(std::string_view name) noexcept {
  return name.starts_with(kBucketMark);
}

bool is_key_file(std::string_view name) noexcept {
  return !name.starts_with('.') && !is_bucket(name);
}

std::uint64_t default_hash(std::string_view key) {
  return core::Hash().add(key).value();
}

}  // namespace col::store
