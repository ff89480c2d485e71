// Writes reports to files, completely or not at all, and prints text.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace col::tools {

// what() is one line: "cannot write /x/y.xml: No such file or directory; name a file that can be written".
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// stdout takes nothing more: "cannot write to stdout: No space left on device; …".
class OutputClosed : public WriteError {
 public:
  OutputClosed(int error, bool reader_is_gone);
  // 141 if the reader is gone; else `otherwise`, the tool's code for a file that cannot be written.
  int exit_code(int otherwise) const noexcept;

 private:
  bool reader_is_gone_;
};

// Prints all of `text` to stdout at once. From then on, SIGPIPE is ignored. Throws OutputClosed.
void print(std::string_view text);

// Makes `path` a file with this content. It is first written beside `path` under another name. Until it is complete,
// and on failure, the old file at `path` stays. A symbolic link stays a link, and its target is replaced. If `path` is
// not a regular file (a device, a FIFO, /dev/stdout), it is written directly, and fails if it accepts nothing for 10
// seconds. Throws WriteError.
void write_file(const std::string& path, std::string_view content);

// Throws the WriteError that write_file() would throw, as far as this can be known now. Changes nothing at `path`.
void check_writable(const std::string& path);

}  // namespace col::tools
