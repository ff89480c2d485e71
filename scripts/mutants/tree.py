"""A copy of the sources with mutants in it, and its build. One build holds all of them: COL_MUTANT=NUMBER chooses one when a
program starts.
"""
import os, re, subprocess, sys

import sites
from source import Source

# Read by each library and program for itself, before main. COL_MUTANT_SEEN names a file: a byte of it for each mutant is 1 if any
# process came there. Memory of a file, as children share it, and to write into it needs no system call.
HEADER = """#pragma once
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

// Meson asks the compiler in C++17.
namespace [[gnu::visibility("hidden")]] col_mutants {
inline constexpr int kMost = 4096;
inline unsigned char unseen[kMost] = {};
inline unsigned char* seen = unseen;
inline int chosen = 0;

inline bool read_environment() noexcept {
  if (const char* const number = std::getenv("COL_MUTANT")) chosen = std::atoi(number);
  const char* const path = std::getenv("COL_MUTANT_SEEN");
  const int fd = path != nullptr ? ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
  if (fd < 0) return false;
  void* const memory = ::ftruncate(fd, kMost) == 0
                           ? ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                           : MAP_FAILED;
  ::close(fd);
  if (memory != MAP_FAILED) seen = static_cast<unsigned char*>(memory);
  return memory != MAP_FAILED;
}
inline const bool is_read = read_environment();

inline bool is(int number) noexcept {
  __atomic_store_n(&seen[number], static_cast<unsigned char>(1), __ATOMIC_RELAXED);
  return chosen == number;
}
}  // namespace col_mutants
"""
# A test needs no fast code; what is asserted is as in the build that people have.
OPTIONS = ["-Doptimization=1", "-Ddebug=false", "-Db_ndebug=true", "-Dwerror=false", "-Dwarning_level=0", "-Dtests=true",
           "-Dpython=disabled"]
CORE = ["--suite", "unit", "--suite", "conformance", "--suite", "system", "--no-suite", "rest"]


def sources(root):
    listed = subprocess.run(["git", "ls-files", "src/lib", "src/tools"], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    for path in listed.stdout.splitlines():
        if path.endswith((".cpp", ".hpp")) and (root / path).exists():
            yield Source(path, (root / path).read_text())


def write(path, content):
    """Only what differs is written: the rest needs no new build."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy(root, folder, placed):
    """All that git would know, with the mutants: number → site."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    paths = {path for path in listed.split("\0") if path and (root / path).is_file()}
    of_path = {}
    for number, site in placed.items():
        of_path.setdefault(site.path, []).append((number, site))
    tree = folder / "tree"
    for path in paths:
        content = (root / path).read_bytes()
        if path in of_path:
            content = sites.changed(Source(path, content.decode()), of_path[path]).encode()
        write(tree / path, content)
        os.chmod(tree / path, (root / path).stat().st_mode)
    for old in [old for old in tree.rglob("*") if old.is_file() and str(old.relative_to(tree)) not in paths]:
        old.unlink()
    write(folder / "mutants.hpp", HEADER.encode())


def to_drop(words, placed, texts):
    """The mutants that a compiler complains of, of number → site; texts has the original of each file."""
    first_line = lambda site: texts[site.path].count("\n", 0, site.begin) + 1
    last_line = lambda site: texts[site.path].count("\n", 0, site.end) + 1

    def at(pattern):
        lines = {(path, int(line)) for path, line in re.findall(pattern, words, re.M)}
        return {number for number, site in placed.items()
                if any(path == site.path and first_line(site) <= line <= last_line(site) for path, line in lines)}

    place = r"^(?:.*?/)?tree/(src/[^\s:]+):(\d+):(?:\d+:)?"
    # In a template, what is wrong may show elsewhere.
    return at(place + " (?:fatal )?error:") or at(place + " +required ")


def build(root, folder, placed, drop, tests, jobs):
    """Until all compiles: drop(numbers) is told of the mutants that do not. Targets that are made of sources in another way, as
    scripts do which plant bugs of their own, may fail: the tests that need them are left out."""
    texts = {source.path: source.text for source in sources(root)}
    build_folder = folder / "build"
    while True:
        copy(root, folder, placed)
        if not (build_folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", build_folder, folder / "tree", *OPTIONS, f"-Dcpp_args=-include{folder / 'mutants.hpp'}"],
                           check=True)
        targets = subprocess.run([root / "scripts/test-programs", build_folder, *CORE, *tests], check=True, stdout=subprocess.PIPE,
                                 text=True).stdout.split()
        ran = subprocess.run(["ninja", "-C", build_folder, "-k", "0", "-j", str(jobs), *targets], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        (folder / "build.txt").write_text(ran.stdout)
        if ran.returncode == 0:
            return
        wrong = to_drop(ran.stdout, placed, texts)
        if not wrong:
            failed = re.findall(r"^FAILED: (\S+)", ran.stdout, re.M)
            if re.search(r"^\S+:\d+:\d+: (?:fatal )?error:", ran.stdout, re.M) or "build stopped" in ran.stdout and not failed:
                sys.exit(f"the build fails, and no mutant is the reason: {folder / 'build.txt'} has its words")
            print(f"Left out, as they cannot be built: {' '.join(failed)}")
            return
        drop(sorted(wrong))
        for number in wrong:
            del placed[number]
