// The first failure of a group, kept in its scope of the store, so that all ranks report one cause and not a chain of
// "connection closed" by those who failed because another one had.
#pragma once

#include <chrono>
#include <optional>

#include <col/error.hpp>
#include <col/store.hpp>

namespace col::group {

// How long a rank whose call is slow or has failed asks the store about it, each time. Within that, a store that is
// there has answered; one that is stopped must not hold up the call's deadline.
inline constexpr Duration kStoreTime = std::chrono::seconds(1);

// Records `error` as the group's failure unless there is one already; returns the one that stands. When the store
// cannot be reached any more (its directory goes when the job ends), `error` stands for itself. Takes kStoreTime at
// most.
Error publish_failure(Store& store, const Error& error) noexcept;

// The failure that was published; nothing when there is none. Throws what the store throws.
std::optional<Error> published_failure(Store& store);

// {"code":…,"rank":…,"world_rank":…,"group":…,"message":…}: also the format of COL_ERROR_FILE, which the
// launcher reads.
std::string encode_error(const Error& error);
std::optional<Error> decode_error(std::string_view text);

}  // namespace col::group
