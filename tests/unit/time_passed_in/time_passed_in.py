#!/usr/bin/env python3
"""Only core/clock reads a clock or lets time pass: docs/decisions/0054-time-is-passed-in.md.

usage: time_passed_in.py ROOT EXCEPTIONS FOLDER...

Each line of EXCEPTIONS is a path, a kind (below) that it may have all the same, and the reason.
"""

import ast
import pathlib
import re
import sys

NESTED = r"\((?:[^()]|\([^()]*\))*\)"
ONE, ANY = rf"(?:[^(),]|{NESTED})*", rf"(?:[^()]|{NESTED})*"  # arguments
LIBC, QUALIFIED = r"(?<![\w.:>])(?:::|std::)*", r"(?<![\w.:>])(?:::|std::)+"  # before a name, which is then no member
IN_CPP = {
    "clock": r"\b(?:[a-z_]+_)?clock\s*::\s*now\b|\b(?:steady|system|high_resolution|file|utc)_clock\s*[;>,]"
             r"|\b(?:clock_gettime|gettimeofday|timespec_get|__builtin_readcyclecounter|cntvct_el0|(?:_+|__builtin_ia32_)?rdtscp?)\b"
             rf"|{LIBC}(?:time\s*\(\s*(?:nullptr\b|NULL\b|0|&)|clock\s*\(\s*\))|{QUALIFIED}time\s*\(",
    "sleep": r"\bthis_thread\b(?!\s*::\s*get_id)|\b(?:usleep|(?:clock_)?nanosleep|sched_yield|pthread_yield|thrd_(?:sleep|yield))\b"
             rf"|\b(?:timerfd_\w+|timer_create|setitimer)\b|{LIBC}(?:(?:sleep|alarm)\s*\(|pause\s*\(\s*\))",
    # With a timeout of 0 it is a look. The others have a pointer to theirs.
    "poll": rf"{LIBC}poll\s*\((?!{ONE},{ONE},\s*0\s*\))|\bepoll_p?wait\b(?!\s*\({ONE},{ONE},{ONE},\s*0\s*[,)])"
            rf"|\b(?:ppoll|pselect|epoll_pwait2|SO_RCVTIMEO|SO_SNDTIMEO)\b|{LIBC}select\s*\(",
    # Takes a value, and maybe an order. A lock, a WaitContext, a time or a stream is no value of an atomic.
    "atomic": r"\batomic_(?:flag_)?wait\w*|(?<!\bwork)(?<!\bports_)(?:\.|->)wait\s*\("
              r"\s*(?!(?:\w*lock|wait|budget|timeout)\s*\)|(?:col::)?(?:Duration|Stream)\b)"
              rf"[^\s),]{ONE}(?:,[^(),]*\bmemory_order\w*\s*)?\)",
    "condition": r"\bstd::(?:condition_variable\w*|(?:shared_)?future|promise|async|packaged_task|latch|barrier|\w+_semaphore)\b"
                 r"|\bstd::\w*timed_mutex\b|\b(?:pthread_cond|pthread_barrier|cnd)_\w+|\b(?:pthread_\w+|mtx)_(?:timed|clock)\w*lock\b"
                 r"|\bsem_(?:timed|clock)?wait\b",
    "wait": rf"\bflock\s*\((?!{ANY}\bLOCK_(?:NB|UN)\b)|\b(?:F_SETLKW|F_OFD_SETLKW|F_LOCK)\b|\bsig(?:timedwait|waitinfo|wait|suspend)\b"
            rf"|\b(?:waitpid|waitid|wait3|wait4)\s*\((?!{ANY}\bWNOHANG\b)|{QUALIFIED}wait\s*\("
            rf"|{LIBC}wait\s*\(\s*(?:nullptr\b|NULL\b|0|&)",
    "syscall": r"\bfutex\b|\b(?:SYS|__NR)_\w*(?:futex|sleep|poll|select|wait|yield|pause|gettime)",
    "thread": r"\bstd::j?thread\b(?!\s*::\s*(?:id|hardware_concurrency)\b)|\b(?:pthread|thrd)_create\b",
    # Without its namespace, a name says too little.
    "header": r"#\s*include\s*<(?:thread|condition_variable|future|latch|barrier|semaphore|sys/select\.h)>"
              r"|\bnamespace\s+(?:\w+\s*=\s*)?(?:::)?std\s*;",
}
# Functions of ours with a name of libc's, which it means in the file that declares them.
DECLARED = r"\b(?!(?:return|else|do|and|or|not|co_\w+)\b)\w[\w:<>]*[&*]?\s+(?:\w+::)*(alarm|clock|poll|select|sleep)\s*\("
WORDS = re.compile(r"""(?P<comment>//.*|/\*(?s:.*?)\*/)|\b(?:u8|[uUL])?R"(?P<end>[^\s()\\]*)\((?s:.*?)\)(?P=end)\""""
                   r"""|"(?:\\(?s:.)|[^"\\\n])*"|(?:\b(?:u8|[uUL])|(?<!\w))'(?:\\.|[^'\\\n])+'""")
