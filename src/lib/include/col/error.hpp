// Errors: one exception type for the whole library.
//
// Every call of libcol that fails throws col::Error. Errors of other systems (errno, Gloo, CUDA) are translated once,
// where they enter. docs/errors.md lists for every code what causes it and what to do about it.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <col/export.hpp>

namespace col {

enum class ErrorCode {
  invalid_argument,     // the call itself is wrong: a bad root, count, dtype, name, environment value
  not_initialized,      // the group, or the library, has not been set up in this process
  already_initialized,  // a group of that name exists here, or a rank joined twice
  mismatch,             // ranks disagree: different world sizes, backends, operations, counts, dtypes, roots
  timeout,              // the deadline passed; the message names the ranks that did not arrive
  peer_lost,            // another rank died or left with operations unfinished
  aborted,              // the job, or this group, was ended on purpose or by an earlier error
  unavailable,          // this build or this machine cannot do it (no such backend, device or feature)
  resource,             // memory, descriptors, disk space or shared memory ran out
  io,                   // the operating system refused a file or socket operation
  internal,             // a bug in col; please report it with the message
};

// The name of a code, as documented ("peer_lost"). Never fails. Thread safe.
COL_EXPORT std::string_view to_string(ErrorCode code) noexcept;

// An error says what happened, where, and what to do next.
//
// what() is one line: "<code>: [group 'g': ]<message>". Copying is cheap and does not throw.
class COL_EXPORT Error : public std::runtime_error {
 public:
  // `rank` is the rank that the error is about: the culprit of a mismatch, peer_lost or timeout; -1 if it is not about
  // a single rank. `world_rank` is the rank of the same process in the job. `group` is the group where the error
  // happened; empty if none. Line breaks in `message` become spaces.
  explicit Error(ErrorCode code, std::string_view message, std::string_view group = {}, int rank = -1,
                 int world_rank = -1);
  // The same, with `is_loss`: true for an `aborted` that follows from the loss of a rank. See is_loss().
  explicit Error(ErrorCode code, std::string_view message, std::string_view group, int rank, int world_rank,
                 bool is_loss);
  ~Error() override;
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  ErrorCode code() const noexcept { return code_; }
  // The culprit's rank in the group.
  int rank() const noexcept { return rank_; }
  // The culprit's rank in the job (the group of col::init()). It differs from rank() in a group of some ranks of the
  // job. -1 if rank() is -1, or if it is not known. The message has both numbers if they differ: "rank 1 (world rank
  // 5)".
  int world_rank() const noexcept { return world_rank_; }
  // True if the ranks that are still alive can go on with Group::renew(): for peer_lost, and for an `aborted` whose
  // first cause is a lost rank, or that comes because other ranks have called renew(). False for an `aborted` with
  // another cause, also if the others have excluded this rank, and for all other codes.
  bool is_loss() const noexcept { return code_ == ErrorCode::peer_lost || text_->is_loss; }
  const std::string& group() const noexcept { return text_->group; }
  // The text without the code and the group.
  const std::string& message() const noexcept { return text_->message; }

 private:
  struct Text {
    std::string group;
    std::string message;
    bool is_loss = false;  // for `aborted` only: a peer_lost is always a loss
  };
  Error(ErrorCode code, int rank, int world_rank, std::shared_ptr<const Text> text);

  ErrorCode code_;
  int rank_;
  int world_rank_;
  std::shared_ptr<const Text> text_;  // shared: copying an exception must not allocate, because that could throw
};

}  // namespace col
