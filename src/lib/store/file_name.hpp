// How FileStore names the file of a key.
//
// Letters, digits and a few marks stand for themselves, every other byte is %XX, so most names can be read and no two
// keys share one. The empty key is "%". A key whose name would be too long is kept in a bucket file, "%%" and a hash:
// keys that collide share the file, which holds each key beside its value (bucket.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace col::store {

using KeyHash = std::uint64_t (*)(std::string_view key);

// The longest name that eCryptfs takes, the least of the file systems that people keep directories on; 255 elsewhere.
inline constexpr std::size_t kLongestName = 143;

// `bytes` encoded as the beginning of a name: a key starts with a prefix exactly when its encoding starts with the
// prefix's.
std::string encode(std::string_view bytes);

struct FileName {
  std::string name;
  bool bucket = false;
};

FileName file_name(std::string_view key, KeyHash hash);

// Whether `name` is a bucket's.
bool is_bucket(std::string_view name) noexcept;
// Whether `name`, not a bucket's, is the file of a key; network file systems leave hidden files of their own.
bool is_key_file(std::string_view name) noexcept;

std::uint64_t default_hash(std::string_view key);

}  // namespace col::store
