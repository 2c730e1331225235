"""Do a rollout and training agree about the probabilities of the tokens that were sampled?

In reinforcement learning, a policy samples tokens in batches that shrink and grow as sequences end and begin,
and is then trained on all of them at once. The log-probabilities of the same tokens should be the same
numbers. With most matrix libraries they are not, because a row's bits depend on the batch that it is
computed in; the ratio of probabilities, which should be 1 on-policy, is then only close to it.

This plays it through with a small language model, once by Samebit and once by PyTorch, and counts the
log-probabilities, and then the elements of the gradients, that differ:

    SAMEBIT_LIBRARY=build/src/libsamebit.so PYTHONPATH=python python examples/rl_check.py [--device cuda]

Exit status: 0 when Samebit's counts are 0. (A model from embeddings and gated layers is used, without norms and
attention: those would be PyTorch's in both, and may depend on the batch themselves.)
"""

import argparse
import sys

import torch

import samebit
from samebit.torch import linear, linear_logp

CONTEXT = 8  # tokens that the next one depends on


class Policy:
    """Embeddings of the last tokens, residual gated layers, and a head."""

    def __init__(self, settings, device, dtype):
        width, vocabulary = settings.width, settings.vocabulary
        generator = torch.Generator().manual_seed(settings.seed)

        def matrix(rows, columns):
            values = torch.randn(rows, columns, generator=generator) / columns ** 0.5
            return values.to(device, dtype).requires_grad_()

        self.embedding = matrix(vocabulary, width // CONTEXT)
        self.layers = [(matrix(4 * width, width), matrix(width, 2 * width))
                       for _ in range(settings.layers)]
        self.head = matrix(vocabulary, width)

    def weights(self):
        return [weight for layer in self.layers for weight in layer] + [self.head]

    def hidden(self, contexts, lengths=None):
        """The state after each of the contexts (rows of CONTEXT tokens)."""
        x = self.embedding.detach()[contexts].flatten(1)
        for up, down in self.layers:
            x = x + self.project(self.gated(x, up, lengths), down, lengths)
        return x


class SamebitPolicy(Policy):
    name = "Samebit"

    def gated(self, x, up, lengths):
        return linear(x, up, activation="silu", gate="stacked", sample_lengths=lengths,
                      main_grad=up.main_grad)

    def project(self, x, down, lengths):
        return linear(x, down, sample_lengths=lengths, main_grad=down.main_grad)

    def logp(self, contexts, tokens, lengths=None):
        return linear_logp(self.hidden(contexts, lengths), self.head, tokens,
                           sample_lengths=lengths, main_grad=self.head.main_grad)

    def gradients(self):
        return [weight.main_grad for weight in self.weights()]

    def clear(self):
        for weight in self.weights():
            weight.main_grad = torch.zeros_like(weight, dtype=torch.float32)


class TorchPolicy(Policy):
    name = "PyTorch"

    def gated(self, x, up, lengths):
        gate, value = torch.nn.functional.linear(x, up).chunk(2, -1)
        return torch.nn.functional.silu(gate) * value

    def project(self, x, down, lengths):
        return torch.nn.functional.linear(x, down)

    def logp(self, contexts, tokens, lengths=None):
        logits = torch.nn.functional.linear(self.hidden(contexts), self.head).float()
        return torch.log_softmax(logits, -1).gather(1, tokens[:, None])[:, 0]

    def gradients(self):
        return [weight.grad for weight in self.weights()]

    def clear(self):
        for weight in self.weights():
            weight.grad = None


def roll_out(policy, settings, device):
    """Samples sequences of different lengths together; gives their tokens, one list each. A sequence that has
    ended leaves the batch, so that later tokens come from smaller ones."""
    generator = torch.Generator().manual_seed(settings.seed + 1)
    lengths = torch.randint(1, settings.length + 1, (settings.sequences,), generator=generator)
    lengths[0] = 2 * settings.length  # outlasts the others: batches of one
    tokens = torch.randint(0, settings.vocabulary, (settings.sequences, CONTEXT + 2 * settings.length),
                           generator=generator).to(device)
    luck = torch.Generator(device).manual_seed(settings.seed + 2)
    batches = []
    for step in range(int(lengths.max())):
        active = torch.nonzero(lengths > step)[:, 0].to(device)
        contexts = tokens[active, step : step + CONTEXT]
        with torch.no_grad():
            logits = linear(policy.hidden(contexts), policy.head, dtype=torch.float32)
        noise = torch.rand(logits.shape, generator=luck, device=device)
        chosen = (logits - torch.log(-torch.log(noise))).argmax(-1)  # a sample, by Gumbel's trick
        tokens[active, step + CONTEXT] = chosen
        batches.append((active, step))
    return tokens, lengths, batches


def score_rollout(policy, tokens, lengths, batches):
    """Log-probabilities of the sampled tokens, in the batches that they were sampled in."""
    logp = torch.zeros(len(lengths), tokens.shape[1] - CONTEXT, device=tokens.device)
    with torch.no_grad():
        for active, step in batches:
            contexts = tokens[active, step : step + CONTEXT]
            logp[active, step] = policy.logp(contexts, tokens[active, step + CONTEXT])
    return torch.cat([row[:length] for row, length in zip(logp, lengths.tolist())])


def training_batch(tokens, lengths):
    """All positions of all sequences, one after another: contexts and the tokens that followed."""
    windows = tokens.unfold(1, CONTEXT, 1)[:, :-1]
    contexts = torch.cat([row[:length] for row, length in zip(windows, lengths.tolist())])
    chosen = torch.cat([row[CONTEXT : CONTEXT + length]
                        for row, length in zip(tokens, lengths.tolist())])
    return contexts, chosen


def train(policy, contexts, chosen, lengths, sequences_each):
    """Log-probabilities, and gradients of their sum, in micro-batches of so many sequences."""
    policy.clear()
    found, at = [], 0
    for part in lengths.split(sequences_each):
        rows = slice(at, at + int(part.sum()))
        logp = policy.logp(contexts[rows], chosen[rows], part)
        logp.sum().backward()
        found.append(logp.detach())
        at = rows.stop
    return torch.cat(found), [gradient.clone() for gradient in policy.gradients()]


def differing(left, right):
    """How many elements differ in any bit."""
    kind = {2: torch.int16, 4: torch.int32}[left.element_size()]
    return int((left.view(kind) != right.view(kind)).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16"])
    # What takes half a minute on a processor, and what gives a GPU something to do.
    for name, small, large, meaning in (
            ("sequences", 24, 128, "how many are sampled together"),
            ("length", 20, 64, "of sequences, at most, but for one of twice as much"),
            ("width", 256, 2048, "of the model"), ("layers", 2, 4, "of the model"),
            ("vocabulary", 1000, 32000, "of the model")):
        parser.add_argument(f"--{name}", type=int, default=[small, large],
                            help=f"{meaning}; {small} on the CPU, {large} on a GPU")
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    device, dtype = torch.device(settings.device), getattr(torch, settings.dtype)
    for name, value in vars(settings).items():
        if isinstance(value, list):
            setattr(settings, name, value[device.type != "cpu"])

    policies = [kind(settings, device, dtype) for kind in (SamebitPolicy, TorchPolicy)]
    policies[0].clear()
    tokens, lengths, batches = roll_out(policies[0], settings, device)
    contexts, chosen = training_batch(tokens, lengths)
    sizes = [len(active) for active, _ in batches]
    print(f"{len(lengths)} sequences, {len(chosen)} tokens, sampled in batches of {max(sizes)} down "
          f"to {min(sizes)}, trained in one of {len(chosen)} ({settings.dtype} on {device}, "
          f"Samebit {samebit.version()}, PyTorch {torch.__version__})")
    print(f"{'':32}{'Samebit':>24}{'PyTorch':>24}")

    results = []
    for policy in policies:
        rolled = score_rollout(policy, tokens, lengths, batches)
        logp, gradients = train(policy, contexts, chosen, lengths, len(lengths))
        _, cut = train(policy, contexts, chosen, lengths, max(1, len(lengths) // 7))
        results.append((
            (differing(rolled, logp), logp.numel()),
            (float((rolled - logp).abs().max()), None),
            (sum(map(differing, gradients, cut)), sum(map(torch.numel, gradients))),
        ))
    names = ("log-probabilities that differ", "largest difference", "gradient elements that differ")
    for name, *row in zip(names, *results):
        cells = (f"{count} of {total}" if total else f"{count:.2g}" for count, total in row)
        print(f"{name:32}" + "".join(f"{cell:>24}" for cell in cells))
    return int(any(count for count, _ in results[0]))


if __name__ == "__main__":
    sys.exit(main())
