// FileStore with parameters for tests.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <col/store.hpp>
#include <col/types.hpp>

#include "store/key_file.hpp"

namespace col::store {

struct FileStoreOptions {
  bool use_inotify = true;
  Duration lock_timeout = std::chrono::seconds(30);
  KeyHash hash = default_hash;  // of the keys that are too long for a file name
};

std::shared_ptr<Store> make_file_store(const std::string& directory, const FileStoreOptions& options);

}  // namespace col::store
