#include "backend/shm/factory.hpp"

#include <unistd.h>

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "backend/shm/channel.hpp"
#include "backend/shm/segment/connect.hpp"
#include "backend/shm/segment/shared_file.hpp"

namespace col::shm_backend {
namespace {

class Factory final : public BackendFactory {
 public:
  std::string_view name() const override { return "shm"; }

  std::optional<std::string> unavailable_reason() const override {
    if (make_memfd()) return std::nullopt;
    const int error = errno;
    const Places places;
    if (::access(places.files.c_str(), W_OK | X_OK) == 0) return std::nullopt;
    return fmt::format("memfd_create fails ({}), and {} cannot be written ({})", std::generic_category().message(error),
                       places.files, std::generic_category().message(errno));
  }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    const auto segment = connect_segment(request, wait, local_);
    try {
      return std::make_unique<ShmChannel>(std::string(request.group), request.rank, segment);
    } catch (const std::bad_alloc&) {
      const Error error(ErrorCode::resource, "shm: out of memory while connecting; free some, or raise the limit",
                        std::string(request.group));
      segment->abort(request.rank, error);  // others may use it already
      throw error;
    }
  }

  std::string describe(const ConnectRequest& request) const override {
    return fmt::format("{} KiB of shared memory, rings of {} KiB", Segment::bytes_for(request.size) >> 10,
                       Segment::ring_bytes_for(request.size) >> 10);
  }

 private:
  LocalSegments local_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_factory() {
  return std::make_unique<Factory>();
}

}  // namespace col::shm_backend
