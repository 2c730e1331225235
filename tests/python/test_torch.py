"""samebit.torch: bits, gradients, compilation, and, where there is one, a GPU."""
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed") from None

import samebit
from samebit.torch import accumulate_, linear, linear_logp, matmul

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
KINDS = [torch.bfloat16, torch.float16]
# Half a unit in the last place of 1.
ROUNDING = {torch.bfloat16: 2.0 ** -8, torch.float16: 2.0 ** -11}


def normal(*shape, dtype=torch.bfloat16, device="cpu", seed=0, gradient=False):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(device, dtype).requires_grad_(gradient)


def act(name, z):
    if name == "gelu_tanh":
        return torch.nn.functional.gelu(z, approximate="tanh")
    return z if name is None else getattr(torch.nn.functional, name)(z)


def plain_linear(x, weight, bias, activation, gate):
    """linear in the arithmetic of its arguments."""
    z = torch.nn.functional.linear(x, weight, bias)
    if gate == "stacked":
        gates, values = z.chunk(2, -1)
    elif gate == "interleaved":
        gates, values = z[..., 0::2], z[..., 1::2]
    else:
        return act(activation, z)
    return act(activation, gates) * values


class Case(unittest.TestCase):
    def same(self, left, right, what=""):
        self.assertEqual((left.dtype, left.shape), (right.dtype, right.shape), what)
        kind = {2: torch.int16, 4: torch.int32}[left.element_size()]
        self.assertEqual(int((left.detach().cpu().view(kind) != right.detach().cpu().view(kind)).sum()), 0, what)

    def within(self, value, exact, bound, what=""):
        """Elements within bounds, which are relative to 1 and at most zero where exactness is asked for."""
        excess = ((value.detach().double().cpu() - exact.detach().cpu()).abs() - bound.detach().cpu()).max()
        self.assertLessEqual(float(excess), 0.0, what)


