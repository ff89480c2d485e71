"""How ranks are laid out over hosts, what must pass the hosts' links, and what is measured where."""

import dataclasses

KIB, MIB = 1 << 10, 1 << 20
COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "reduce", "broadcast", "gather", "scatter", "alltoall")


@dataclasses.dataclass(frozen=True)
class Layout:
    counts: tuple  # ranks of each host
    in_turn: bool = False  # dealt to the hosts one by one, not host after host

    @property
    def name(self):
        equal = len(set(self.counts)) == 1
        shape = f"{len(self.counts)}×{self.counts[0]}" if equal else "+".join(map(str, self.counts))
        return shape + ", in turn" * self.in_turn

    @property
    def ranks(self):
        return sum(self.counts)

    @property
    def hosts(self):
        """The host of each rank."""
        if not self.in_turn:
            return [host for host, count in enumerate(self.counts) for _ in range(count)]
        left, hosts = list(self.counts), []
        while any(left):
            for host, count in enumerate(left):
                if count:
                    hosts.append(host)
                    left[host] -= 1
        return hosts

    def ranks_of(self, host):
        return [rank for rank, where in enumerate(self.hosts) if where == host]


def bound(operation, layout):
    """What the busiest host has to send or to receive, whatever the algorithm, in units of the vector (nccl-tests' size)."""
    hosts, ranks = len(layout.counts), layout.ranks
    shares = [count / ranks for count in layout.counts]
    root = shares[layout.hosts[0]]
    return {
        "allreduce": 2 * (hosts - 1) / hosts,
        "allgather": 1 - min(shares),
        "reduce_scatter": 1 - min(shares),
        "reduce": 1,
        "broadcast": 1,
        "gather": 1 - root,
        "scatter": 1 - root,
        "alltoall": max(count * (1 - share) for count, share in zip(layout.counts, shares)),
    }[operation]


def bound_seconds(operation, layout, bytes_, bits_per_second):
    return bound(operation, layout) * bytes_ * 8 / bits_per_second


PAIR, TWO_BY_TWO, TWO_BY_FOUR, FOUR_BY_TWO = Layout((1, 1)), Layout((2, 2)), Layout((4, 4)), Layout((2,) * 4)
UNEVEN = Layout((4, 3, 1))


def in_turn(layout):
    return dataclasses.replace(layout, in_turn=True)


@dataclasses.dataclass(frozen=True)
class Turn:
    """Cells that every contestant of a layout measures in one launch."""

    part: str  # bytes, times, slow or fast_link
    layout: Layout
    cells: tuple  # (operation, bytes)
    rate: str = ""  # what the links are held to, as tc writes it
    alone: bool = False  # only col
    each_wire: bool = False  # also col over each of its wires by name
    seconds: float = 0.04
    most_seconds: float = 0.2


BITS_PER_SECOND = {"200mbit": 200e6, "1gbit": 1e9}
LATENCIES = (("barrier", 0), ("allreduce", 8), ("allreduce", MIB), ("allreduce", 32 * MIB))


def each(operations, bytes_):
    return tuple((operation, bytes_) for operation in operations)


def turns(quick):
    """All of them, by part."""
    few = {"seconds": 0.0, "most_seconds": 0.0}  # three calls: bytes are the same in each, and a slow link decides alone
    layouts = [PAIR, TWO_BY_TWO, in_turn(TWO_BY_TWO), TWO_BY_FOUR, in_turn(TWO_BY_FOUR), FOUR_BY_TWO,
               in_turn(FOUR_BY_TWO), UNEVEN, in_turn(UNEVEN)]
    others = [TWO_BY_FOUR, FOUR_BY_TWO]
    if quick:
        layouts, others = [TWO_BY_FOUR, in_turn(TWO_BY_FOUR), UNEVEN], []
    wire = [Turn("bytes", layout, each(COLLECTIVES, 32 * MIB), alone=layout not in others, **few) for layout in layouts]
    small = (("round_trip", 8), *LATENCIES)
    times = [Turn("times", PAIR, small[:4] if quick else small, each_wire=True),
             Turn("times", TWO_BY_TWO, LATENCIES, each_wire=True)]
    if not quick:
        blocked = COLLECTIVES[1:]
        times.append(Turn("times", TWO_BY_TWO, each(blocked, KIB) + each(blocked, MIB), each_wire=True))
    slow = ("allreduce",) if quick else ("allreduce", "allgather", "reduce_scatter")
    return {
        "bytes": wire,
        "times": times,
        "slow": [Turn("slow", TWO_BY_FOUR, each(slow, 8 * MIB), rate="200mbit", **few)],
        "fast_link": [Turn("fast_link", TWO_BY_FOUR, each(["allreduce"], 32 * MIB), rate="1gbit",
                           each_wire=True, **few)],
    }
