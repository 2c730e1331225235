"""Models for tests, in ONNX's text form, as bytes."""
import unittest

try:
    import numpy  # noqa: F401
    import onnx.parser
except ImportError:
    raise unittest.SkipTest("numpy and onnx are not both installed") from None


def made(body, opset=17, more=""):
    """A model of a graph in ONNX's text form."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]{more}>\n{body}')
    return model.SerializeToString()


def add_one(dtype="float", extent="n"):
    """y = x + 1, elementwise."""
    return made(f"agraph ({dtype}[{extent}] x) => ({dtype}[{extent}] y) <{dtype} one = {{1}}> {{ y = Add(x, one) }}")


IDENTITY = made("agraph (float[n] x) => (float[n] y) { y = Identity(x) }")

# Sums up to `limit` steps, of which the condition never ends one.
LOOP = made("""
agraph (int64 limit, float[4] x) => (float[4] y) {
    go = Constant <value = bool {1}> ()
    y = Loop (limit, go, x) <body = body (int64 i, bool more, float[4] a) => (bool still, float[4] b) {
        still = Identity(more)
        b = Add(a, a)
    }>
}""")
ENDLESS = 2 ** 62

# h' = tanh(h + x), which is also what comes out.
RECURRENT = made("agraph (float[b,3] x, float[b,3] h) => (float[b,3] y, float[b,3] hN) "
                 "{ s = Add(x, h)  hN = Tanh(s)  y = Identity(hN) }")

# A cache that grows by the rows of x; the mean of all rows.
CACHE = made("agraph (float[1,t,2] x, float[1,past,2] k) => (float[1,1,2] y, float[1,total,2] kN) "
             "{ kN = Concat <axis = 1> (k, x)  y = ReduceMean <axes = [1]> (kN) }")

NETWORK = made("""
agraph (float[batch,8] x) => (float[batch,4] y)
<float[8,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32}> {
    product = MatMul(x, w)
    half = Constant <value = float {0.5}> ()
    scaled = Mul(product, half)
    bounded = Tanh(scaled)
    y = Sigmoid(bounded)
}""")