class Linear(Case):
    def test_bits_are_those_of_gemm(self):
        for device in DEVICES:
            for kind in KINDS:
                x, weight, bias = normal(13, 70, dtype=kind), normal(24, 70, dtype=kind), normal(24, dtype=kind)
                expected = samebit.gemm(x, weight.T, bias=bias, activation="silu")
                self.same(linear(x.to(device), weight.to(device), bias.to(device), "silu"), expected)
                gated = samebit.gemm(x, weight.T, bias=bias, activation="gelu", gate="stacked", out_dtype="f32")
                self.same(linear(x.to(device), weight.to(device), bias.to(device), "gelu", gate="stacked",
                                 dtype=torch.float32), gated)

    def test_a_row_is_the_same_in_every_batch(self):
        for device in DEVICES:
            x, weight, bias = (t.to(device) for t in (normal(65, 96), normal(40, 96), normal(40)))
            whole = linear(x, weight, bias, "gelu_tanh")
            for size in (1, 2, 3, 8, 16, 17, 33, 64):
                parts = [linear(part, weight, bias, "gelu_tanh") for part in x.split(size)]
                self.same(torch.cat(parts), whole, size)

    def test_shapes_and_strides(self):
        x, weight = normal(4, 5, 48), normal(30, 48)
        expected = linear(x.reshape(20, 48), weight)
        self.same(linear(x, weight).reshape(20, 30), expected)
        self.same(linear(x.transpose(0, 1), weight).transpose(0, 1).reshape(20, 30), expected)
        self.same(linear(x, weight.T.contiguous().T).reshape(20, 30), expected)
        self.same(linear(x[2, 3], weight), expected[13])
        wide = torch.zeros(20, 144, dtype=torch.bfloat16)
        wide[:, ::3] = x.reshape(20, 48)
        self.same(linear(wide[:, ::3], weight), expected)
        self.assertEqual(linear(x[:0], weight).shape, (0, 5, 30))
        self.assertEqual(linear(x[..., :0], weight[:, :0]).abs().sum(), 0)
        self.assertEqual(linear(x, weight[:0]).shape, (4, 5, 0))

    def test_gradients(self):
        """Against the same in double precision. A gradient has the roundings of the result's gradient (and of the
        activation's, once more) and of itself, each at most half a unit, of terms of this size."""
        for kind in KINDS:
            for activation in (None, "relu", "silu", "gelu", "gelu_tanh"):
                for gate in (None, "stacked", "interleaved"):
                    x, weight, bias = (normal(*shape, dtype=kind, gradient=True) for shape in ((3, 9, 40), (24, 40), (24,)))
                    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
                    y = linear(x, weight, bias, activation, gate=gate)
                    exact_y = plain_linear(*exact, activation, gate)
                    self.within(y, exact_y, exact_y.abs() * ROUNDING[kind] * 1.01 + 1e-4)
                    grad = normal(*y.shape, dtype=kind, seed=1)
                    y.backward(grad)
                    exact_y.backward(grad.double())
                    z = torch.nn.functional.linear(*exact).detach().requires_grad_()
                    of_z = plain_linear(z, torch.eye(24, dtype=torch.double), None, activation, gate)
                    (dz,) = torch.autograd.grad(of_z, z, grad.double())
                    dz = dz.abs().reshape(-1, 24)
                    sizes = (dz @ exact[1].detach().abs(), dz.T @ exact[0].detach().abs().reshape(-1, 40), dz.sum(0))
                    for leaf, twin, size, name in zip((x, weight, bias), exact, sizes, ("x", "weight", "bias")):
                        bound = 2.1 * ROUNDING[kind] * size.reshape(leaf.shape) + 1e-4
                        self.within(leaf.grad, twin.grad, bound, (kind, activation, gate, name))

    def test_gradients_are_products_of_the_contract(self):
        x, weight, bias = normal(37, 20, gradient=True), normal(12, 20, gradient=True), normal(12, gradient=True)
        grad = normal(37, 12, seed=1)
        linear(x, weight, bias).backward(grad)
        with torch.no_grad():
            self.same(x.grad, samebit.gemm(grad, weight))
            self.same(weight.grad, samebit.gemm(grad.T, x))
            self.same(bias.grad, samebit.gemm(torch.ones(1, 37, dtype=torch.bfloat16), grad)[0])

    def test_only_what_is_needed(self):
        x, weight = normal(5, 16), normal(6, 16, gradient=True)
        linear(x, weight).float().sum().backward()
        self.assertIsNone(x.grad)
        self.assertEqual(weight.grad.shape, (6, 16))
        self.assertFalse(linear(x, weight.detach()).requires_grad)

    def test_single_precision_results_and_biases(self):
        x, weight = normal(5, 64, gradient=True), normal(6, 64, gradient=True)
        bias = normal(6, dtype=torch.float32, gradient=True)
        y = linear(x, weight, bias, dtype=torch.float32)
        self.assertEqual(y.dtype, torch.float32)
        self.within(y, plain_linear(x.double(), weight.double(), bias.double(), None, None), torch.tensor(1e-4))
        y.sum().backward()
        self.assertEqual((x.grad.dtype, weight.grad.dtype, bias.grad.dtype), (torch.bfloat16, torch.bfloat16, torch.float32))

    def test_second_derivatives(self):
        a, b = normal(7, 20, gradient=True), normal(20, 5, gradient=True)
        exact = [t.detach().double().requires_grad_() for t in (a, b)]

        def penalty(x, y, multiply):
            grads = torch.autograd.grad(multiply(x, y).pow(2).sum(), (x, y), create_graph=True)
            return sum(g.double().pow(2).sum() for g in grads)

        penalty(a, b, matmul).backward()
        penalty(*exact, torch.matmul).backward()
        for leaf, twin in zip((a, b), exact):
            error = (leaf.grad.double() - twin.grad).norm() / twin.grad.norm()
            self.assertLess(float(error), 0.02)

    def test_mistakes(self):
        x, weight = normal(5, 16), normal(6, 16)
        for pattern, call in (
            ("take bf16 and f16, not f32", lambda: linear(x.float(), weight)),
            ("float64; Samebit takes", lambda: linear(x.double(), weight)),
            ("both are K", lambda: linear(x, weight[:, :8])),
            ("linear takes x of", lambda: linear(x, weight[0])),
            ("'swish' is not known", lambda: linear(x, weight, activation="swish")),
            ("one dtype", lambda: linear(x, weight.half())),
            ("requires a gradient, which samebit.gemm does not track", lambda: samebit.gemm(x.clone().requires_grad_(), weight.T)),
            ("requires a gradient itself", lambda: linear(x, weight, main_grad=weight.clone().requires_grad_())),
        ):
            with self.assertRaisesRegex(samebit.Error, pattern):
                call()

        def backward(**options):
            linear(x, weight.clone().requires_grad_(), **options).float().sum().backward()

        for pattern, options in (
            ("samples of the row map have 4 rows", {"sample_lengths": [1, 3]}),
            ("kept in float32", {"main_grad": torch.zeros(6, 16).bfloat16()}),
            ("6 x 16|16 x 6|6 x 15", {"main_grad": torch.zeros(6, 15)}),
            ("integers", {"sample_lengths": torch.tensor([2.0, 3.0])}),
            ("dimensions", {"sample_lengths": torch.tensor([[2, 3]])}),
        ):
            with self.assertRaisesRegex(samebit.Error, pattern):
                backward(**options)


