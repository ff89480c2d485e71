#include "store/bucket.hpp"

#include <cstdint>

#include <col/error.hpp>

namespace col::store {
namespace {

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
