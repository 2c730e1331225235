"""The arithmetic of docs/numerics.md, sections 2 to 7, once more: from the page's words and Python's own
floats (binary64)."""
import math
import struct

# significant bits, least exponent (of the lowest normal number), greatest exponent
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}


def round_ratio(numerator, denominator, dtype):
    """A ratio of integers to the nearest number of the format, ties to even. The sign of a zero is the caller's."""
    bits, low, high = FORMATS[dtype]
    if numerator == 0:
        return 0.0
    sign, magnitude = -1 if numerator < 0 else 1, abs(numerator)
    exponent = magnitude.bit_length() - denominator.bit_length()
    exponent -= magnitude << max(-exponent, 0) < denominator << max(exponent, 0)
    unit = max(exponent, low) - bits + 1
    whole = denominator << max(unit, 0)
    rounded, left = divmod(magnitude << max(-unit, 0), whole)
    rounded += 2 * left > whole or (2 * left == whole and rounded % 2 == 1)
    if rounded.bit_length() + unit > high + 1:
        return sign * math.inf
    return sign * math.ldexp(rounded, unit)


def store(dtype, value):
    """A binary64 number to the nearest one of the format."""
    if dtype not in FORMATS or not math.isfinite(value) or value == 0 or dtype == "f64":
        return value
    if dtype == "f32" and abs(value) < 2.0 ** 127:
        return struct.unpack("f", struct.pack("f", value))[0]
    return round_ratio(*value.as_integer_ratio(), dtype)


class Real:
    """The operations of one type of computation; each rounds once."""

    def __init__(self, dtype):
        self.dtype = dtype

    def round(self, value):
        return store(self.dtype, value)

    # In binary64 the basic operations on binary32 numbers are exact enough for rounding twice to be rounding once.
    def add(self, a, b):
        return self.round(a + b)

    def sub(self, a, b):
        return self.round(a - b)

    def mul(self, a, b):
        return self.round(a * b)

    def div(self, a, b):
        if b == 0:
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
        return self.round(a / b)

    def sqrt(self, a):
        return self.round(math.sqrt(a))

    def fma(self, a, b, c):
        if not all(map(math.isfinite, (a, b, c))):
            return a * b + c
        (a_top, a_bottom), (b_top, b_bottom), (c_top, c_bottom) = (x.as_integer_ratio() for x in (a, b, c))
        product, bottom = a_top * b_top, a_bottom * b_bottom
        exact = product * c_bottom + c_top * bottom
        if exact == 0:
            return c + a * b if product == 0 else 0.0
        return round_ratio(exact, bottom * c_bottom, self.dtype)

    def _reduce(self, values, first, following, join, empty):
        total = None
        for start in range(0, len(values), 4096):
            block = values[start : start + 4096]
            lanes = [first(x) for x in block[:256]]
            for i, x in enumerate(block[256:]):
                lanes[i % 256] = following(x, lanes[i % 256])
            half = 128
            while half:
                for lane in range(half):
                    if lane + half < len(lanes):
                        lanes[lane] = join(lanes[lane], lanes[lane + half])
                del lanes[max(half, 1) :]
                half //= 2
            total = lanes[0] if total is None else join(total, lanes[0])
        return empty if total is None else total

    def sum(self, values):
        return self._reduce(values, lambda x: x, lambda x, lane: self.add(lane, x), self.add, 0.0)

    def squares(self, values):
        return self._reduce(values, lambda x: self.mul(x, x), lambda x, lane: self.fma(x, x, lane), self.add, 0.0)

    def product(self, values):
        return self._reduce(values, lambda x: x, lambda x, lane: self.mul(lane, x), self.mul, 1.0)

    def mean(self, values):
        return self.div(self.sum(values), self.round(float(len(values))))

    def chain(self, pairs, acc=0.0):
        for a, b in pairs:
            acc = self.fma(a, b, acc)
        return acc


F32, F64 = Real("f32"), Real("f64")


def computing(dtype):
    return F64 if dtype == "f64" else F32


def exponent(value, dtype):
    return max(math.frexp(value)[1] - 1, FORMATS[dtype][1])


def chain16(dtype, pairs, acc=0.0):
    """Section 7, for finite numbers."""
    for start in range(0, len(pairs), 16):
        group = [(a, b) for a, b in pairs[start : start + 16] if a != 0 and b != 0]
        e = max([-133] + [exponent(a, dtype) + exponent(b, dtype) for a, b in group])
        e = max(e, exponent(acc, "f32")) if acc != 0 else e
        total = int(math.ldexp(acc, 25 - e)) + sum(int(math.ldexp(a * b, 25 - e)) for a, b in group)
        drop = max(abs(total).bit_length() - 24, -149 - (e - 25), 0)
        kept = abs(total) >> drop
        acc = math.copysign(math.ldexp(kept, e - 25 + drop), total) if kept else 0.0
        if abs(acc) >= 2.0 ** 128:
            acc = math.copysign(math.inf, acc)
    return acc


def contract(dtype, pairs):
    """The accumulator of a contraction, before it is rounded to the dtype."""
    pairs = list(pairs)
    return chain16(dtype, pairs) if dtype in ("f16", "bf16") else computing(dtype).chain(pairs)


def philox(counter, key):
    """Philox4x32-10."""
    c, (low, high) = list(counter), key
    for _ in range(10):
        left, right = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [right >> 32 ^ c[1] ^ low, right & 0xFFFFFFFF, left >> 32 ^ c[3] ^ high, left & 0xFFFFFFFF]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return c
