// The memory of a control page: anonymous, or mapped from a file. The file appears under its name only when it is
// complete.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/job/page_layout.hpp"

namespace col::core {

// A mapped page with a valid header. Unmapped by the destructor; the file stays.
class PageMapping {
 public:
  PageMapping(void* address, std::size_t size_bytes) noexcept : address_(address), size_bytes_(size_bytes) {}
  PageMapping(PageMapping&& other) noexcept;
  PageMapping& operator=(PageMapping&& other) noexcept;
  ~PageMapping();

  PageHeader& header() const noexcept;
  RecordLayout* record(int local_rank) const noexcept;

 private:
  void* address_;
  std::size_t size_bytes_;
};

enum class Publish { replace, keep_existing };

// Creates the page at `path` and replaces an existing file. With keep_existing, returns nothing if a file already
// exists. Throws invalid_argument for a number of ranks that no host has, io, resource.
std::optional<PageMapping> create_page_file(const std::string& path, int local_ranks, std::string_view job_id,
                                            Publish publish);
// Maps the page at `path`; nothing when there is no file. Throws io, resource, mismatch.
std::optional<PageMapping> open_page_file(const std::string& path, std::string_view job_id);
PageMapping create_anonymous_page(int local_ranks);

}  // namespace col::core
