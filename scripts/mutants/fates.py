"""The list of mutants (tests/mutants.txt) and the log of what became of them (tests/mutants.log), both committed: the same mutants
have to die before and after a change of tests or of rooms, and all of that takes more than one sitting.
"""
import collections, datetime, difflib, random, subprocess

import sites

WANTED = 10  # mutants that die, of each room
DRAWN = 30   # of each room: with those that take the place of others
FENCES = 1   # of each room: most processors order more than they are asked to, and only models of memory notice
HEAD = """# Mutants of the sources (scripts/dev mutants):
# number, room when it was drawn, kind, function, which of the equal texts there, text
"""

Mutant = collections.namedtuple("Mutant", "number room kind function which text")
Fate = collections.namedtuple("Fate", "result seconds test")


def name_of(mutant):
    return mutant.kind, mutant.function, mutant.text, mutant.which


def draw(named, seed, count=DRAWN):
    """So many of each room, of all kinds in turn, as a seed wants it."""
    rooms = collections.defaultdict(lambda: {kind: [] for kind in sites.KINDS})
    for name, site in sorted(named.items()):
        rooms[sites.room_of(site.path)][site.kind].append(name)
    mutants = []
    for room, of_kind in sorted(rooms.items()):
        for kind, names in of_kind.items():
            random.Random(f"{seed} {room} {kind}").shuffle(names)
        drawn = []
        del of_kind["fence"][FENCES:]
        while len(drawn) < count and any(of_kind.values()):
            drawn += [names.pop() for names in of_kind.values() if names]
        for kind, function, text, which in drawn[:count]:
            mutants.append(Mutant(len(mutants) + 1, room, kind, function, which, text))
    return mutants


def write_list(path, seed, mutants):
    lines = ["\t".join(map(str, mutant)) for mutant in mutants]
    path.write_text(HEAD + f"seed {seed}\n" + "\n".join(lines) + "\n")


def read_list(path):
    seed, mutants = "", []
    for line in path.read_text().splitlines():
        if line.startswith("seed "):
            seed = line.split()[1]
        elif not line.startswith("#"):
            number, room, kind, function, which, text = line.split("\t")
            mutants.append(Mutant(int(number), room, kind, function, int(which), text))
    return seed, mutants


def nearest(mutant, named):
    """The place that a mutant that is not found may have become, or None."""
    taken = [name for name in named if name[0] == mutant.kind and (name[1] == mutant.function or name[2] == mutant.text)]
    likeness = lambda name: difflib.SequenceMatcher(None, f"{mutant.function} {mutant.text}", f"{name[1]} {name[2]}").ratio()
    best = max(taken, key=likeness, default=None)
    return best if best and likeness(best) > 0.6 else None


class Log:
    """A line for each fate: date, commit, number, result, seconds, test. `again` begins a chapter: what died in the first one has to
    die anew."""

    def __init__(self, root, path):
        self.root, self.path, self.chapters = root, path, [{}]
        for line in path.read_text().splitlines() if path.exists() else []:
            words = line.split(maxsplit=6)
            if words[2] == "again":
                self.chapters.append({})
            elif words[2] != "drawn":
                self.chapters[-1][int(words[2])] = Fate(words[3], int(words[4]), words[6] if len(words) > 6 else "")

    def begin_again(self):
        self.chapters.append({})
        self.write("again")

    def add(self, number, fate, is_final=True):
        self.chapters[-1][number] = fate
        words = f"{number} {fate.result} {fate.seconds} s {fate.test}".rstrip()
        self.write(words) if is_final else print(words, flush=True)

    def git(self, *command):
        return subprocess.run(["git", *command], cwd=self.root, stdout=subprocess.PIPE, text=True)

    def write(self, words):
        commit = self.git("rev-parse", "--short=8", "HEAD").stdout.strip()
        commit += "+" if self.git("diff", "--quiet", "HEAD", "--", "src", "tests", ":!tests/mutants.*").returncode else ""
        line = f"{datetime.datetime.now().isoformat(timespec='seconds')} {commit} {words}"
        with open(self.path, "a") as log:
            print(line, file=log)
        print(line, flush=True)

    def killer(self, number):
        """The test that it died by in the first chapter."""
        fate = self.chapters[0].get(number)
        return fate.test if fate and fate.result == "died" else ""

    def is_first(self):
        return len(self.chapters) == 1


def of_rooms(mutants):
    rooms = collections.defaultdict(list)
    for mutant in mutants:
        rooms[mutant.room].append(mutant)
    return rooms


def to_run(mutants, log):
    """Those that count, room by room: the first WANTED of each, and in the place of one that did not die the next of its kind in its
    room, or else the next of its room. After `again`, those that died before."""
    if not log.is_first():
        return [mutant for mutant in mutants if died(log.chapters[0], mutant)]
    chosen = []
    for of_room in of_rooms(mutants).values():
        spare = of_room[WANTED:]
        for mutant in of_room[:WANTED]:
            chosen.append(mutant)
            while mutant.number in log.chapters[0] and not died(log.chapters[0], mutant) and spare:
                mutant = next((other for other in spare if other.kind == mutant.kind), spare[0])
                spare.remove(mutant)
                chosen.append(mutant)
    return chosen


def died(chapter, mutant):
    return mutant.number in chapter and chapter[mutant.number].result == "died"


def next_to_run(mutants, log, only=None, under_way=()):
    """The number of one of a room that has got less far than others, or None."""
    chosen = to_run(mutants, log)
    is_taken = lambda mutant: mutant.number in log.chapters[-1] or mutant.number in under_way
    taken = collections.Counter(mutant.room for mutant in chosen if is_taken(mutant))
    left = [mutant for mutant in chosen if not is_taken(mutant) and (not only or only in (mutant.room, str(mutant.number)))]
    return min(left, key=lambda mutant: (taken[mutant.room], mutant.number)).number if left else None