IN_PYTHON = {
    "clock": r"time\.(?:(?:time|monotonic|perf_counter|process_time|thread_time|clock_gettime)(?:_ns)?|\*)"
             r"|(?:datetime\.)?(?:datetime|date)\.(?:now|utcnow|today)",
    "sleep": r"(?:time|asyncio)\.sleep|os\.sched_yield|signal\.(?:alarm|pause|setitimer)",
    "poll": r"(?:select|selectors)\..+",
    "condition": r"(?:asyncio|multiprocessing|queue|threading)\.(?:Barrier|(?:Bounded)?Semaphore|Condition|Event|\w*Queue|\*)",
    "wait": r"asyncio\.(?:timeout\w*|wait\w*)|concurrent\.futures\.(?:as_completed|wait)|os\.wait\w*|signal\.sig\w*wait\w*",
    "thread": r"threading\.(?:Thread|Timer)|_thread\.start_\w+|(?:\w+\.)*(?:ThreadPoolExecutor|ThreadPool)|asyncio\.to_thread",
}
TIMED = {"acquire", "communicate", "get", "join", "put", "result", "wait"}  # methods that wait, if they have a `timeout`
HOME = "src/lib/core/clock/"
SUFFIXES = (".c", ".cpp", ".cu", ".h", ".hpp", ".py")


def blank(word):
    """Takes the place of a comment or a literal. One that names the processor's counter is assembly, and stays."""
    if not word["comment"] and re.search(r"rdtsc|cntvct", word[0]):
        return word[0]
    return (" " if word["comment"] else '""') + "\n" * word[0].count("\n")


def in_cpp(text):
    code = WORDS.sub(blank, text)
    if ours := set(re.findall(DECLARED, code)):
        code = re.sub(rf"(?<![\w.:>])(?:{'|'.join(ours)})(?=\s*\()", "ours", code)
    for kind, pattern in IN_CPP.items():
        for match in re.finditer(pattern, code):
            yield code.count("\n", 0, match.start()) + 1, kind


def in_python(text):
    nodes = list(ast.walk(ast.parse(text)))
    meant, named = {}, []  # what a name stands for; and all names, each with its line
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source = f"{'.' * node.level}{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                named.append((alias.lineno, source + alias.name))
                if source or alias.asname:
                    meant[alias.asname or alias.name] = source + alias.name

    def whole(node):
        if isinstance(node, ast.Attribute):
            return f"{whole(node.value)}.{node.attr}"
        return meant.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    named += [(node.lineno, whole(node)) for node in nodes if isinstance(node, (ast.Attribute, ast.Name))]
    for kind, pattern in IN_PYTHON.items():
        yield from ((line, kind) for line, name in named if re.fullmatch(pattern, name))
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TIMED:
            if any(keyword.arg == "timeout" for keyword in node.keywords):
                yield node.lineno, "wait"


root, listed, *folders = (pathlib.Path(argument) for argument in sys.argv[1:])
problems = []
exceptions, needed = set(), set()
for line in listed.read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    path, kind, reason, *_ = line.split(maxsplit=2) + ["", ""]
    if kind not in IN_CPP:
        problems.append(f"{listed.name}: {path} has no kind; it is one of {', '.join(IN_CPP)}")
        continue
    if not reason:
        problems.append(f"{listed.name}: {path} {kind} has no reason")
    if (path, kind) in exceptions:
        problems.append(f"{listed.name}: {path} {kind} is there twice")
    exceptions.add((path, kind))
for folder in folders:
    files = [path for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    if not files:
        problems.append(f"{folder} has no sources")
    for path in files:
        name, text = path.relative_to(root).as_posix(), path.read_text()
        found = () if name.startswith(HOME) else set((in_python if path.suffix == ".py" else in_cpp)(text))
        for number, kind in sorted(found):
            needed.add((name, kind))
            if (name, kind) not in exceptions:
                problems.append(f"{name}:{number}: {kind} outside of core/clock: {text.splitlines()[number - 1].strip()}")
problems += [f"{listed.name}: {path} {kind} needs no exception any more" for path, kind in sorted(exceptions - needed)]
for problem in problems:
    print(f"time_passed_in: {problem}")
sys.exit(1 if problems else 0)
