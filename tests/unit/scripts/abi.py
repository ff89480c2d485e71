"""scripts/abi finds each kind of change that breaks programs, and lets those pass that do not. abi.py SCRIPT COMPILER…

The library is one of the test's own, which compiles at once.
"""
import pathlib
import subprocess
import sys
import tempfile

script, *compiler = sys.argv[1:]
HEADER = """
#define COL_EXPORT __attribute__((visibility("default")))
namespace col {
enum class Colour : int { red, green };
struct Options { int root; double scale; };
class COL_EXPORT Wire {
 public:
  virtual ~Wire();
  virtual int send(int to);
  virtual int recv(int from) const;
 protected:
  int state_ = 0;
};
class COL_EXPORT Cable : public Wire {
 public:
  int recv(int from) const override;
  int length = 0;
};
namespace plan {
COL_EXPORT int rounds(Colour colour);
}
inline constexpr int kAnyone = -1;
inline constexpr int kColourCount = 2;
}
extern "C" {
typedef struct col_call { unsigned long size; int kind; } col_call;
typedef struct col_place { int rank; } col_place;
enum { COL_SUM = 0, COL_MIN = 1 };
COL_EXPORT int col_run(const col_call* call, col_place place);
}
"""
SOURCE = """
#include "col/planted.hpp"
namespace col {
Wire::~Wire() = default;
int Wire::send(int to) { return to; }
int Wire::recv(int from) const { return from; }
int Cable::recv(int from) const { return from; }
int plan::rounds(Colour colour) { return int(colour); }
}
namespace internal { COL_EXPORT int of_a_module() { return 1; } }
int col_run(const col_call* call, col_place place) { return call->kind + place.rank; }
"""
# Changed text, the text in its place, and what has to be said of it.
BREAKS = {
    "a symbol is gone": [("int plan::rounds(Colour colour) { return int(colour); }", "")],
    "a function of C is gone": [("int col_run(const col_call* call, col_place place) {", "static int run(const col_call* call, col_place place) {")],
    "a virtual function moves": [("  virtual int send(int to);\n  virtual int recv(int from) const;",
                                  "  virtual int recv(int from) const;\n  virtual int send(int to);")],
    "a virtual function more": [("  virtual int recv(int from) const;", "  virtual int recv(int from) const;\n  virtual int peek() { return 0; }")],
    "a virtual function is none any more": [("  virtual int send(int to);", "  int send(int to);")],
    "a struct grows": [("double scale;", "double scale; int tag;")],
    "members change places": [("int root; double scale;", "double scale; int root;")],
    "a member has another type of the same size": [("int root;", "float root;")],
    "a base grows": [("int state_ = 0;", "int state_ = 0; double since_ = 0;")],
    "an enumerator has another number": [("red, green", "green, red")],
    "one in the middle": [("red, green", "red, blue, green")],
    "an enum has another size": [("Colour : int", "Colour : char")],
    "a function returns another type": [("COL_EXPORT int rounds", "COL_EXPORT long rounds"), ("int plan::rounds", "long plan::rounds")],
    "a function takes another type": [("rounds(Colour colour)", "rounds(Options colour)"), ("return int(colour)", "return colour.root")],
    "a function of C takes another type": [("col_run(const col_call* call, col_place place)", "col_run(const col_call* call, long place)"),
                                           ("place.rank", "place")],
    "an enumerator of C": [("COL_MIN = 1", "COL_MIN = 2")],
    "a struct of C that has no size": [("int rank;", "int rank; int node;")],
    "a member of C moves": [("unsigned long size; int kind;", "unsigned long size; int flags; int kind;")],
    "a constant": [("kAnyone = -1", "kAnyone = -2")],
}
SAID = {
    "a symbol is gone": "gone: function col::plan::rounds(col::Colour), which was int",
    "a virtual function moves": "changed: virtual col::Wire::send(int) was slot 2, and is slot 3",
    "a virtual function more": "changed: slots of col::Wire was 4, and is 5",
    "a struct grows": "changed: size of col::Options was 16, and is 24",
    "members change places": "changed: member col::Options::scale was at 8, double, and is at 0, double",
    "an enumerator has another number": "changed: enumerator col::Colour::red was 0, and is 1",
    "a function returns another type": "changed: function col::plan::rounds(col::Colour) was int, and is long int",
    "a function of C takes another type": "changed: function col_run was int (const col_call*, col_place), and is int (const col_call*, long int)",
    "an enumerator of C": "changed: enumerator COL_MIN was 1, and is 2",
}
PASSES = {
    "nothing": [],
    "a function more": [("COL_EXPORT int rounds", "COL_EXPORT inline int steps() { return 1; }\nCOL_EXPORT int rounds")],
    "an enumerator at the end": [("red, green", "red, green, blue"), ("kColourCount = 2", "kColourCount = 3")],
    "a member at the end of a struct of C with its size": [("int kind;", "int kind; double scale;")],
    "a function that no header shows": [("namespace internal { COL_EXPORT int of_a_module() { return 1; } }", "")],
    "a body": [("return to;", "return to + 1;")],
}

