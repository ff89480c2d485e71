// The least that a launcher can do: starts a program so many times and waits for all. What colrun's start is compared
// to.
//
//   start_loop fork|vfork COUNT PROGRAM [ARGUMENT…]
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

// In a function of its own, because a child of vfork shares its stack.
[[gnu::noinline]] pid_t start(bool by_fork, char** command) {
  const pid_t child = by_fork ? ::fork() : ::vfork();
  if (child == 0) {
    ::execvp(command[0], command);
    ::_exit(127);
  }
  return child;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  if ((how != "fork" && how != "vfork") || count < 1 || argc < 4) {
    std::fputs("usage: start_loop fork|vfork COUNT PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    if (start(how == "fork", argv + 3) < 0) {
      std::perror("start_loop");
      return 125;
    }
  }
  int worst = 0;
  for (int status = 0; ::wait(&status) > 0 || errno == EINTR;) {
    if (status != 0) worst = 1;
  }
  return worst;
}