class Samples(Case):
    lengths = [3, 16, 0, 21, 40, 1, 15, 33]

    def data(self, device="cpu"):
        rows = sum(self.lengths)
        return (t.to(device) for t in (normal(rows, 24), normal(10, 24), normal(10), normal(rows, 10, seed=1)))

    def test_gradients_do_not_depend_on_batches(self):
        """Micro-batches, one after another, into one buffer: every way to cut the samples gives the bits of one batch,
        which are those of each sample padded with zeros to a multiple of 16."""
        for device in DEVICES:
            x, weight, bias, grad = self.data(device)
            padded_x, padded_grad = [], []
            for part_x, part_grad in zip(x.split(self.lengths), grad.split(self.lengths)):
                padding = -len(part_x) % 16
                padded_x.append(torch.nn.functional.pad(part_x, (0, 0, 0, padding)))
                padded_grad.append(torch.nn.functional.pad(part_grad, (0, 0, 0, padding)))
            expected = samebit.gemm(torch.cat(padded_grad).T, torch.cat(padded_x), out_dtype="f32")
            for cuts in ([8], [1] * 8, [3, 5], [4, 1, 3], [7, 1]):
                weight.requires_grad_().grad = None
                main_grad = torch.zeros(10, 24, device=device)
                at = first = 0
                for cut in cuts:
                    lengths = self.lengths[first : first + cut]
                    part = slice(at, at + sum(lengths))
                    linear(x[part], weight, sample_lengths=lengths, main_grad=main_grad).backward(grad[part])
                    at, first = at + sum(lengths), first + cut
                self.assertIsNone(weight.grad)
                self.same(main_grad, expected, (device, cuts))

    def test_gradients_of_biases(self):
        x, weight, bias, grad = self.data()
        bias = bias.float().requires_grad_()
        # Of similar numbers so few sums would be exact, whatever the groups.
        grad = grad * 2.0 ** normal(*grad.shape, dtype=torch.float32, seed=2).mul(8).round().bfloat16()
        linear(x, weight, bias, sample_lengths=self.lengths).backward(grad)
        ones = torch.ones(1, len(x), dtype=torch.bfloat16)
        self.same(bias.grad, samebit.gemm(ones, grad, rows=self.lengths, out_dtype="f32")[0])
        self.assertFalse(torch.equal(bias.grad, samebit.gemm(ones, grad, out_dtype="f32")[0]))

    def test_ways_to_say_lengths(self):
        x, weight, bias, grad = self.data()
        grads = []
        for lengths in (self.lengths, tuple(self.lengths), torch.tensor(self.lengths), samebit.RowMap(self.lengths)):
            leaf, addend = weight.clone().requires_grad_(), bias.clone().requires_grad_()
            linear(x, leaf, addend, "silu", sample_lengths=lengths).backward(grad)
            grads.append((leaf.grad, addend.grad))
        for one, other in grads[1:]:
            self.same(one, grads[0][0])
            self.same(other, grads[0][1])
        leaf = weight.clone().requires_grad_()
        linear(x, leaf, None, "silu").backward(grad)
        self.assertFalse(torch.equal(leaf.grad, grads[0][0]))

    def test_gradients_of_f32(self):
        x, weight, bias, grad = self.data()
        if not hasattr(weight, "grad_dtype"):
            self.skipTest("this PyTorch has no grad_dtype")
        weight.requires_grad_().grad_dtype = torch.float32
        linear(x, weight, sample_lengths=self.lengths).backward(grad)
        main_grad = torch.zeros(10, 24)
        accumulate_(main_grad, grad.T, x, sample_lengths=self.lengths)
        self.same(weight.grad, main_grad)

    def test_accumulate(self):
        x, weight, bias, grad = self.data()
        total = normal(10, 24, dtype=torch.float32)
        expected = samebit.gemm(grad.T, x, out=total.clone(), accumulate=True)
        self.assertIs(accumulate_(total, grad.T, x), total)
        self.same(total, expected)


