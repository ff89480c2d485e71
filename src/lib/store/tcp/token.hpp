// The secret of a job, which a client proves to the server of its TCP store to know before it may do anything else.
#pragma once

#include <string>
#include <string_view>

namespace col::store::tcp {

// Throws invalid_argument when `token` is empty or too long. Its text is not in the message, nor in any other.
void check_token(std::string_view token);

// Throws invalid_argument when the job's name is too long.
void check_job(std::string_view job);

// The content of a file without the line break at its end. Throws invalid_argument naming the file when others than
// this user could have read it (mode above 0600, another owner), or when it holds no token; io when it cannot be read.
std::string read_token_file(const std::string& path);

// COL_STORE_TOKEN, else what the file COL_STORE_TOKEN_FILE holds; empty when neither is set.
std::string token_from_environment();

// store_job() of COL_JOB_ID and COL_RESTART_COUNT; empty when the former is not set.
std::string job_from_environment();

}  // namespace col::store::tcp
