// The first failure of a group, in its scope of the store. So all ranks report one cause, and not a chain of
// "connection closed" from ranks that failed because of another one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <col/error.hpp>
#include <col/store.hpp>

namespace col::group {

// How long a rank whose call is slow or has failed waits for the store's answer, each time. A store that works answers
// within this time. A stopped store must not delay the call's deadline.
inline constexpr Duration kStoreTime = std::chrono::seconds(1);

// Records `error` as the group's failure, unless there already is one. Returns the recorded failure. One that says that
// `self`, this rank, is lost is only what others have seen of `error`, which then takes its place. If the store cannot
// be reached any more (its directory is removed when the job ends), it returns `error`. Takes kStoreTime at most.
Error publish_failure(Store& store, const Error& error, int self) noexcept;

// The published failure; nothing if there is none. Throws what the store throws.
std::optional<Error> failure_in(Store& store);
// The same, as this rank, `self`, is to read it; nothing if there is none. Throws what the store throws.
std::optional<Error> published_failure(Store& store, int self);

// For the last who may want to read it.
void forget_failure(Store& store) noexcept;

// {"code":…,"rank":…,"world_rank":…,"group":…,"message":…}, and "is_loss":true for an `aborted` that is one: also the
// format of COL_ERROR_FILE, which the launcher reads.
std::string encode_error(const Error& error);
std::optional<Error> decode_error(std::string_view text);

// Writes the last error of this rank to COL_ERROR_FILE, in that format. The launcher reads it to distinguish the rank
// that failed first from ranks that failed because of it. Replaces the whole file. Best effort: if a rank cannot write
// it, the report only has less detail. An empty path means that there is no file.
void write_error_file(const std::string& path, const Error& error) noexcept;

}  // namespace col::group
