// How FileStore names the file of a key.
//
// Letters, digits and a few marks stand for themselves; every other byte is %XX. So most names are readable, and no two
// keys share a name. The empty key is "%". A key whose name would be too long is kept in a bucket file, named "%%" and
// a hash. Keys with the same hash share the file, which holds each key beside its value (bucket.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace col::store