class Matmul(Case):
    def test_shapes(self):
        for left, right in (((5, 20), (20, 7)), ((2, 3, 5, 20), (20, 7)), ((2, 3, 5, 20), (2, 3, 20, 7)), ((20,), (20, 7)),
                            ((5, 20), (20,)), ((20,), (20,)), ((5, 20), (4, 20, 7)), ((2, 1, 5, 20), (3, 20, 7)),
                            ((0, 5, 20), (20, 7)), ((4, 5, 0), (4, 0, 7)), ((4, 5, 20), (20,))):
            a, b = normal(*left, gradient=True), normal(*right, gradient=True)
            exact = [t.detach().double().requires_grad_() for t in (a, b)]
            out, exact_out = matmul(a, b), torch.matmul(*exact)
            self.assertEqual((out.shape, out.dtype), (exact_out.shape, torch.bfloat16))
            if not out.numel():
                continue
            self.within(out, exact_out, exact_out.abs() * ROUNDING[torch.bfloat16] * 1.01 + 1e-5, (left, right))
            grad = normal(*out.shape, seed=1) if out.dim() else torch.ones((), dtype=torch.bfloat16)
            out.backward(grad)
            exact_out.backward(grad.double())
            for leaf, twin in zip((a, b), exact):
                error = (leaf.grad.double() - twin.grad).norm()
                self.assertLessEqual(float(error), ROUNDING[torch.bfloat16] * float(twin.grad.norm()))

    def test_bits_and_views(self):
        a, b = normal(6, 5, 33), normal(6, 33, 9)
        out = matmul(a, b, dtype=torch.float32)
        for batch in range(6):
            self.same(matmul(a[batch], b[batch], dtype=torch.float32), out[batch])
            self.same(matmul(a[batch, 2], b[batch], dtype=torch.float32), out[batch, 2])
        self.same(matmul(b.mT, a.mT, dtype=torch.float32).mT, out)
        self.same(matmul(a, b.mT.contiguous().mT, dtype=torch.float32), out)
        self.same(matmul(a.transpose(0, 1).contiguous().transpose(0, 1), b, dtype=torch.float32), out)

    def test_a_shared_right_side_has_one_chain(self):
        a, b = normal(4, 10, 16), normal(16, 8, gradient=True)
        grad = normal(4, 10, 8, seed=1)
        matmul(a, b).backward(grad)
        self.same(b.grad, samebit.gemm(a.reshape(40, 16).T, grad.reshape(40, 8)))


