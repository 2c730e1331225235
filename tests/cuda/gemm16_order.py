"""What check_gemm16.py asks of products that follow each other: that each sees what those before it wrote.

Kernels may begin before the one ahead has ended, and must then wait before they read what it writes,
or write what it reads. So products of a few matrices, each of which was just written or is about to
be, follow each other without a pause, one by one and in a CUDA graph, and are compared with the CPU's.
"""

import random

import torch

from samebit import _products

MATRICES = 5


def draw_steps(draw, count, size, schedules):
    """Which matrices are multiplied into which, how many rows, which are transposed, what is added,
    by which schedule."""
    steps = []
    for _ in range(count):
        a, b, c, residual = draw.sample(range(MATRICES), 4)
        steps.append({
            "operands": (a, b, c), "rows": draw.choice([1, 8, 16, 33, 64, size, size]),
            "transposed": (draw.random() < 0.3, draw.random() < 0.5),
            "residual": draw.choice([None, None, None, residual, c]),
            "schedule": draw.choice([None, *schedules])})
    return steps


def prepare(engine, matrices, steps):
    """Functions of a stream that launch the steps; a schedule that refuses is left for the chosen one."""
    launches = []
    for step in steps:
        a, b, c = (matrices[i] for i in step["operands"])
        rows = min(step["rows"], a.shape[0])
        a, b = (x.t() if transposed else x for x, transposed in zip((a, b), step["transposed"]))
        residual = step["residual"]
        operands = (engine, a[:rows], b, c[:rows])
        options = {"scale": step["scale"],
                   "residual": None if residual is None else matrices[residual][:rows]}
        forced = _products.product(*operands, schedule=step["schedule"], **options)
        chosen = _products.product(*operands, **options)

        def launch(stream, forced=forced, chosen=chosen):
            if _products.refused(forced.run, stream):
                chosen.run(stream)

        launches.append(launch)
    return launches


def run_on_cpu(engine, matrices, steps):
    """Runs the steps, and gives each a scale that keeps what it computes near 1: it would overflow soon."""
    for step in steps:
        a, b, _ = (matrices[i].float() for i in step["operands"])
        sizes = a.square().mean() * b.square().mean() * a.shape[0]
        step["scale"] = float(sizes.clamp(min=1e-30) ** -0.5)
        prepare(engine, matrices, [dict(step, schedule=None)])[0](0)


def check_order(engine, cpu, device, dtype, size, count, seed, replays=5):
    """How many elements differ in the end, and how many were compared."""
    draw = random.Random(seed)
    steps = draw_steps(draw, count, size, engine.schedules)
    generator = torch.Generator().manual_seed(seed)
    start = [torch.randn(size, size, generator=generator).to(dtype) for _ in range(MATRICES)]
    expected = [matrix.clone() for matrix in start]
    run_on_cpu(cpu, expected, steps)
    there, wanted = ([matrix.to(device) for matrix in each] for each in (start, expected))
    matrices = [torch.empty_like(matrix) for matrix in there]
    launches = prepare(engine, matrices, steps)
    differing, compared = 0, 0

    def run_all(stream):
        for launch in launches:
            launch(stream)

    runs = [lambda: run_all(torch.cuda.current_stream().cuda_stream if device == "cuda" else 0)]
    if device == "cuda":
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            run_all(stream.cuda_stream)
        runs += [graph.replay] * replays
    for run in runs:
        for matrix, original in zip(matrices, there):
            matrix.copy_(original)
        run()
        for matrix, other in zip(matrices, wanted):
            compared += matrix.numel()
            differing += int((matrix.view(torch.int16) != other.view(torch.int16)).sum())
    return differing, compared
