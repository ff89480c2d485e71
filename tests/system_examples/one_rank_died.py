"""A picture of what the loss of a rank costs a training: loss by steps, undisturbed, with --survive, and with restarts.

python3 one_rank_died.py BUILD docs/pictures/one-rank-died.svg
"""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS, EPOCHS, STEPS = 8, 15, 12  # steps of an epoch, at the usual batch
VICTIM, EPOCH, STEP = 5, 9, 9  # dies in that step of that epoch, both counted from 1; a restart has less before it
BEFORE = 5  # collectives before the first step
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 86, 48
SAME = ["--epochs", str(EPOCHS), "--seed", "3"]
# Colour, options of colrun and of the trainer, and how many collectives an epoch has besides its steps.
RUNS = {
    "undisturbed, 8 ranks": ("#2c6fbb", [], ["--no-save"], None),
    "--keep-going, --survive: 7 ranks go on": ("#c0392b", ["--keep-going"], ["--no-save", "--survive"], 1),
    "--max-restarts 1, --continue: 8 ranks start again from the last epoch":
        ("#3a8f5c", ["--max-restarts", "1"], ["--model", "model", "--continue"], 2),
}


def losses(build, launcher, trainer, others):
    """Steps that were done, those that were lost included, and the loss, of each epoch; and the steps done when a rank died."""
    command = [build / "src/tools/colrun/colrun", "-n", str(RANKS), *launcher,
               build / "src/examples/digits_trainer/digits_trainer", *SAME, *trainer]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if others is not None:
        operation = BEFORE + (EPOCH - 1) * (STEPS + others) + STEP
        environment["COL_FAULT"] = f"kill:rank={VICTIM},op={operation},group=default"
    points, died, repeated = [], None, 0
    with tempfile.TemporaryDirectory() as directory:
        with subprocess.Popen([str(word) for word in command], env=environment, cwd=directory, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
            for line in job.stdout:
                if found := re.match(r"epoch +(\d+) +loss ([\d.]+)", line):
                    points.append((int(found.group(1)) * STEPS + repeated, float(found.group(2))))
                elif found := re.search(r"go on from step (\d+) of epoch (\d+)", line):
                    died = (int(found.group(2)) - 1) * STEPS + int(found.group(1))
                elif "restarting all ranks" in line:
                    died, repeated = len(points) * STEPS + STEP, STEP
    if len(points) != EPOCHS or (others is not None and died != (EPOCH - 1) * STEPS + STEP):
        raise SystemExit(f"the training did not go as it should: {command}")
    return points, died


def drawing(curves):
    longest = max(points[-1][0] for points, _ in curves.values())
    values = [loss for points, _ in curves.values() for _, loss in points]
    lowest, highest = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(steps):
        return LEFT + (WIDTH - LEFT - RIGHT) * steps / longest

    def y(loss):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(loss) - lowest) / (highest - lowest)

    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">')
    yield "<title>Training loss by steps when one of eight ranks is killed</title>"
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield (f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">training loss: rank {VICTIM} of {RANKS} is killed in step '
           f'{(EPOCH - 1) * STEPS + STEP}</text>')
    for power in range(lowest, highest + 1):
        at = y(10**power)
        yield f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#444">{10.0**power:g}</text>'
    for steps in range(0, longest + 1, 2 * STEPS):
        yield (f'<text x="{x(steps):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#444">{steps}</text>')
    yield (f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle" fill="#444">steps that were '
           'done</text>')
    for place, (name, (points, died)) in enumerate(curves.items()):
        color = RUNS[name][0]
        # What lies below the others can be seen beside them.
        width = 'stroke-width="7" stroke-opacity="0.3"' if died is None else 'stroke-width="1.5"'
        path = " ".join(f"{x(at):.1f},{y(loss):.1f}" for at, loss in points)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" {width}/>'
        for at, loss in points:
            yield f'<circle cx="{x(at):.1f}" cy="{y(loss):.1f}" r="2" fill="{color}"/>'
        if died is not None:
            yield (f'<line x1="{x(died):.1f}" y1="{TOP}" x2="{x(died):.1f}" y2="{HEIGHT - BOTTOM}" stroke="{color}" '
                   'stroke-dasharray="4 3"/>')
        yield f'<text x="{LEFT}" y="{42 + 15 * place}" fill="{color}">{name}</text>'
    yield "</svg>"


def main():
    build, target = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    curves = {name: losses(build, launcher, trainer, others) for name, (_, launcher, trainer, others) in RUNS.items()}
    target.write_text("\n".join(drawing(curves)) + "\n")


if __name__ == "__main__":
    main()
