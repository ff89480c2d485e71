// The content of a bucket file: the long keys that share a hash, each with its value.
//
// Records of key length, value length (64-bit little endian), key and value, one after another. All functions throw io
// for bytes that are not a bucket.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace col::store {

std::optional<std::string> bucket_find(std::string_view bucket, std::string_view key);
// The bucket without `key`: unchanged if the key is not there, empty if it was the last key.
std::string bucket_without(std::string_view bucket, std::string_view key);
// The bucket with `key` set to `value`.
std::string bucket_with(std::string_view bucket, std::string_view key, std::string_view value);
// Number of its keys that start with `prefix`.
std::size_t bucket_count(std::string_view bucket, std::string_view prefix);

}  // namespace col::store
