// The secret of a job, which a client shows to the server of its TCP store before it may do anything else.
#pragma once

#include <string>
#include <string_view>

namespace col::store::tcp {

// Takes as long whatever the difference is.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

// Throws invalid_argument when `token` is empty or too long. Its text is not in the message, nor in any other.
void check_token(std::string_view token);

// The content of a file without the line break at its end. Throws invalid_argument naming the file when others than
// this user could have read it (mode above 0600, another owner), or when it holds no token; io when it cannot be read.
std::string read_token_file(const std::string& path);

// COL_STORE_TOKEN, else what the file COL_STORE_TOKEN_FILE holds; empty when neither is set.
std::string token_from_environment();

}  // namespace col::store::tcp