class Logp(Case):
    def data(self, rows=50, vocabulary=300, kind=torch.bfloat16, device="cpu"):
        hidden, weight = normal(rows, 64, dtype=kind), normal(vocabulary, 64, dtype=kind)
        targets = torch.randint(0, vocabulary, (rows,), generator=torch.Generator().manual_seed(1))
        targets[3] = targets[17] = -100
        return hidden.to(device).requires_grad_(), weight.to(device).requires_grad_(), targets.to(device)

    def exact(self, hidden, weight, targets, temperature=1.0):
        logits = torch.nn.functional.linear(hidden, weight) / temperature
        return -torch.nn.functional.cross_entropy(logits, targets, reduction="none", ignore_index=-100)

    def test_values_and_gradients(self):
        for device in DEVICES:
            for kind in KINDS:
                hidden, weight, targets = self.data(kind=kind, device=device)
                twins = [t.detach().double().requires_grad_() for t in (hidden, weight)]
                logp = linear_logp(hidden, weight, targets, temperature=0.7)
                exact = self.exact(*twins, targets, 0.7)
                self.within(logp, exact, torch.tensor(2e-5), kind)
                self.assertEqual(float(logp[3].detach()), 0.0)
                grad = normal(50, dtype=torch.float32, seed=1).to(device)
                logp.backward(grad)
                exact.backward(grad.double())
                logits = (twins[0] @ twins[1].T).detach() / 0.7
                dz = torch.softmax(logits, -1) * grad.double().abs()[:, None]
                dz[torch.arange(50), targets.clamp(min=0)] += grad.double().abs()
                dz = dz / 0.7
                sizes = dz @ twins[1].detach().abs(), dz.T @ twins[0].detach().abs()
                for leaf, twin, size in zip((hidden, weight), twins, sizes):
                    self.within(leaf.grad, twin.grad, 2.5 * ROUNDING[kind] * size + 1e-6, (device, kind))

    def test_a_row_is_the_same_in_every_batch(self):
        for device in DEVICES:
            hidden, weight, targets = self.data(device=device)
            whole = linear_logp(hidden, weight, targets)
            for size in (1, 7, 32):
                with torch.no_grad():
                    parts = [linear_logp(h, weight, t) for h, t in zip(hidden.split(size), targets.split(size))]
                self.same(torch.cat(parts), whole, size)
            self.same(linear_logp(hidden.view(5, 10, 64), weight, targets.view(5, 10)).flatten(), whole)
            self.same(linear_logp(hidden[4], weight, targets[4]), whole[4])
            self.same(linear_logp(hidden, weight.T.contiguous().T, targets.int()), whole)

    def test_gradients_of_weights_over_samples(self):
        lengths = [7, 20, 1, 22]
        for device in DEVICES:
            hidden, weight, targets = self.data(device=device)
            grad = normal(50, dtype=torch.float32, seed=1).to(device)
            buffers, rows = [], []
            for cuts in ([4], [1, 1, 1, 1], [2, 2], [1, 3]):
                weight.grad = hidden.grad = None
                buffers.append(torch.zeros(weight.shape, device=device))
                at = first = 0
                for cut in cuts:
                    part_lengths = lengths[first : first + cut]
                    part = slice(at, at + sum(part_lengths))
                    linear_logp(hidden[part], weight, targets[part], sample_lengths=part_lengths,
                                main_grad=buffers[-1]).backward(grad[part])
                    at, first = at + sum(part_lengths), first + cut
                self.assertIsNone(weight.grad)
                rows.append(hidden.grad)
                self.same(buffers[-1], buffers[0], cuts)
                self.same(rows[-1], rows[0], cuts)
            linear_logp(hidden, weight, targets, sample_lengths=lengths).backward(grad)
            self.same(weight.grad, buffers[0].bfloat16())

    def test_only_what_is_needed(self):
        hidden, weight, targets = self.data()
        linear_logp(hidden.detach(), weight, targets).sum().backward()
        with_weight = weight.grad
        weight.grad = None
        linear_logp(hidden, weight.detach(), targets).sum().backward()
        with_hidden, hidden.grad = hidden.grad, None
        linear_logp(hidden, weight, targets).sum().backward()
        self.same(with_weight, weight.grad)
        self.same(with_hidden, hidden.grad)

    def test_mistakes(self):
        hidden, weight, targets = (t.detach() for t in self.data())
        for pattern, call in (
            ("targets of", lambda: linear_logp(hidden, weight, targets[:9])),
            ("weight of", lambda: linear_logp(hidden, weight[:, :9], targets)),
            ("integers", lambda: linear_logp(hidden, weight, targets.float())),
            ("temperature", lambda: linear_logp(hidden, weight, targets, temperature=0)),
            ("temperature", lambda: linear_logp(hidden, weight, targets, temperature=1e9)),
            ("target", lambda: linear_logp(hidden, weight, targets + 300)),
            ("float32; Samebit takes|f32", lambda: linear_logp(hidden.float(), weight.float(), targets)),
            ("main_grad", lambda: linear_logp(hidden, weight, targets, main_grad=torch.zeros(3))),
        ):
            with self.assertRaisesRegex(samebit.Error, pattern):
                call()


