// The secret of a job. A client proves to the server of its TCP store that it knows the secret, before it may do
// anything else.
#pragma once

#include <string>
#include <string_view>

namespace col::store::tcp {

// Throws invalid_argument if `token` is empty or too long. Neither this message nor any other contains its text.
void check_token(std::string_view token);

// Throws invalid_argument when the job's name is too long.
void check_job(std::string_view job);

// The content of a file without the line break at its end. Throws invalid_argument that names the file if others than
// this user could have read it (mode above 0600, another owner), or if it holds no token. Throws io if it cannot be
// read.
std::string read_token_file(const std::string& path);

// COL_STORE_TOKEN, else the content of the file COL_STORE_TOKEN_FILE; empty if neither is set.
std::string token_from_environment();

// store_job() of COL_JOB_ID and COL_RESTART_COUNT; empty if COL_JOB_ID is not set.
std::string job_from_environment();

}  // namespace col::store::tcp
