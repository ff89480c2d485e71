"""A picture of one table of the document: allreduce by size, col beside its rivals, both axes in powers of ten.

python3 picture.py docs/performance.md docs/pictures/allreduce.svg
"""

import math
import pathlib
import re
import sys

RANKS = 4
CONTESTANTS = {"col": "#c0392b", "Open MPI 5": "#2c6fbb", "MPICH 5": "#8e6bb0", "Intel MPI": "#3a8f5c", "Gloo": "#b9812f"}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 48, 48


def first_table(page, ranks):
    """Title and rows, as dictionaries, of the first table with so many ranks: the fastest state of the machine."""
    found = re.search(rf"^### ({ranks} ranks, [^\n]*)\n\n((?:\|[^\n]*\n)+)", page, re.MULTILINE)
    if not found:
        raise SystemExit(f"the document has no table of {ranks} ranks")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.group(2).splitlines()]
    return found.group(1), [dict(zip(lines[0], line)) for line in lines[2:]]


def microseconds(cell):
    """None where there is no time. Marks and the name of a setting stand behind the number."""
    number = re.match(r"[\d,.]+", cell)
    return float(number.group().replace(",", "")) if number else None


def curves(rows):
    for name in CONTESTANTS:
        points = []
        for row in rows:
            if row["operation"] == "allreduce" and (time := microseconds(row[name])):
                number, unit = row["size"].split()
                points.append((int(number) * UNITS[unit], time))
        if points:
            yield name, points


def drawing(page):
    title, rows = first_table(page, RANKS)
    lines = list(curves(rows))
    sizes = sorted({size for _, points in lines for size, _ in points})
    times = [time for _, points in lines for _, time in points]
    lowest, highest = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    across = (WIDTH - LEFT - RIGHT) / math.log2(sizes[-1] / sizes[0])
    up = (HEIGHT - TOP - BOTTOM) / (highest - lowest)

    def x(size):
        return LEFT + across * math.log2(size / sizes[0])

    def y(time):
        return HEIGHT - BOTTOM - up * (math.log10(time) - lowest)

    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">')
    yield f'<title>allreduce of float32, {title}: time by size, lower is better</title>'
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">allreduce, {RANKS} ranks: lower is better</text>'
    for power in range(lowest, highest + 1):
        at = y(10**power)
        label = f"{10**power:g} µs" if power < 3 else f"{10**(power - 3):g} ms"
        yield f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#444">{label}</text>'
    labelled = -math.inf
    for size in sizes:
        if x(size) < labelled + 55:
            continue
        labelled = x(size)
        unit = max((name for name in UNITS if size >= UNITS[name]), key=UNITS.get)
        yield (f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#444">'
               f'{size // UNITS[unit]} {unit}</text>')
    free_above = TOP
    for name, points in sorted(lines, key=lambda line: y(line[1][-1][1])):
        path = " ".join(f"{x(size):.1f},{y(time):.1f}" for size, time in points)
        width = 3 if name == "col" else 1.5
        color = CONTESTANTS[name]
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>'
        for size, time in points:
            yield f'<circle cx="{x(size):.1f}" cy="{y(time):.1f}" r="{width + 0.5}" fill="{color}"/>'
        label_at = max(free_above, y(points[-1][1]))
        free_above = label_at + 15
        weight = ' font-weight="bold"' if name == "col" else ""
        yield f'<text x="{WIDTH - RIGHT + 10}" y="{label_at + 4:.1f}" fill="{color}"{weight}>{name}</text>'
    yield "</svg>"


def write(document, picture):
    picture.write_text("\n".join(drawing(document.read_text())) + "\n")


if __name__ == "__main__":
    write(*map(pathlib.Path, sys.argv[1:]))
