#include "backend/gloo/translate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include <fmt/format.h>
#include <gloo/common/error.h>

namespace col::gloo_backend {
namespace {

// Gloo keeps errno only as text, so the text is compared with what strerror() says now, in the program's locale.
bool is_out_of_descriptors(std::string_view what) {
  return what.find(std::strerror(EMFILE)) != std::string_view::npos ||
         what.find(std::strerror(ENFILE)) != std::string_view::npos;
}

// The job's cause of ending, when it has one and this rank can see it.
std::optional<Error> job_cause(WaitContext* wait) {
  if (wait == nullptr || wait->page() == nullptr || !wait->page()->aborted()) return std::nullopt;
  try {
    wait->check();
  } catch (const Error& cause) {
    return cause;
  }
  return std::nullopt;
}

// Gloo's text on one line without its source position. It goes in brackets after our text.
std::string foreign_text(std::string_view what) {
  // "[/build/…/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"
  if (what.starts_with('[')) {
    const auto end = what.find("] ");
    if (end != std::string_view::npos) what.remove_prefix(end + 2);
  }
  std::string text(what);
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

Error translate(const std::exception_ptr& failure, GuardedContext* context, std::string_view group, WaitContext* wait) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.group().empty()
               ? Error(error.code(), error.message(), group, error.rank(), error.world_rank(), error.is_loss())
               : error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::resource, "gloo: out of memory; use smaller messages or fewer ranks per machine", group);
  } catch (const std::exception& foreign) {
    if (const auto cause = job_cause(wait)) return *cause;
    const std::string text = foreign_text(foreign.what());
    if (is_out_of_descriptors(text)) {
      return Error(ErrorCode::resource,
                   fmt::format("gloo: out of file descriptors; raise the limit of open files (ulimit -n) [{}]", text),
                   group);
    }
    const int rank = context != nullptr ? context->rank_that_failed_with(failure) : -1;
    if (const auto host = rank >= 0 ? context->lost_host() : nullptr) return translate(host, nullptr, group, wait);
    if (rank >= 0) {
      return Error(
          ErrorCode::peer_lost,
          fmt::format("lost the connection to rank {}: it died, or left the group after an error of its own; look "
                      "at its output first [gloo: {}]",
                      rank, text),
          group, rank);
    }
    const bool is_io = dynamic_cast<const ::gloo::IoException*>(&foreign) != nullptr;
    return Error(is_io ? ErrorCode::io : ErrorCode::internal, fmt::format("gloo: {}", text), group);
  } catch (...) {
    return Error(ErrorCode::internal, "gloo: an exception of unknown type; a user reduction function must not throw",
                 group);
  }
}

}  // namespace col::gloo_backend
