#include "store/key_file.hpp"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

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

constexpr std::size_t kLengthBytes = 8;

[[noreturn]] void throw_damaged() {
  throw Error(ErrorCode::io,
              "a file of the store is damaged (no list of keys and values); use a store directory that nothing else "
              "writes to");
}

struct Record {
  std::string_view bytes;  // all of it
  std::string_view key;
  std::string_view value;
};

std::string_view take(std::string_view& rest, std::uint64_t size) {
  if (size > rest.size()) throw_damaged();
  const std::string_view taken = rest.substr(0, static_cast<std::size_t>(size));
  rest.remove_prefix(taken.size());
  return taken;
}

std::uint64_t take_length(std::string_view& rest) {
  std::uint64_t length = 0;
  const std::string_view bytes = take(rest, kLengthBytes);
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

Record take_record(std::string_view& rest) {
  const std::string_view start = rest;
  const std::uint64_t key_size = take_length(rest);
  const std::uint64_t value_size = take_length(rest);
  Record record;
  record.key = take(rest, key_size);
  record.value = take(rest, value_size);
  record.bytes = start.substr(0, start.size() - rest.size());
  return record;
}

void append_length(std::string& bucket, std::uint64_t length) {
  for (std::size_t i = 0; i < kLengthBytes; ++i, length >>= 8) bucket += static_cast<char>(length & 0xff);
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

std::optional<std::string> bucket_find(std::string_view bucket, std::string_view key) {
  while (!bucket.empty()) {
    const Record record = take_record(bucket);
    if (record.key == key) return std::string(record.value);
  }
  return std::nullopt;
}

std::string bucket_without(std::string_view bucket, std::string_view key) {
  std::string others;
  while (!bucket.empty()) {
    const Record record = take_record(bucket);
    if (record.key != key) others += record.bytes;
  }
  return others;
}

std::string bucket_with(std::string_view bucket, std::string_view key, std::string_view value) {
  std::string all = bucket_without(bucket, key);
  all.reserve(all.size() + 2 * kLengthBytes + key.size() + value.size());
  append_length(all, key.size());
  append_length(all, value.size());
  return all.append(key).append(value);
}

std::size_t bucket_count(std::string_view bucket, std::string_view prefix) {
  std::size_t count = 0;
  while (!bucket.empty()) {
    if (take_record(bucket).key.starts_with(prefix)) ++count;
  }
  return count;
}

}  // namespace col::store
