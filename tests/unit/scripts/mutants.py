"""scripts/dev mutants on a small program: one mutant dies, one lives, one does not compile, and all are found again after they have moved.

usage: mutants.py COMPILER…
"""
import os, pathlib, subprocess, sys, tempfile, types, unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts/mutants"))
import fates, sites, tree, trial
from source import Source

COMPILER = sys.argv[1:]
PATH = "src/lib/toy/sum.cpp"
SUM = """
// Adds up to a limit; "if (x) return;" is no code here.
int Toy::sum(const int* values, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) {
    if (values[i] < 0) continue;
    total += values[i];
  }
  const char* const words = "if (count > 1) return;";
  return words[0] != 'j' ? total : 0;
}
"""
FLAG = """
bool Toy::is_set() const {
  if (flag_.load(std::memory_order_acquire) > 0) return true;
  return false;
}
"""
CONSTANT = """
constexpr int twice(int value) {
  if (value < 0) return 0;
  return 2 * value;
}
#if defined(NOBODY)
int unknown(int value) {
  if (value < 0) return 0;
  return value;
}
#endif
"""
HEAD = """#include <atomic>
struct Toy {
  int sum(const int* values, int count);
  bool is_set() const;
  std::atomic<int> flag_{0};
};
"""
TEST = """
int main() {
  const int values[] = {1, -2, 3, 0};
  Toy toy;
  toy.is_set();
  return toy.sum(values, 3) == 4 && twice(2) == 4 ? 0 : 1;
}
"""
PROGRAM = HEAD + SUM + FLAG + CONSTANT + TEST