class Operators(Case):
    """PyTorch's own checks of custom operators: schemas, fake tensors, autograd, tracing with dynamic shapes."""

    def check(self, operator, *arguments):
        torch.library.opcheck(operator, arguments)

    def test_product(self):
        for left, right in (((3, 20), (20, 5)), ((2, 3, 20), (2, 20, 5))):
            a, b = normal(*left, gradient=True), normal(*right, gradient=True)
            self.check(torch.ops.samebit.product.default, a, b, torch.bfloat16, None)
            self.check(torch.ops.samebit.product.default, a.detach(), b.detach(), torch.float32, torch.tensor([12, 8]))

    def test_linear(self):
        x, weight, bias = normal(2, 6, 20, gradient=True), normal(8, 20, gradient=True), normal(8, gradient=True)
        for activation, gate in (("none", "none"), ("relu", "none"), ("gelu", "none"), ("silu", "stacked"),
                                 ("relu", "interleaved")):
            self.check(torch.ops.samebit.linear.default, x, weight, bias, activation, gate, torch.bfloat16, None, None)
        self.check(torch.ops.samebit.linear.default, x, weight, None, "none", "none", torch.float32, torch.tensor([7, 5]), None)

    def test_accumulate(self):
        self.check(torch.ops.samebit.accumulate_.default, torch.zeros(3, 5), normal(3, 20), normal(20, 5), torch.tensor([4, 16]))

    def test_linear_logp(self):
        hidden, weight = normal(6, 20, gradient=True), normal(30, 20, gradient=True)
        targets = torch.tensor([1, 2, 29, -100, 0, 7])
        self.check(torch.ops.samebit.linear_logp.default, hidden, weight, targets, 1.0, -100, None, None)
        logp, maximum, total = torch.ops.samebit.linear_logp(hidden.detach(), weight.detach(), targets, 1.0, -100, None, None)
        for buffer in (None, torch.zeros(30, 20)):
            self.check(torch.ops.samebit.linear_logp_gradient.default, torch.ones(6), hidden.detach(), weight.detach(), targets,
                       maximum, total, 1.0, -100, True, buffer, True, None)


def backends():
    """Inductor generates C++ for the CPU."""
    return ["aot_eager"] + (["inductor"] if shutil.which("g++") else [])


class Compilation(Case):
    def both(self, function, leaves, *arguments, backend, device="cpu", dynamic=None):
        """Results and gradients of a function and of its compilation: the same bits."""
        found = []
        for run in (function, torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)):
            for leaf in leaves:
                leaf.grad = None
            result = run(*leaves, *arguments)
            result.backward(normal(*result.shape, dtype=result.dtype, device=device, seed=1))
            found.append([result] + [leaf.grad for leaf in leaves])
        for eager, compiled in zip(*found):
            self.same(eager, compiled, backend)

    def setUp(self):
        torch._dynamo.reset()

    def test_layers(self):
        def layers(x, up, down, bias):
            return linear(linear(x, up, activation="silu", gate="stacked"), down, bias)

        for device in DEVICES:
            for backend in backends():
                leaves = [normal(*shape, device=device, gradient=True) for shape in ((2, 7, 32), (40, 32), (16, 20), (16,))]
                self.both(layers, leaves, backend=backend, device=device)

    def test_samples_do_not_compile_again(self):
        def layer(x, weight, lengths):
            return linear(x, weight, activation="gelu", sample_lengths=lengths)

        with torch._dynamo.config.patch(error_on_recompile=True):
            compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
            for lengths in ([5, 9, 2], [3, 3, 10], [6, 2, 8]):
                x, weight, grad = normal(16, 24), normal(8, 24, gradient=True), normal(16, 8, seed=1)
                compiled(x, weight, torch.tensor(lengths)).backward(grad)
                found, weight.grad = weight.grad, None
                layer(x, weight, lengths).backward(grad)
                self.same(found, weight.grad)

    def test_matmul_and_logp(self):
        def head(hidden, weight, mixing, targets):
            return linear_logp(matmul(hidden, mixing), weight, targets)

        for device in DEVICES:
            for backend in backends():
                leaves = [normal(*shape, device=device, gradient=True) for shape in ((2, 7, 32), (50, 32), (32, 32))]
                self.both(head, leaves, torch.arange(14, device=device).view(2, 7), backend=backend, device=device)

    def test_main_grad(self):
        for backend in backends():
            x, weight, grad = normal(9, 24), normal(8, 24, gradient=True), normal(9, 8, seed=1)
            buffers = [torch.zeros(8, 24) for _ in range(2)]
            def layer(x, weight, buffer):
                return linear(x, weight, main_grad=buffer)

            compiled = torch.compile(layer, backend=backend, fullgraph=True)
            for run, buffer in zip((layer, compiled), buffers):
                for _ in range(2):
                    run(x, weight, buffer).backward(grad)
            self.assertIsNone(weight.grad)
            self.same(buffers[0], buffers[1])
            self.assertGreater(float(buffers[0].abs().max()), 0)


