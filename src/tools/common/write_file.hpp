// How every report comes to its file: whole, or not at all.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace col::tools {

// what() is one line: "cannot write /x/y.xml: No such file or directory".
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Makes `path` a file with this content. It is written beside `path` under another name first: on failure, and until
// all of it is there, what was at `path` stays. A symbolic link stays one; its target is replaced. What is no regular
// file (a device, a FIFO, /dev/stdout) is written to directly, and fails when it takes nothing for 10 seconds.
// Throws WriteError.
void write_file(const std::string& path, std::string_view content);

// Throws the WriteError that write_file() would, as far as can be known now. Changes nothing at `path`.
void check_writable(const std::string& path);

}  // namespace col::tools
