#include "parse.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <sstream>

#include "support/catch.hpp"

namespace col::test {

using namespace col::colrun;

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

Request request(const std::vector<std::string>& arguments, const World& world) {
  std::vector<const char*> environment;
  for (const std::string& variable : world.environment) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  Surroundings surroundings;
  surroundings.environment = environment.data();
  surroundings.processors = [&] { return world.processors; };
  surroundings.gpus = [&] { return world.gpus; };
  return parse_options(arguments, surroundings);
}

Job job(const std::string& line, const World& world) {
  Request result = request(words(line), world);
  REQUIRE(std::holds_alternative<Job>(result));
  return std::get<Job>(std::move(result));
}

launch::JobSpec spec(const std::string& line, const World& world) {
  return job(line, world).spec;
}

std::string complaint(const std::vector<std::string>& arguments, const World& world) {
  try {
    request(arguments, world);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

std::string complaint(const std::string& line, const World& world) {
  return complaint(words(line), world);
}

File::File(const std::string& content) {
  const char* directory = ::getenv("TMPDIR");
  path_ = std::string(directory == nullptr ? "/tmp" : directory) + "/colrun_test.XXXXXX";
  const int fd = ::mkstemp(path_.data());
  REQUIRE(fd >= 0);
  const ssize_t written = ::write(fd, content.data(), content.size());
  ::close(fd);
  REQUIRE(written == static_cast<ssize_t>(content.size()));
}

File::~File() {
  ::unlink(path_.c_str());
}

}  // namespace col::test