class Pages(unittest.TestCase):
    """What the documentation shows runs."""

    def test_readme(self):
        found = 0
        for page in ("README.md", "python/README.md"):
            for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
                if "import torch" in code:
                    exec(compile(code, page, "exec"), {})
                    found += 1
        self.assertGreaterEqual(found, 1)

    def test_example(self):
        command = [sys.executable, ROOT / "examples/rl_check.py", "--device", "cpu", "--sequences", "5", "--length", "4",
                   "--width", "64", "--layers", "1", "--vocabulary", "50"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in ("log-probabilities that differ", "gradient elements that differ"):
            self.assertRegex(done.stdout, line + r" +0 of [1-9]")


class Threads(Case):
    def test_threads(self):
        x, weight = normal(30, 64), normal(20, 64)
        expected = linear(x, weight)
        wrong = []

        def work():
            for _ in range(20):
                leaf = weight.clone().requires_grad_()
                y = linear(x, leaf)
                y.backward(y.detach())
                if not torch.equal(y, expected):
                    wrong.append(True)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(wrong)


@unittest.skipUnless(torch.cuda.is_available(), "no GPU")
class Gpu(Case):
    def test_bits_of_the_cpu(self):
        for kind in KINDS:
            x, weight, bias = normal(50, 200, dtype=kind), normal(72, 200, dtype=kind), normal(72, dtype=kind)
            grad = normal(50, 72, dtype=kind, seed=1)
            found = []
            for device in ("cpu", "cuda"):
                leaves = [t.detach().to(device).requires_grad_() for t in (x, weight, bias)]
                y = linear(*leaves, sample_lengths=[20, 30])
                y.backward(grad.to(device))
                found.append([y] + [leaf.grad for leaf in leaves])
            for cpu, gpu in zip(*found):
                self.same(cpu, gpu)

    def test_streams(self):
        x, weight = normal(2000, 1024, device="cuda"), normal(1024, 1024, device="cuda")
        expected = linear(x, weight)
        torch.cuda.synchronize()
        streams = [torch.cuda.Stream() for _ in range(3)]
        outputs = []
        for round in range(30):
            with torch.cuda.stream(streams[round % 3]):
                fresh = x.clone()
                outputs.append(linear(fresh, weight))
        torch.cuda.synchronize()
        for output in outputs:
            self.same(output, expected)

    def test_graphs(self):
        lengths = [100, 28]
        hidden, weight, head = normal(128, 256, device="cuda"), normal(256, 256, device="cuda", gradient=True), normal(
            1000, 256, device="cuda", gradient=True)
        targets = torch.arange(128, device="cuda")

        def step():
            weight.grad = head.grad = None
            logp = linear_logp(linear(hidden, weight, activation="silu", sample_lengths=lengths), head, targets,
                               sample_lengths=lengths)
            logp.sum().backward()
            return logp

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logp = step()
        weight_grad, head_grad = weight.grad, head.grad
        hidden.copy_(normal(128, 256, seed=5))
        graph.replay()
        found = [t.clone() for t in (logp, weight_grad, head_grad)]
        for captured, eager in zip(found, (step(), weight.grad, head.grad)):
            self.same(captured, eager)

    def test_new_samples_while_capturing(self):
        x, weight = normal(32, 64, device="cuda"), normal(64, 64, device="cuda")
        total = torch.zeros(64, 64, device="cuda")
        accumulate_(total, x.T, x)
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(samebit.Error, "new, and they cannot be brought"):
            with torch.cuda.graph(graph):
                accumulate_(total, x.T, x, sample_lengths=[31, 1])
        self.assertEqual(linear(x, weight).shape, (32, 64))

    def test_two_sides(self):
        with self.assertRaisesRegex(samebit.Error, "weight lies on cpu"):
            linear(normal(2, 16, device="cuda"), normal(3, 16))

    @unittest.skipUnless(torch.cuda.device_count() > 1, "one GPU")
    def test_second_device(self):
        x, weight = normal(20, 64), normal(30, 64)
        self.same(linear(x.to("cuda:1"), weight.to("cuda:1")), linear(x, weight))


if __name__ == "__main__":
    unittest.main()
