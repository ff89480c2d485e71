// How FileStore keeps keys in files: the name of a key's file, and the content of a bucket file.
//
// Letters, digits and a few marks stand for themselves; every other byte is %XX. So most names are readable, and no two
// keys share a name. The empty key is "%". A key whose name would be too long is kept in a bucket file, named "%%" and
// a hash. Keys with the same hash share the file, which holds each key beside its value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace col::store {

using KeyHash = std::uint64_t (*)(std::string_view key);

// The longest name that eCryptfs allows: the least of the file systems on which people keep directories. Others allow
// 255.
inline constexpr std::size_t kLongestName = 143;

// `bytes` encoded as the beginning of a name. A key starts with a prefix exactly if its encoding starts with the
// encoding of the prefix.
std::string encode(std::string_view bytes);

struct FileName {
  std::string name;
  bool bucket = false;
};

FileName file_name(std::string_view key, KeyHash hash);

// Whether `name` is a bucket's.
bool is_bucket(std::string_view name) noexcept;
// Whether `name`, which is not a bucket's, is the file of a key. Network file systems leave hidden files of their own.
bool is_key_file(std::string_view name) noexcept;

std::uint64_t default_hash(std::string_view key);

// ---- Buckets --------------------------------------------------------------------------------------------------------
// A bucket has records of key length, value length (64-bit little endian), key and value, one after another. These
// functions throw io for bytes that are not a bucket.

std::optional<std::string> bucket_find(std::string_view bucket, std::string_view key);
// The bucket without `key`: unchanged if the key is not there, empty if it was the last key.
std::string bucket_without(std::string_view bucket, std::string_view key);
// The bucket with `key` set to `value`.
std::string bucket_with(std::string_view bucket, std::string_view key, std::string_view value);
// Number of its keys that start with `prefix`.
std::size_t bucket_count(std::string_view bucket, std::string_view prefix);

}  // namespace col::store