def sources(**text_of_file):
    return [Source(f"src/lib/toy/{name}.cpp", text) for name, text in text_of_file.items()]


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory(dir=os.getcwd())  # not in /tmp, as each trial has its own
        cls.folder = pathlib.Path(cls.room.name)
        cls.named = {name: site for name, site in sites.named(sources(sum=PROGRAM)).items() if name[1] != "main"}
        cls.mutants = fates.draw(cls.named, "0badcafe")
        cls.placed = {mutant.number: cls.named[fates.name_of(mutant)] for mutant in cls.mutants}
        cls.program = cls.folder / "program"
        assert cls.compile(cls.placed) == "", cls.compile(cls.placed)
        cls.log_path = cls.folder / "log"

    @classmethod
    def tearDownClass(cls):
        cls.room.cleanup()

    @classmethod
    def compile(cls, placed):
        source = cls.folder / "tree" / PATH
        tree.write(cls.folder / "mutants.hpp", tree.HEADER.encode())
        tree.write(source, sites.changed(Source(PATH, PROGRAM), placed.items()).encode())
        return subprocess.run([*COMPILER, "-std=c++20", "-include", cls.folder / "mutants.hpp", source, "-o", cls.program],
                              stderr=subprocess.PIPE, text=True).stderr

    def number(self, kind, function, text):
        [found] = [mutant for mutant in self.mutants if mutant[2:4] == (kind, function) and mutant.text == text]
        return found.number

    def run_program(self, number):
        seen = self.folder / "seen"
        seen.unlink(missing_ok=True)
        ran = subprocess.run([self.program], env={**os.environ, "COL_MUTANT": str(number), "COL_MUTANT_SEEN": str(seen)})
        return trial.Ran(ran.returncode, 0.0, [place for place, byte in enumerate(seen.read_bytes()) if byte], "")

    def test_which_there_are(self):
        texts = {(kind, function): [] for kind, function, _, _ in self.named}
        for kind, function, text, _ in self.named:
            texts[kind, function].append(text)
        self.assertEqual(texts, {
            ("condition", "Toy::sum"): ["if (values[i] < 0)", "words[0] != 'j' ?"],
            ("bound", "Toy::sum"): ["i < count", "values[i] < 0"],
            ("exit", "Toy::sum"): ["if (values[i] < 0) continue;"],
            ("effect", "Toy::sum"): ["total += values[i];"],
            ("condition", "Toy::is_set"): ["if (flag_.load(std::memory_order_acquire) > 0)"],
            ("bound", "Toy::is_set"): ["flag_.load(std::memory_order_acquire) > 0"],
            ("exit", "Toy::is_set"): ["if (flag_.load(std::memory_order_acquire) > 0) return true;"],
            ("fence", "Toy::is_set"): ["flag_.load(std::memory_order_acquire) [acquire]"]})

    def test_fates(self):
        self.assertEqual(self.run_program(0).code, 0)
        # Nobody comes to the return of is_set().
        self.assertEqual(self.run_program(0).seen, [mutant.number for mutant in self.mutants if mutant[2:4] != ("exit", "Toy::is_set")])
        for mutant in self.mutants:
            # `continue` for 0, and one value more, change no sum. Nobody looks at what is_set() returns.
            lives = mutant.function == "Toy::is_set" or mutant.kind == "bound"
            self.assertEqual(self.run_program(mutant.number).code, 0 if lives else 1, mutant)

    def test_run(self):
        """A test that comes to a mutant kills it; one that fails without any is not asked."""
        dies, lives = self.number("effect", "Toy::sum", "total += values[i];"), self.number("bound", "Toy::sum", "i < count")
        tests = [types.SimpleNamespace(name=name, limit=1) for name in ("unit/sum", "unit/broken", "unit/other")]
        known = trial.Map(self.folder / "map.json")
        known.add(tests[0], self.run_program(0))
        known.add(tests[1], self.run_program(0)._replace(code=1))
        known.add(tests[2], self.run_program(0)._replace(seen=[]))
        real, trial.run = trial.run, lambda test, folder, limit, number=0: self.run_program(number)
        try:
            fate = lambda number: trial.try_mutant(number, tests, trial.Map(self.folder / "map.json"), self.folder)
            self.assertEqual(fate(dies), fates.Fate("died", 0, "unit/sum"))
            self.assertEqual(fate(lives), fates.Fate("lived", 0, "1 of 1 tests"))
            self.assertEqual(fate(4000), fates.Fate("unreached", 0, ""))
            trial.run = lambda *_: trial.Ran(None, 1.0, [], "")
            self.assertEqual(fate(dies), fates.Fate("hung", 0, "unit/sum"))
            answers = iter([1, 0])
            trial.run = lambda *_: trial.Ran(next(answers), 1.0, [], "")
            self.assertEqual(fate(dies).result, "lived")  # it failed once, and not again
        finally:
            trial.run = real

    @unittest.skipUnless(os.geteuid() == 0, "only root makes namespaces")
    def test_reaches_nothing_else(self):
        (self.folder / "build").mkdir(exist_ok=True)
        script = f"""touch {self.folder}/build/left {self.folder}/left /tmp/left
                     kill -KILL -1; printf '\\0\\1' >/tmp/mutants.seen; sleep 60 & echo said; exit 7"""
        test = types.SimpleNamespace(command=["bash", "-c", script], environment={}, folder=str(self.folder / "build"))
        ran = trial.run(test, self.folder / "build", 60)
        self.assertEqual((ran.code, ran.seen), (7, [1]), ran.words)
        self.assertIn("said", ran.words)
        self.assertFalse(os.path.exists("/tmp/left") or (self.folder / "left").exists() or (self.folder / "build/left").exists())
        test.command = ["sleep", "60"]
        self.assertIsNone(trial.run(test, self.folder / "build", 0.2).code)

    def test_found_again(self):
        moved = sources(other=HEAD + FLAG.replace("if (flag_.load(std::memory_order_acquire) > 0) return",
                                                  "if (flag_.load(std::memory_order_acquire) >\n      0)\n    return"),
                        more="void first() { go(); }\n" + SUM.replace("total += values[i];", "all += values[i];"))
        again = sites.named(moved)
        lost = [mutant for mutant in self.mutants if fates.name_of(mutant) not in again]
        self.assertEqual([mutant.text for mutant in lost], ["total += values[i];"])
        self.assertEqual(fates.nearest(lost[0], again), ("effect", "Toy::sum", "all += values[i];", 1))
        # Where two functions of one name say the same, nobody knows which is meant.
        twice = sites.named(sources(one=SUM, other=SUM))
        self.assertFalse([name for name in twice if name[1] == "Toy::sum"])

    def test_dropped(self):
        wrong = dict(self.placed)
        number = self.number("effect", "Toy::sum", "total += values[i];")
        wrong[number] = wrong[number]._replace(before="{ if (no_such_name) ")
        words = self.compile(wrong)
        self.compile(self.placed)
        self.assertEqual(tree.to_drop(words, wrong, {PATH: PROGRAM}), {number})

    def test_list_and_log(self):
        path = self.folder / "list"
        fates.write_list(path, "0badcafe", self.mutants)
        self.assertEqual(fates.read_list(path), ("0badcafe", self.mutants))
        self.assertEqual(fates.draw(self.named, "0badcafe"), self.mutants)
        many = [fates.Mutant(number, room, kind, "f", 1, str(number)) for room in "ab"
                for number, kind in enumerate(["bound", "exit"] * fates.WANTED, 1 if room == "a" else 101)]
        log = fates.Log(self.folder, self.log_path)
        lines = []

        def write(words):
            lines.append(f"2026-01-01T00:00:00 0badcafe {words}\n")
            self.log_path.write_text("".join(lines))

        log.write = write
        self.assertEqual([fates.next_to_run(many, log, only) for only in (None, "b", "104")], [1, 101, 104])
        for number in range(1, fates.WANTED + 1):
            log.add(number, fates.Fate("lived" if number == 2 else "died", 3, "unit/one test"))
        log.add(101, fates.Fate("died", 3, "unit/one"))
        # The next of its kind, a bound or an exit, takes the place of the one that lived; rooms get on alike.
        self.assertEqual([fates.next_to_run(many, log, only) for only in ("a", None)], [fates.WANTED + 2, 102])
        self.assertEqual(fates.next_to_run(many, log, None, [102]), 103)
        again = fates.Log(self.folder, self.log_path)
        self.assertEqual(again.chapters, log.chapters)
        log.add(102, fates.Fate("lived", 3, ""), is_final=False)
        self.assertEqual(fates.Log(self.folder, self.log_path).chapters, again.chapters)
        again.write = log.write
        again.begin_again()
        self.assertEqual([mutant.number for mutant in fates.to_run(many, fates.Log(self.folder, self.log_path))],
                         [1] + list(range(3, fates.WANTED + 1)) + [101])


unittest.main(argv=sys.argv[:1])
