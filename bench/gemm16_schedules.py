#!/usr/bin/env python3
"""Time every schedule of Samebit's bf16 products on a GPU, and fit the numbers by which one is chosen.

    python gemm16_schedules.py sweep --library libsamebit.so --write FILE [--seconds S]
    python gemm16_schedules.py fit FILE [--tries N] [--small-tiles]

sweep: lines "FAMILY M K N SCHEDULE=us …" (cublas among them) for the layers of gemm16_bench.py, of 1
to 2048 rows. fit: reads them and src/cuda/contraction/gemm16_hopper.c, changes the times in its table by simulated
annealing until the schedules that its cost() would choose take least, and prints the new ones. Times
are kept near what they were, so that sizes that were not measured are judged by something physical.
--small-tiles changes the tiles of 64 rows alone.
"""

import argparse
import math
import pathlib
import random
import re
import statistics
import sys
import time

LAYERS = [(4096, 12288), (4096, 4096), (4096, 14336), (14336, 4096), (4096, 32000)]
SKINNY = [(2048, 2048), (2048, 8192), (8192, 2048), (4096, 4096), (4096, 14336), (14336, 4096),
          (2048, 128256)]
# Rows between few and many, where whole tiles idle: widths of attention's and of narrow models' layers.
NARROW = [(768, 3072), (3072, 768), (768, 768), (1024, 4096)]
MIDDLE = [(4096, 6144), (2048, 8192), (8192, 2048), (4096, 1024), (3584, 18944), (2560, 2560)]
CASES = ([("fwd", m, k, n) for m in (1, 8, 16, 32, 64) for k, n in SKINNY]
         + [("fwd", m, k, n) for m in (72, 96, 130, 160, 192, 300, 700) for k, n in MIDDLE]
         + [("fwd", m, k, n) for m in (128, 1024, 4096) for k, n in NARROW]
         + [(family, m, k, n) for family in ("fwd", "dA", "dB")
            for m in (128, 256, 512, 1024, 2048) for k, n in LAYERS])
SOURCE = pathlib.Path(__file__).resolve().parents[1] / "src" / "cuda" / "contraction" / "gemm16_hopper.c"
MULTIPROCESSORS, FEWEST_ROWS = 132, 32
CACHE_RATE, SMALL_TILE_CACHE_RATE = 7.61e6, 9.0e6  # bytes a microsecond, as in the source
TURNOVER = 0.8  # microseconds, as there


def extents(family, m, k, n):
    """M, N and K of the product that the library is asked for."""
    return {"fwd": (m, n, k), "dA": (m, k, n), "dB": (n, k, m)}[family]


# ---- sweep ----


def worth_trying(schedule, rows, columns):
    """Whether a schedule is anywhere near the best for so many results."""
    small = schedule.startswith(("swapped", "tile-64"))
    return not (schedule.startswith("general") or (small and rows >= 512 and rows * columns > 1 << 21))


def sweep(arguments):
    import torch

    import gpu_timing

    here = pathlib.Path(__file__).resolve().parent
    sys.path[:0] = [str(here), str(here.parent / "python")]
    import gemm16_bench
    import samebit
    from samebit import _products

    samebit.open_library(arguments.library)
    engine = samebit.Engine("cuda:0")
    schedules = [name for name, _ in read_table()]
    with open(arguments.write, "w", encoding="utf-8") as file:
        end = time.monotonic() + arguments.seconds
        for family, m, k, n in CASES:
            if time.monotonic() > end:
                print("time is up", file=sys.stderr)
                break
            rows, columns, inner = extents(family, m, k, n)
            size = 2 * (rows * inner + inner * columns + rows * columns)
            sets = [gemm16_bench.operands(family, m, k, n) for _ in range(gpu_timing.sets_needed(size))]
            outs = [torch.empty(rows, columns, device="cuda", dtype=torch.bfloat16) for _ in sets]
            sides = {"cublas": [lambda stream, a=a, b=b, out=out: torch.matmul(a, b, out=out)
                                for (a, b), out in zip(sets, outs)]}
            for name in schedules:
                if worth_trying(name, m, n):
                    products = [_products.product(engine, a, b, out, schedule=name)
                                for (a, b), out in zip(sets, outs)]
                    if _products.refused(products[0].run) is None:
                        sides[name] = [product.run for product in products]
            times = {name: statistics.median(gpu_timing.Side(launches, 50.0).time(0.02))
                     for name, launches in sides.items()}
            line = " ".join([family, str(m), str(k), str(n)]
                            + [f"{name}={value:.2f}" for name, value in times.items()])
            print(line, flush=True)
            file.write(line + "\n")
            torch.cuda.empty_cache()


# ---- fit ----


def read_table():
    """(name, shape) of every schedule, from the source."""
    text = SOURCE.read_text(encoding="utf-8")
    table = text[text.index("shape shapes[]"):text.index("what it can do")]
    modules, number = r'SB_GEMM_MODULES\("\w+"\)', r"(\d+)"
    row = re.compile(r"\{" + modules + rf",\s+(?:{modules}|\{{NULL\}}),\s+" + r",\s+".join([number] * 5)
                     + r",\s+([\w |]+),\s+([\d.]+),\s+([\d.]+)\}")
    shapes = [{"rows": int(m[1]), "n": int(m[2]), "boxes": int(m[3]), "cluster": int(m[5]), "swapped": "SWAPPED" in m[6],
               "step": float(m[7]), "around": float(m[8])} for m in row.finditer(table)]
    names = re.findall(r'SCHEDULE\(\d+, "([^"]+)"\)', text)
    assert len(names) == len(shapes) > 0, "the table is not written as it is read here"
    return list(zip(names, shapes))


