#!/usr/bin/env python3
"""Time every schedule of Samebit's bf16 products on a GPU, and fit the numbers by which one is chosen.

    python gemm16_schedules.py sweep --library libsamebit.so --write FILE [--seconds S]
    python gemm16_schedules.py fit FILE [--only REGEX] [--steps N]

sweep: lines "FAMILY M K N SCHEDULE=us …" (cublas among them) for the layers of gemm16_bench.py, of 1
to 2048 rows. fit: reads them and src/cuda/contraction/gemm16_hopper.c, and finds for each schedule by itself the five times and
rates of its table with which cost() there comes nearest to what it took. It prints them, how far off they are, and how much
longer the choice by them takes than the best schedule for each product: with all products known, and each with those of three
quarters of the others alone. (Numbers that are fitted to the choice, as they once were, choose better among products that they know and
worse among others.)
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
# Of short k and many tiles: adapters of a low rank, and gradients of weights behind few rows.
SHORT = ([("fwd", m, k, n) for m in (64, 512, 4096) for k in (16, 64, 128) for n in (1024, 4096)]
         + [("dB", m, k, n) for m in (16, 64, 192) for k, n in [(4096, 12288), (4096, 4096), (1024, 4096)]])
CASES = (SHORT + [("fwd", m, k, n) for m in (1, 8, 16, 32, 64) for k, n in SKINNY]
         + [("fwd", m, k, n) for m in (72, 96, 130, 160, 192, 300, 700) for k, n in MIDDLE]
         + [("fwd", m, k, n) for m in (128, 1024, 4096) for k, n in NARROW]
         + [(family, m, k, n) for family in ("fwd", "dA", "dB")
            for m in (128, 256, 512, 1024, 2048) for k, n in LAYERS])
SOURCE = pathlib.Path(__file__).resolve().parents[1] / "src" / "cuda" / "contraction" / "gemm16_hopper.c"
MULTIPROCESSORS, FEWEST_ROWS = 132, 16
MOST_OPERATIONS = 800.0  # 10^6 in a microsecond


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
                     + r",\s+([\w |]+)" + r",\s+([\d.]+)" * 5 + r"\}")
    shapes = [{"rows": int(m[1]), "n": int(m[2]), "boxes": int(m[3]), "cluster": int(m[5]), "swapped": "SWAPPED" in m[6],
               "times": tuple(float(m[i]) for i in range(7, 12))} for m in row.finditer(table)]
    names = re.findall(r'SCHEDULE\(\d+, "([^"]+)"\)', text)
    assert len(names) == len(shapes) > 0, "the table is not written as it is read here"
    return list(zip(names, shapes))


def read_lines(path):
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        family, m, k, n, *times = line.split()
        yield (family, int(m), int(k), int(n)), {name: float(value) for name, value in
                                                 (time.split("=") for time in times)}


def at_once(shape):
    """Clusters that run at the same time, as at_once() of the source says."""
    cluster = shape["cluster"]
    return MULTIPROCESSORS * 10 // 11 // 4 if cluster > 2 else MULTIPROCESSORS // cluster


def rows_of(shape, family, m, k, n):
    """The rows that a tile takes, as rows_of() of the source says."""
    if not shape["swapped"] or family != "fwd":
        return shape["rows"]
    share = math.ceil(n / max(at_once(shape) // math.ceil(m / shape["n"]) * shape["cluster"], 1))
    return min(shape["rows"], max(FEWEST_ROWS, math.ceil(share / 8) * 8))


def describe(shape, family, m, k, n):
    """What cost() of the source works on: rounds of tiles of 64 k, rounds, 10^6 bytes that all multiprocessors would fetch, did they
    fetch as much as the busiest one, 10^6 bytes moved, and 10^6 operations."""
    rows, columns, inner = extents(family, m, k, n)
    moved = 2 * (rows * inner + inner * columns + rows * columns)
    most = rows_of(shape, family, m, k, n) * shape["cluster"]
    if shape["swapped"]:
        rows, columns = columns, rows
    tiles = math.ceil(rows / most) * math.ceil(columns / shape["n"])
    blocks = math.ceil(inner / 64 / shape["boxes"]) * shape["boxes"]
    rounds = math.ceil(tiles / at_once(shape))
    lines = min(rows, most // shape["cluster"]) + shape["n"]
    fetched = rounds * at_once(shape) * shape["cluster"] * lines * inner * 2
    operations = 2 * tiles * shape["cluster"] * shape["rows"] * shape["n"] * blocks * 64
    return rounds * blocks, rounds, 1e-6 * fetched, 1e-6 * moved, 1e-6 * operations


def cost(work, times):
    """Microseconds, as cost() of the source reckons them."""
    steps, rounds, fetched, moved, operations = work
    step, around, turnover, cache, memory = times
    computing = steps * step + rounds * turnover
    return around + (computing**4 + (fetched / cache) ** 4 + (moved / memory) ** 4 + (operations / MOST_OPERATIONS) ** 4) ** 0.25


# What times and rates may be, and where those that a schedule's products say nothing of are drawn to.
BOUNDS = ((0.01, 2.0), (0.2, 20.0), (0.05, 6.0), (3.0, 30.0), (3.3, 5.0))
USUAL = (None, None, (0.8, 3e-5), (8.0, 1e-4), (4.2, 1e-4))


def loss(products, times):
    """How far off the times are: products count less the further the schedule is from the best one."""
    off = sum((weight * abs(math.log(cost(work, times) / taken))) ** 1.5 for work, taken, weight in products)
    drawn = sum(usual[1] * math.log(value / usual[0]) ** 2 for value, usual in zip(times, USUAL) if usual)
    return off / len(products) + drawn


def fitted(products, steps):
    """The times of a schedule whose products [(work, microseconds, weight)] are known: a random walk downhill."""
    choice = random.Random(0)
    starts = [(0.03 * 1.13**i, 2.0, 0.8, 8.0, 4.2) for i in range(30)]
    least, times = min((loss(products, start), start) for start in starts)
    for at in range(steps):
        i, changed = choice.randrange(5), list(times)
        changed[i] *= math.exp(choice.gauss(0, 0.3 * (1 - at / steps) + 0.01))
        if BOUNDS[i][0] <= changed[i] <= BOUNDS[i][1]:
            value = loss(products, changed)
            if value < least:
                least, times = value, tuple(changed)
    return times


class Fit:
    """Products that were timed, and what each schedule took for them."""

    def __init__(self, path):
        self.shapes = dict(read_table())
        self.lines = [(case, {name: value for name, value in times.items() if name != "cublas"}, times["cublas"])
                      for case, times in read_lines(path)]
        self.works = [{name: describe(self.shapes[name], *case) for name in times} for case, times, _ in self.lines]

    def table(self, steps, known, names=None):
        """{schedule: its times} by the products whose numbers are in `known`."""
        found = {}
        for name in names or self.shapes:
            products = [(self.works[i][name], self.lines[i][1][name],
                         max(min(self.lines[i][1].values()) / self.lines[i][1][name], 0.15))
                        for i in known if name in self.works[i]]
            if products:
                found[name] = fitted(products, steps)
        return found

    def choices(self, table, numbers):
        """(microseconds of the choice, of the best schedule, of cuBLAS) of products."""
        for i in numbers:
            _, times, cublas = self.lines[i]
            chosen = min((name for name in times if name in table), key=lambda name: cost(self.works[i][name], table[name]))
            yield times[chosen], min(times.values()), cublas

    @staticmethod
    def tell(label, choices):
        choices = list(choices)
        longer = statistics.geometric_mean(taken / best for taken, best, _ in choices)
        ratio = statistics.geometric_mean(cublas / taken for taken, _, cublas in choices)
        print(f"{label}: {100 * (longer - 1):.1f} % longer than the best schedules, cuBLAS's time over it {ratio:.3f}")


def fit(arguments):
    problem = Fit(arguments.file)
    everything = range(len(problem.lines))
    problem.tell("as it is", problem.choices({name: shape["times"] for name, shape in problem.shapes.items()}, everything))
    table = problem.table(arguments.steps, everything)
    problem.tell("fitted", problem.choices(table, everything))
    parts = [[i for i in everything if i % 4 == part] for part in range(4)]
    held_out = [choice for part in parts for choice in problem.choices(
        problem.table(arguments.steps // 4, [i for i in everything if i not in part]), part)]
    problem.tell("of products that were not known", held_out)
    for name, (step, around, turnover, cache, memory) in table.items():
        off = statistics.pstdev(math.log(cost(work[name], table[name]) / times[name])
                                for work, (_, times, _) in zip(problem.works, problem.lines) if name in times)
        if re.search(arguments.only, name):
            print(f"{name:14} {step:.3f}, {around:.2f}, {turnover:.2f}, {cache:.1f}, {memory:.2f}  off by {100 * off:.0f} %")


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
    command.add_argument("--only", default="", help="prints the times of schedules in whose name this regular expression is found")
    command.add_argument("--steps", type=int, default=1500, help="of the walk to each schedule's times")
    command.set_defaults(run=fit)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
