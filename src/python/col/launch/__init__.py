"""Ranks from Python: `col.run(4, function)` and `with col.ranks(4) as ranks:`. docs/testing.md teaches them.

    caller    __init__    what a program sees; imports nothing, so that `import col` stays quick
              job         colrun, a socket to each rank, and the loop that waits for them
              program     finds colrun, and says why not
              output      the lines that ranks print
              failure     makes one RankFailed of what the ranks, coljob and colrun say
    rank      rank        joins the group, carries out calls, answers
    both      wire        messages on a socket, and what may be pickled
"""

from __future__ import annotations

from ..hints import Any, Callable, Mapping, Optional


class Ranks:
    """Ranks that are kept from call to call, on this machine: `ranks(function, *args)` calls it on each of them.

    Made by `col.ranks()`. The processes start at once, and the first call waits for them. Call close(), or use it in a
    `with`: else they end with this object, and at the latest with this process. One thread at a time may call them.
    """

    def __init__(
        self, n: int, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, output: str = "label"
    ) -> None:
        from . import program

        self._n = program.refuse(n, output, timeout, env)
        self._timeout = timeout
        self._how = env, output
        self._job = _start(self._n, env, output)

    @property
    def size(self) -> int:
        """How many ranks."""
        return self._n

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Calls function(*args, **kwargs) on every rank, and returns their results, rank by rank.

        Blocks for the `timeout` of col.ranks(), in seconds, at most. On failure it raises col.RankFailed, and the ranks
        live on with a new group where they can; where a process has ended, the next call starts all of them anew. What
        cannot be pickled is col.InvalidArgument, before a rank hears of it. Ctrl-C stops the call on all ranks.
        """
        from . import program, wire

        program.refuse_function(function)
        call = wire.packed((function, args, kwargs))
        if self.is_over:
            self.close()
            self._job = _start(self._n, *self._how)
        return list(self._job.call(call, self._timeout))

    @property
    def is_over(self) -> bool:
        """True if processes of these ranks have ended: the next call starts all anew."""
        return self._job is None or bool(self._job.has_died())

    @property
    def finding(self) -> dict[str, Any]:
        """The waits in the last call when ranks in it were stopped: who for whom, as `coljob why --json` has it."""
        return dict(self._job.finding) if self._job else {}

    def close(self) -> None:
        """Ends the ranks. Blocks until they have ended: 5 seconds for what they still do, then they are killed. A second
        time, it does nothing."""
        self._end()

    def _answers(self) -> dict[int, Any]:
        return dict(self._job.answers()) if self._job is not None else {}

    def _end(self, limit: float = 5.0) -> dict[int, str]:
        """The stacks of ranks that had to be killed."""
        job, self._job = self._job, None
        return dict(job.end(limit)) if job is not None else {}

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<col.Ranks: {self._n} ranks{'' if self._job else ', ended'}>"


def _start(n: int, env: Optional[Mapping[str, str]], output: str) -> Any:
    from . import job

    return job.Job(n, env, output)


def ranks(
    n: int, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, output: str = "label"
) -> Ranks:
    """Starts n ranks on this machine and keeps them: `with col.ranks(4) as ranks: ranks(function, x)`.

    timeout: seconds that each call may take; without it a call takes as long as its function, in which each call of col
    has a limit of its own. env: variables that the ranks get beside those of this process. output: what happens to what
    ranks print: "label" writes it to sys.stdout, each line with its rank, equal lines of all ranks once; "plain" leaves
    the rank out; "none" drops it.

    Does not block. Raises col.InvalidArgument (n < 1, a call inside a rank) or col.Unavailable (colrun is missing, or of
    another version), before any process starts. May be called by several threads at once.
    """
    return Ranks(n, timeout=timeout, env=env, output=output)


def run(
    n: int, function: Callable[..., Any], *args: Any, timeout: Optional[float] = None,
    env: Optional[Mapping[str, str]] = None, output: str = "label",
) -> list[Any]:
    """Calls function(*args) on n ranks, new processes of this machine, and returns their results, rank by rank.

    In the function, col.init() has happened: col.init() and col.get_group() give the group of all ranks. The function,
    its arguments and results are pickled: by reference where a module has the function, else by cloudpickle, which must
    be installed for functions of a script or notebook, lambdas and closures. `timeout`, `env` and `output` are those of
    col.ranks(), and so are the errors before a process starts.

    Blocks until all ranks have ended. Raises col.RankFailed when a rank raises, exits or is killed, or when time is up:
    the other ranks are stopped then, and have 5 seconds for that. Nothing is left of them, nor if this process is killed.
    May be called by several threads at once.
    """
    from . import program, wire

    n = program.refuse(n, output, timeout, env)
    program.refuse_function(function)
    call = wire.packed((function, args, {}))
    job = _start(n, env, output)
    try:
        return list(job.call(call, timeout))
    finally:
        job.end()