def read_lines(path):
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        family, m, k, n, *times = line.split()
        yield (family, int(m), int(k), int(n)), {name: float(value) for name, value in
                                                 (time.split("=") for time in times)}


def rows_of(shape, family, m, k, n):
    """The rows that a tile takes, as rows_of() of the source says."""
    if not shape["swapped"] or family != "fwd":
        return shape["rows"]
    share = math.ceil(n / max(MULTIPROCESSORS // shape["cluster"] // math.ceil(m / shape["n"]), 1))
    return min(shape["rows"], max(FEWEST_ROWS, math.ceil(share / 8) * 8))


def describe(shape, family, m, k, n):
    """What cost() of the source works on: rounds of tiles of 64 k, rounds, microseconds of fetching, bytes moved."""
    rows, columns, inner = extents(family, m, k, n)
    moved = 2 * (rows * inner + inner * columns + rows * columns)
    most = rows_of(shape, family, m, k, n) * shape["cluster"]
    if shape["swapped"]:
        rows, columns = columns, rows
    tiles = math.ceil(rows / most) * math.ceil(columns / shape["n"])
    blocks = math.ceil(inner / 64 / shape["boxes"]) * shape["boxes"]
    rounds = math.ceil(tiles / (MULTIPROCESSORS // shape["cluster"]))
    return (rounds * blocks, rounds,
            tiles * (min(rows, most) + shape["n"]) * inner * 2 /
            (SMALL_TILE_CACHE_RATE if shape["rows"] == 64 else CACHE_RATE),
            moved)


def cost(work, step, around, shared):
    steps, rounds, fetching, moved = work
    computing = around + steps * step + rounds * TURNOVER
    return max(computing, fetching, shared["first"] + moved / 4.2e6) + computing / 8


class Fit:
    def __init__(self, path, small_tiles):
        self.names, shapes = zip(*read_table())
        self.small_tiles = small_tiles
        self.start = [(shape["step"], shape["around"]) for shape in shapes]
        self.cases = []
        for (family, m, k, n), times in read_lines(path):
            works = [(i, describe(shape, family, m, k, n), times[name])
                     for i, (name, shape) in enumerate(zip(self.names, shapes)) if name in times]
            self.cases.append(((family, m, k, n), works, times["cublas"]))
        measured = {work[0] for _, works, _ in self.cases for work in works}
        self.free = [i for i in sorted(measured) if not small_tiles or shapes[i]["rows"] == 64]

    def chosen(self, works, table, shared):
        return min(works, key=lambda work: cost(work[1], *table[work[0]], shared))

    @staticmethod
    def weight(_, m, k, n):
        """How much a case counts: few rows more, and most where weights of 64 MB and more are streamed."""
        return 1 if m > 64 else 3 if 2 * k * n >= 64e6 else 1.5

    def loss(self, table, shared):
        """How much longer the choice takes than the best one, summed over cases, and how far it is from the start."""
        taken = sum(self.weight(*case)
                    * math.log(self.chosen(works, table, shared)[2] / min(work[2] for work in works))
                    for case, works, _ in self.cases)
        return taken + 0.012 * sum(
            math.log(step / first) ** 2 + 0.3 * math.log(around / last) ** 2
            for (step, around), (first, last) in zip(table, self.start))

    def anneal(self, seed, shared, rounds=7000):
        choice = random.Random(seed)
        table, temperature = list(self.start), 0.05
        loss = self.loss(table, shared)
        best = (loss, table, shared)
        for _ in range(rounds):
            changed, other = list(table), dict(shared)
            if not self.small_tiles and choice.random() < 0.08:
                other[choice.choice(list(other))] *= math.exp(choice.gauss(0, 0.1))
            else:
                i, scale = choice.choice(self.free), math.exp(choice.gauss(0, 0.12))
                step, around = changed[i]
                changed[i] = (step * scale, around) if choice.random() < 0.5 else (step, around * scale)
            value = self.loss(changed, other)
            if value <= loss or choice.random() < math.exp((loss - value) / temperature):
                table, shared, loss = changed, other, value
            if loss < best[0]:
                best = (loss, table, shared)
            temperature *= 0.9993
        return best


def fit(arguments):
    problem = Fit(arguments.file, arguments.small_tiles)
    shared = {"first": 0.30}
    print(f"loss now {problem.loss(problem.start, shared):.4f}")
    loss, table, shared = min((problem.anneal(seed, shared) for seed in range(arguments.tries)),
                              key=lambda result: result[0])
    print(f"loss     {loss:.4f}")
    for name, (step, around) in zip(problem.names, table):
        print(f"{name:14} step {step:.3f} around {around:.2f}")
    print(" ".join(f"{name} {value:.3g}" for name, value in shared.items()))
    ratios = [cublas / problem.chosen(works, table, shared)[2] for _, works, cublas in problem.cases]
    print(f"cuBLAS's time over the chosen one's: geometric mean {statistics.geometric_mean(ratios):.3f}, "
          f"lowest {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("sweep")
    command.add_argument("--library", required=True)
    command.add_argument("--write", required=True)
    command.add_argument("--seconds", type=float, default=120)
    command.set_defaults(run=sweep)
    command = commands.add_parser("fit")
    command.add_argument("file")
    command.add_argument("--tries", type=int, default=4)
    command.add_argument("--small-tiles", action="store_true")
    command.set_defaults(run=fit)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
