"""A plain persistent matrix product in Triton: the usual batch-invariant kernel, for comparison.

One tile shape for all products, so that no sum is ever split or reordered by shape; as many programs
as there are multiprocessors, which take tiles in turn. Any strides.
"""

import torch
import triton
import triton.language as tl

TILE = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64, "GROUP": 8}
LAUNCH = {"num_warps": 8, "num_stages": 3}


@triton.jit
def persistent(a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, c_column,
               FLATTEN: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
               TILE_K: tl.constexpr, GROUP: tl.constexpr):
    tiles_m = tl.cdiv(m, TILE_M)
    tiles_n = tl.cdiv(n, TILE_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0),
                         flatten=FLATTEN):
        # GROUP rows of tiles at a time, column by column: what B's tiles share is then in the L2.
        first = tile // (GROUP * tiles_n) * GROUP
        height = min(tiles_m - first, GROUP)
        rows = (first + tile % (GROUP * tiles_n) % height) * TILE_M + tl.arange(0, TILE_M)
        columns = tile % (GROUP * tiles_n) // height * TILE_N + tl.arange(0, TILE_N)
        # Rows beyond the end read others: their results are not stored, and loads need no mask for them.
        a_rows = rows % m
        b_columns = columns % n
        total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
        for start in range(0, k, TILE_K):
            inner = start + tl.arange(0, TILE_K)
            left = tl.load(a + a_rows[:, None] * a_row + inner[None, :] * a_column,
                           mask=inner[None, :] < k, other=0.0)
            right = tl.load(b + inner[:, None] * b_row + b_columns[None, :] * b_column,
                            mask=inner[:, None] < k, other=0.0)
            total = tl.dot(left, right, total)
        tl.store(c + rows[:, None] * c_row + columns[None, :] * c_column,
                 total.to(c.dtype.element_ty),
                 mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul(a, b, c, programs=None):
    """c = a · b, all of fewer than 2^31 elements."""
    if programs is None:
        programs = torch.cuda.get_device_properties(c.device).multi_processor_count
    (m, k), n = a.shape, b.shape[1]
    tiles = triton.cdiv(m, TILE["TILE_M"]) * triton.cdiv(n, TILE["TILE_N"])
    # One loop over tiles and k overlaps stores with loads, but Triton 3.6 then loads transposed
    # operands element by element.
    flatten = a.stride(1) == 1 and b.stride(0) == 1
    persistent[(min(programs, tiles),)](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
                                        FLATTEN=flatten, **TILE, **LAUNCH)


@triton.jit
def read(data, out, count, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(tl.program_id(0) * AT_ONCE * BLOCK, count, PROGRAMS * AT_ONCE * BLOCK):
        for part in tl.static_range(AT_ONCE):
            index = start + part * BLOCK + tl.arange(0, BLOCK)
            total += tl.load(data + index, mask=index < count, other=0)
    tl.store(out + tl.program_id(0), tl.sum(total, axis=0))


def read_all(data, out):
    """Reads an int32 tensor of fewer than 2^31 elements once: what memory can give to a kernel.
    `out` has an element for each program."""
    read[(out.numel(),)](data, out, data.numel(), PROGRAMS=out.numel(), BLOCK=2048, AT_ONCE=4,
                         num_warps=8)


@triton.jit
def token_logp(logits, targets, out, columns, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start_of_row = logits + row.to(tl.int64) * row_stride
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        index = start + tl.arange(0, BLOCK)
        x = tl.load(start_of_row + index, mask=index < columns, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(largest, x)
        # Where nothing has come yet both are infinite, and their difference is not a number.
        total = tl.where(higher == float("-inf"), 0.0,
                         total * tl.exp(largest - higher) + tl.exp(x - higher))
        largest = higher
    most = tl.max(largest, axis=0)
    total = tl.sum(total * tl.exp(largest - most), axis=0)
    chosen = tl.load(start_of_row + tl.load(targets + row)).to(tl.float32)
    tl.store(out + row, chosen - most - tl.log(total))


def fused_logp(logits, targets, out):
    """log softmax of each row at its target, in f32, reading the logits once."""
    rows, columns = logits.shape
    token_logp[(rows,)](logits, targets, out, columns, logits.stride(0), BLOCK=4096, num_warps=8)