wrong = []
work = pathlib.Path(tempfile.mkdtemp(prefix="col-abi-"))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, timeout=60)
    return done.returncode, done.stdout, done.stderr


def build(changes, *options):
    header, source = HEADER, SOURCE
    for before, after in changes:
        if before not in header + source:
            sys.exit(f"abi.py: there is no text {before!r}")
        header, source = header.replace(before, after), source.replace(before, after)
    (work / "include/col").mkdir(parents=True, exist_ok=True)
    (work / "include/col/planted.hpp").write_text(header)
    (work / "planted.cpp").write_text(source)
    code, _, text = run(*compiler, "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcol.so.0", "-Iinclude",
                        *options, "planted.cpp", "-o", "libcol.so")
    if code != 0:
        sys.exit(f"abi.py: {text}")


def abi(*arguments):
    return run(sys.executable, script, *arguments, "--library", "libcol.so", "--headers", "include", "--baselines", "base",
               "--compiler", " ".join(compiler))


def expect(what, is_so, text):
    if not is_so:
        wrong.append(f"{what}: {text}")


try:
    build([])
    code, out, err = abi("compare")
    expect("no baseline", code == 1 and err.startswith("abi: there is no baseline base/col.h-") and err.count("\n") == 1, err)
    code, out, err = abi("make")
    expect("make", code == 0 and sorted(path.name.split("-")[0] for path in (work / "base").iterdir()) == ["col.h", "libcol.so.0"], out + err)
    for what, changes in BREAKS.items():
        build(changes)
        code, out, err = abi("compare")
        expect(what, code == 1 and ("gone: " in out or "changed: " in out) and SAID.get(what, "") in out.splitlines() + [""], out + err)
    for what, changes in PASSES.items():
        build(changes)
        code, out, err = abi("compare")
        expect(what, code == 0 and " 0 breaks" in out and "gone: " not in out, out + err)
    # Symbols may get versions, and have to keep them.
    for version in "V_1", "V_2":
        (work / version).write_text(f"{version} {{ global: *; }};")
    build([], f"-Wl,--version-script={work}/V_1")
    code, out, err = abi("compare")
    expect("versions", code == 0 and "new: version of col_run = V_1" in out, out + err)
    (work / "base").rename(work / "without")
    abi("make")
    build([], f"-Wl,--version-script={work}/V_2")
    code, out, err = abi("compare")
    said = {"changed: version of col_run was V_1, and is V_2", "changed: version of col::plan::rounds(col::Colour) was V_1, and is V_2"}
    expect("other versions", code == 1 and said <= set(out.splitlines()), out + err)
    subprocess.run(["rm", "-rf", work / "base"])
    (work / "without").rename(work / "base")
    # What is new is said, and a release has to have it in its baseline.
    build(PASSES["an enumerator at the end"])
    code, out, err = abi("compare", "--exact")
    expect("--exact", code == 1 and out.splitlines()[0] == "new: enumerator col::Colour::blue = 2", out + err)
    # An edited baseline is no other thing than a changed library.
    [baseline] = (work / "base").glob("libcol.so.0-*")
    build([])
    baseline.write_text(baseline.read_text().replace("enumerator col::Colour::green = 1", "enumerator col::Colour::green = 7"))
    code, out, err = abi("compare")
    expect("edited", code == 1 and "changed: enumerator col::Colour::green was 7, and is 1" in out, out + err)
    # Before the first release baselines may be made anew, later only for another soname.
    for command in (["init", "--quiet"], ["add", "include"], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "a"]):
        run("git", *command)
    code, out, err = abi("make")
    tree = run("git", "rev-parse", "HEAD:include")[1].strip()
    expect("before a release", code == 0 and f"tree {tree}\n" in baseline.read_text(), out + err)
    run("git", "tag", "v0.1.0")
    build(BREAKS["a struct grows"])
    code, out, err = abi("make")
    expect("after a release", code == 1 and "programs of v0.1.0 exist: raise soversion" in err and err.count("\n") == 1, out + err)
    build(PASSES["an enumerator at the end"])
    code, out, err = abi("make")
    expect("what is new after a release", code == 0 and "Colour::blue = 2" in baseline.read_text(), out + err)
    code, out, err = run(sys.executable, script, "compare", "--library", "none.so")
    expect("no library", code == 1 and err == "abi: there is no none.so: build it, or name one by --library\n", err)
finally:
    subprocess.run(["rm", "-rf", work])
sys.exit("\n".join(wrong) or None)
