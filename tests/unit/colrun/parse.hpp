// The parser as the tests call it.
#pragma once

#include <string>
#include <vector>

#include "colrun/options.hpp"

namespace col::test {

// What colrun finds around it in a test.
struct World {
  std::vector<std::string> environment = {};  // "NAME=value"
  int processors = 8;
  int gpus = 2;
};

// `line` is divided at spaces; none of its words may have one.
std::vector<std::string> words(const std::string& line);

colrun::Request request(const std::vector<std::string>& arguments, const World& world = {});
// A failed requirement when the line asks for something else.
colrun::Job job(const std::string& line, const World& world = {});
launch::JobSpec spec(const std::string& line, const World& world = {});
// What a UsageError says about it; empty when there is none.
std::string complaint(const std::vector<std::string>& arguments, const World& world = {});
std::string complaint(const std::string& line, const World& world = {});

// A file with this content, for as long as the object lives.
class File {
 public:
  explicit File(const std::string& content);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace col::test
