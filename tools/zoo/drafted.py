"""Networks written here for what libraries of networks have little of: graphs by scatter, flows, recurrences, sets, series, tables, spectra."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional

import varied

NETWORKS = {}


def row(name, *inputs, **arguments):
    """Enters a network by its class, which is called with the inputs in order."""

    def enter(network):
        varied.row(name, *inputs)(functools.partial(network, **arguments))
        NETWORKS[name] = varied.NETWORKS.pop(name)
        return network

    return enter


def edges(nodes, count):
    return lambda: torch.randint(0, nodes, (2, count))


# ---- graphs ----


@row("gcn", (1000, 64), edges(1000, 8000))
class GraphConvolutions(nn.Module):
    """Sums over edges by index_add, with degrees of both ends."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, x, edge):
        source, target = edge
        degree = torch.ones(x.shape[0]).index_add(0, target, torch.ones(source.shape[0]))
        weight = (degree[source] * degree[target]).rsqrt()[:, None]
        for layer in self.layers:
            x = functional.relu(torch.zeros_like(x).index_add(0, target, layer(x)[source] * weight) + x)
        return x


@row("gat", (500, 64), edges(500, 4000))
class GraphAttention(nn.Module):
    """A softmax over the edges of each node by scatter_reduce."""

    def __init__(self):
        super().__init__()
        self.values, self.mine, self.theirs = nn.Linear(64, 64), nn.Linear(64, 4), nn.Linear(64, 4)

    def forward(self, x, edge):
        source, target = edge
        score = functional.leaky_relu(self.mine(x)[target] + self.theirs(x)[source], 0.2)
        index = target[:, None].expand(-1, 4)
        most = torch.full((x.shape[0], 4), -1e30).scatter_reduce(0, index, score, "amax")
        score = (score - most[target]).exp()
        total = torch.zeros(x.shape[0], 4).scatter_add(0, index, score)
        share = (score / total[target])[:, :, None]
        sent = (self.values(x)[source].view(-1, 4, 16) * share).flatten(1)
        return torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, 64), sent)


@row("sage-max", (500, 64), edges(500, 4000))
class GraphMaxima(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.self = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x, edge):
        source, target = edge
        most = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand(-1, 64), functional.relu(self.near(x))[source], "amax")
        return functional.relu(self.self(x) + most)


@row("gated-messages", (300, 64), edges(300, 2000))
class GatedMessages(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.cell = nn.Linear(128, 64), nn.GRUCell(64, 64)

    def forward(self, x, edge):
        source, target = edge
        for _ in range(4):
            message = functional.silu(self.message(torch.cat([x[source], x[target]], 1)))
            x = self.cell(torch.zeros_like(x).index_add(0, target, message), x)
        return x


@row("edge-convolution", (1, 3, 512))
class EdgeConvolution(nn.Module):
    """DGCNN: the nearest points by TopK of distances, and a maximum over them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(6, 32, 1), nn.Conv2d(64, 64, 1)])

    def forward(self, x):
        for layer in self.layers:
            inner = x.transpose(2, 1) @ x
            square = (x * x).sum(1, keepdim=True)
            near = (2 * inner - square - square.transpose(2, 1)).topk(16, dim=-1).indices
            neighbours = x[0].t()[near[0]].permute(2, 0, 1)[None]
            middle = x[..., None].expand(-1, -1, -1, 16)
            x = functional.leaky_relu(layer(torch.cat([neighbours - middle, middle], 1)), 0.2).amax(-1)
        return x


@row("point-net", (4, 3, 512))
class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.local = nn.Sequential(*(each for i, o in ((3, 64), (64, 128), (128, 256)) for each in (nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU())))
        self.head = nn.Sequential(nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 40))

    def forward(self, x):
        return self.head(self.local(x).amax(-1)).log_softmax(-1)


# ---- pictures ----


@row("espcn", (1, 1, 160, 160))
class SubPixel(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(), nn.Conv2d(32, 9, 3, padding=1),
                         nn.PixelShuffle(3))


@row("edsr", (1, 3, 64, 64))
class EnhancedResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.tail = nn.Conv2d(3, 48, 3, padding=1), nn.Sequential(nn.Conv2d(48, 192, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(48, 3, 3, padding=1))
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(48, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 48, 3, padding=1)) for _ in range(6))

    def forward(self, x):
        x = first = self.head(x)
        for block in self.body:
            x = x + 0.1 * block(x)
        return self.tail(x + first)


@row("style-transfer", (1, 3, 128, 128))
class StyleTransfer(nn.Module):
    """Reflection pads, instance norms and nearest upsampling."""

    def __init__(self):
        super().__init__()

        def layer(i, o, size, stride=1):
            return nn.Sequential(nn.ReflectionPad2d(size // 2), nn.Conv2d(i, o, size, stride), nn.InstanceNorm2d(o, affine=True), nn.ReLU())

        self.down = nn.Sequential(layer(3, 16, 9), layer(16, 32, 3, 2), layer(32, 64, 3, 2))
        self.middle = nn.ModuleList(layer(64, 64, 3) for _ in range(4))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), layer(64, 32, 3), nn.Upsample(scale_factor=2), layer(32, 16, 3), nn.ReflectionPad2d(4),
                                nn.Conv2d(16, 3, 9))

    def forward(self, x):
        x = self.down(x)
        for layer in self.middle:
            x = x + layer(x)
        return self.up(x)


@row("pix2pix", (1, 3, 128, 128))
class PictureToPicture(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = (3, 32, 64, 128, 128)
        self.down = nn.ModuleList(nn.Conv2d(i, o, 4, 2, 1) for i, o in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 4, 2, 1) for i, o in ((128, 128), (256, 64), (128, 32), (64, 3)))

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(functional.leaky_relu(x, 0.2))
            kept.append(x)
        kept.pop()
        for layer in self.up:
            x = layer(functional.relu(x))
            if kept:
                x = torch.cat([x, kept.pop()], 1)
        return x.tanh()


@row("dcgan", (1, 100, 1, 1))
class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.ConvTranspose2d(100, 256, 4), nn.BatchNorm2d(256), nn.ReLU(), nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
                         nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


@row("style-gan", (1, 64))
class StyleGenerator(nn.Module):
    """Weights are computed: modulated by a style, and normalised for each output channel."""

    def __init__(self):
        super().__init__()
        self.map = nn.Sequential(*(each for _ in range(4) for each in (nn.Linear(64, 64), nn.LeakyReLU(0.2))))
        self.start = nn.Parameter(torch.randn(1, 64, 8, 8))
        self.styles = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.weights = nn.ParameterList(torch.randn(64, 64, 3, 3) for _ in range(4))
        self.picture = nn.Conv2d(64, 3, 1)

    def forward(self, z):
        w = self.map(functional.normalize(z))
        x = self.start
        for style, weight in zip(self.styles, self.weights):
            scaled = weight * (1 + style(w))[:, None, :, None, None][0]
            scaled = scaled * (scaled.square().sum((1, 2, 3), keepdim=True) + 1e-8).rsqrt()
            x = functional.leaky_relu(functional.conv2d(functional.interpolate(x, scale_factor=2, mode="bilinear"), scaled, padding=1), 0.2)
        return self.picture(x)


@row("adain", (1, 32, 64, 64), (1, 32, 64, 64))
class AdaptiveInstances(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Conv2d(32, 64, 3, padding=1), nn.Conv2d(64, 32, 3, padding=1)

    def forward(self, x, style):
        x, style = self.before(x), self.before(style)
        mean, deviation = x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True) + 1e-5
        return self.after((x - mean) / deviation * style.std((2, 3), keepdim=True) + style.mean((2, 3), keepdim=True))


@row("capsules", (1, 1, 28, 28))
class Capsules(nn.Module):
    """Routing by agreement, with einsum."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 64, 9), nn.Conv2d(64, 64, 9, 2)
        self.weights = nn.Parameter(torch.randn(288, 10, 16, 8) * 0.1)

    def squash(self, x):
        square = x.square().sum(-1, keepdim=True)
        return x * square / (1 + square) / (square + 1e-8).sqrt()

    def forward(self, x):
        x = self.squash(self.second(functional.relu(self.first(x))).view(1, 288, 8))
        votes = torch.einsum("ijkl,bil->bijk", self.weights, x)
        logits = torch.zeros(1, 288, 10)
        for _ in range(3):
            out = self.squash(torch.einsum("bij,bijk->bjk", logits.softmax(-1), votes))
            logits = logits + torch.einsum("bjk,bijk->bij", out, votes)
        return out


@row("yolo-head", (1, 85, 1200))
class BoxesKept(nn.Module):
    """What follows a detector: scores, boxes, and NonMaxSuppression by class."""

    def forward(self, x):
        import torchvision

        x = x[0].t()
        centre, size = x[:, :2] * 100, x[:, 2:4].exp() * 10
        scores, classes = (x[:, 4:5].sigmoid() * x[:, 5:].sigmoid()).max(1)
        boxes = torch.cat([centre - size / 2, centre + size / 2], 1)
        keep = torchvision.ops.nms(boxes + classes[:, None] * 4096, scores, 0.5)[:100]
        return boxes[keep], scores[keep], classes[keep]


@row("unfold-attention", (1, 64, 32, 32))
class NeighbourAttention(nn.Module):
    """Attention of pixels over windows around them, by unfold."""

    def __init__(self):
        super().__init__()
        self.all = nn.Conv2d(64, 192, 1)

    def forward(self, x):
        q, k, v = self.all(x).chunk(3, 1)
        k = functional.unfold(k, 5, padding=2).view(1, 64, 25, 1024)
        v = functional.unfold(v, 5, padding=2).view(1, 64, 25, 1024)
        weights = ((q.view(1, 64, 1, 1024) * k).sum(1) * 0.125).softmax(1)
        return (v * weights[:, None]).sum(2).view_as(x)


# ---- recurrences ----


@row("lstm-tagger", varied.whole(2000, 1, 64))
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.run, self.tags = nn.Embedding(2000, 128), nn.LSTM(128, 128, 2, bidirectional=True, batch_first=True), nn.Linear(256, 20)

    def forward(self, x):
        return self.tags(self.run(self.words(x))[0]).log_softmax(-1)


@row("gru-tagger", varied.whole(2000, 8, 64))
class GatedTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.run, self.tags = nn.Embedding(2000, 128), nn.GRU(128, 128, 2, batch_first=True), nn.Linear(128, 20)

    def forward(self, x):
        return self.tags(self.run(self.words(x))[0]).argmax(-1)


@row("conv-lstm", (1, 6, 8, 32, 32))
class ConvolutionalRecurrence(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates, self.out = nn.Conv2d(8 + 32, 128, 3, padding=1), nn.Conv2d(32, 1, 1)

    def forward(self, x):
        hidden = cell = torch.zeros(1, 32, 32, 32)
        for t in range(6):
            i, f, o, g = self.gates(torch.cat([x[:, t], hidden], 1)).chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
        return self.out(hidden)


@row("crnn", (1, 1, 32, 256))
class LineReader(nn.Module):
    def __init__(self):
        super().__init__()
        layers = ((1, 32), (32, 64), (64, 128), (128, 128))
        self.see = nn.Sequential(*(each for i, o in layers for each in (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                                                                        nn.MaxPool2d((2, 2) if o < 128 else (2, 1)))))
        self.read, self.say = nn.LSTM(256, 128, bidirectional=True), nn.Linear(256, 80)

    def forward(self, x):
        x = self.see(x)
        return self.say(self.read(x.permute(3, 0, 1, 2).flatten(2))[0]).log_softmax(-1)


@row("wavenet", (1, 1, 2000))
class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 32, 1)
        self.gates = nn.ModuleList(nn.Conv1d(32, 64, 2, dilation=2 ** (i % 8)) for i in range(16))
        self.skips = nn.ModuleList(nn.Conv1d(32, 64, 1) for _ in range(16))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(32, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, x):
        x, total = self.first(x), 0
        for i, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(functional.pad(x, (2 ** (i % 8), 0))).chunk(2, 1)
            residual, skipped = skip(a.tanh() * b.sigmoid()).chunk(2, 1)
            x, total = x + residual, total + skipped
        return self.last(total)


@row("temporal-convolutions", (1, 16, 512))
class TemporalConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(16 if not i else 64, 64, 3, dilation=2**i) for i in range(6))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            y = functional.relu(layer(functional.pad(x, (2 ** (i + 1), 0))))
            x = y + x if i else y
        return x[..., -1]


@row("deep-state-series", (1, 48, 8))
class SelectiveState(nn.Module):
    """A diagonal recurrence by cumulative sums of logarithms, as state-space networks are trained."""

    def __init__(self):
        super().__init__()
        self.into, self.decay, self.out = nn.Linear(8, 128), nn.Linear(8, 128), nn.Linear(128, 8)

    def forward(self, x):
        decay = -functional.softplus(self.decay(x))
        total = decay.cumsum(1)
        state = (total.exp() * (self.into(x) * (-total).exp()).cumsum(1))
        return self.out(functional.gelu(state))


# ---- flows and spectra ----


@row("real-nvp", (256, 16))
class CouplingFlow(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 16)) for _ in range(6))

    def forward(self, x):
        logarithm = 0
        for net in self.nets:
            a, b = x.chunk(2, 1)
            scale, shift = net(a).chunk(2, 1)
            scale = scale.tanh()
            x = torch.cat([b * scale.exp() + shift, a], 1)
            logarithm = logarithm + scale.sum(1)
        return x, -0.5 * (x**2).sum(1) - 8 * math.log(2 * math.pi) + logarithm


@row("spline-flow", (512, 8))
class SplineFlow(nn.Module):
    """Rational quadratic splines: bins by comparison, gather, and a root."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 4 * 25))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        widths, heights, slopes = self.net(a).view(-1, 4, 25).split([8, 8, 9], -1)
        widths, heights, slopes = widths.softmax(-1), heights.softmax(-1), functional.softplus(slopes) + 1e-3
        y = b.sigmoid()
        left = functional.pad(widths.cumsum(-1), (1, 0))
        bottom = functional.pad(heights.cumsum(-1), (1, 0))
        index = ((y[..., None] >= left).sum(-1, keepdim=True) - 1).clamp(0, 7)
        width, height = widths.gather(-1, index), heights.gather(-1, index)
        low, high = slopes.gather(-1, index), slopes.gather(-1, index + 1)
        share = (y[..., None] - left.gather(-1, index)) / width
        steep = height / width
        top = height * (steep * share**2 + low * share * (1 - share))
        out = bottom.gather(-1, index) + top / (steep + (low + high - 2 * steep) * share * (1 - share))
        return torch.cat([a, out[..., 0]], 1)


@row("fourier-operator", (1, 16, 64, 64))
class FourierOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(16, 16, 12, 12, 2) * 0.05 for _ in range(2))
        self.local = nn.ModuleList(nn.Conv2d(16, 16, 1) for _ in range(2))

    def forward(self, x):
        for weight, local in zip(self.weights, self.local):
            spectrum = torch.view_as_real(torch.fft.rfft2(x))[:, :, :12, :12]
            a, b, c, d = spectrum[..., 0], spectrum[..., 1], weight[..., 0], weight[..., 1]
            real = torch.einsum("bixy,ioxy->boxy", a, c) - torch.einsum("bixy,ioxy->boxy", b, d)
            imaginary = torch.einsum("bixy,ioxy->boxy", a, d) + torch.einsum("bixy,ioxy->boxy", b, c)
            low = functional.pad(torch.stack([real, imaginary], -1), (0, 0, 0, 21, 0, 52))
            x = functional.gelu(torch.fft.irfft2(torch.view_as_complex(low.contiguous()), s=(64, 64)) + local(x))
        return x


@row("spectrogram", (1, 16000))
class Spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mel", torch.rand(201, 64))
        self.register_buffer("window", torch.hann_window(400))

    def forward(self, x):
        spectrum = torch.view_as_real(torch.stft(x, 400, 160, window=self.window, return_complex=True))
        power = spectrum.square().sum(-1).transpose(1, 2)
        return (power @ self.mel + 1e-6).log()


# ---- sets, tables, series, fields ----


@row("set-transformer", (4, 100, 32))
class SetTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Parameter(torch.randn(1, 16, 64))
        self.embed = nn.Linear(32, 64)
        self.attend = nn.ModuleList(nn.MultiheadAttention(64, 4, batch_first=True) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(4))

    def forward(self, x):
        x = self.embed(x)
        for i in (0, 2):
            few = self.norms[i](self.attend[i](self.points.expand(4, -1, -1), x, x, need_weights=False)[0])
            x = self.norms[i + 1](x + self.attend[i + 1](x, few, few, need_weights=False)[0])
        return x.mean(1)


@row("dlrm", (128, 13), lambda: torch.randint(0, 500, (128, 26)))
class Recommender(nn.Module):
    """Embeddings of categories, and all products of pairs."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(500, 32) for _ in range(26))
        self.bottom, self.top = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU()), nn.Sequential(nn.Linear(383, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("pairs", torch.tril_indices(27, 27, -1))

    def forward(self, dense, kinds):
        dense = self.bottom(dense)
        features = torch.stack([dense, *(table(kinds[:, i]) for i, table in enumerate(self.tables))], 1)
        products = (features @ features.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([dense, products], 1)).sigmoid()


@row("cross-network", (256, 64))
class CrossNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))
        self.deep = nn.Sequential(nn.Linear(64, 256), nn.PReLU(), nn.Linear(256, 64), nn.Mish())
        self.last = nn.Linear(128, 1)

    def forward(self, x):
        y = x
        for layer in self.cross:
            y = x * layer(y) + y
        return self.last(torch.cat([y, self.deep(x)], 1))


@row("soft-trees", (256, 32))
class SoftTrees(nn.Module):
    """Oblivious trees: products over depth of soft decisions."""

    def __init__(self):
        super().__init__()
        self.pick, self.threshold = nn.Parameter(torch.randn(32, 64, 4)), nn.Parameter(torch.randn(64, 4))
        self.leaves = nn.Parameter(torch.randn(64, 16, 8))
        bits = torch.tensor([[leaf >> depth & 1 for depth in range(4)] for leaf in range(16)], dtype=torch.float32)
        self.register_buffer("bits", bits)

    def forward(self, x):
        value = torch.einsum("bf,ftd->btd", x, self.pick.softmax(0)) - self.threshold
        right = value.mul(4).sigmoid()[:, :, None]
        reached = (self.bits * right + (1 - self.bits) * (1 - right)).prod(-1)
        return torch.einsum("btl,tlc->bc", reached, self.leaves)


@row("n-beats", (32, 96))
class SeriesBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(96, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 96 + 24)) for _ in range(4))

    def forward(self, x):
        forecast = 0
        for block in self.blocks:
            back, ahead = block(x).split([96, 24], 1)
            x, forecast = x - back, forecast + ahead
        return forecast


@row("decomposed-linear", (8, 336, 7))
class DecomposedLinear(nn.Module):
    """DLinear: a trend by moving means, and a line for each part."""

    def __init__(self):
        super().__init__()
        self.season, self.trend = nn.Linear(336, 96), nn.Linear(336, 96)

    def forward(self, x):
        x = x.transpose(1, 2)
        trend = functional.avg_pool1d(functional.pad(x, (12, 12), mode="replicate"), 25, 1)
        return (self.season(x - trend) + self.trend(trend)).transpose(1, 2)


@row("radiance-field", (1024, 3), (1024, 3))
class RadianceField(nn.Module):
    """Positions as sines, and colours summed along rays; by logarithms, as the exporter has no products so far."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(63, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.density, self.colour = nn.Linear(128, 1), nn.Sequential(nn.Linear(128 + 27, 64), nn.ReLU(), nn.Linear(64, 3), nn.Sigmoid())

    def waves(self, x, count):
        angles = (x[..., None] * torch.tensor([2.0**i for i in range(count)])).flatten(1)
        return torch.cat([x, angles.sin(), angles.cos()], 1)

    def forward(self, points, directions):
        x = self.first(self.waves(points, 10))
        colour = self.colour(torch.cat([x, self.waves(functional.normalize(directions), 4)], 1)).view(16, 64, 3)
        opaque = 1 - (-functional.relu(self.density(x)).view(16, 64) * 0.05).exp()
        clear = torch.cat([torch.ones(16, 1), (1 - opaque + 1e-10).log().cumsum(1).exp()[:, :-1]], 1)
        return (colour * (opaque * clear)[..., None]).sum(1)


@row("siren", (4096, 2))
class SineNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2 if not i else 128, 128) for i in range(4))
        self.last = nn.Linear(128, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.sin(30 * layer(x))
        return self.last(x)


@row("spline-network", (256, 16))
class SplineNetwork(nn.Module):
    """KAN: each edge has a function, of B-splines by the recursion."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(o, i * 8) * 0.1 for i, o in ((16, 64), (64, 16)))
        self.base = nn.ModuleList([nn.Linear(16, 64), nn.Linear(64, 16)])
        self.register_buffer("grid", torch.linspace(-2.2, 2.2, 12))

    def bases(self, x):
        x, grid = x[..., None], self.grid
        basis = ((x >= grid[:-1]) & (x < grid[1:])).to(x.dtype)
        for k in range(1, 4):
            left = (x - grid[: -(k + 1)]) / (grid[k:-1] - grid[: -(k + 1)])
            right = (grid[k + 1 :] - x) / (grid[k + 1 :] - grid[1:-k])
            basis = left * basis[..., :-1] + right * basis[..., 1:]
        return basis.flatten(1)

    def forward(self, x):
        for weight, base in zip(self.weights, self.base):
            x = base(functional.silu(x)) + functional.linear(self.bases(x), weight)
        return x


@row("kalman", (1, 40, 4))
class Filter(nn.Module):
    """A filter of 4 numbers, whose 2 x 2 inverse is written out: many small products."""

    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.eye(4) + torch.diag(torch.full((2,), 0.1), 2))
        self.register_buffer("see", torch.eye(2, 4))

    def forward(self, x):
        state, spread, out = torch.zeros(1, 4, 1), torch.eye(4)[None], []
        for t in range(40):
            state, spread = self.step @ state, self.step @ spread @ self.step.t() + 0.01 * torch.eye(4)
            s = self.see @ spread @ self.see.t() + 0.1 * torch.eye(2)
            determinant = (s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] * s[:, 1, 0])[:, None, None]
            inverse = torch.stack([torch.stack([s[:, 1, 1], -s[:, 0, 1]], -1), torch.stack([-s[:, 1, 0], s[:, 0, 0]], -1)], 1) / determinant
            gain = spread @ self.see.t() @ inverse
            state = state + gain @ (x[:, t, :2, None] - self.see @ state)
            spread = spread - gain @ self.see @ spread
            out.append(state)
        return torch.cat(out, 2)


@row("relative-attention", (1, 96, 64))
class RelativeAttention(nn.Module):
    """Transformer-XL's: positions shifted by a pad and a view."""

    def __init__(self):
        super().__init__()
        self.all, self.position = nn.Linear(64, 192), nn.Parameter(torch.randn(4, 16, 96))

    def forward(self, x):
        q, k, v = (part.view(1, 96, 4, 16).transpose(1, 2) for part in self.all(x).chunk(3, -1))
        shifted = functional.pad(q @ self.position, (1, 0)).view(1, 4, 97, 96)[:, :, 1:]
        scores = (q @ k.transpose(2, 3) + shifted) * 0.25
        scores = scores.masked_fill(torch.ones(96, 96, dtype=torch.bool).triu(1), float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@row("mixture-of-experts", (64, 64))
class Mixture(nn.Module):
    """All experts by a batch of products, and the two best of each row by scatter."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(64, 8), nn.Parameter(torch.randn(8, 64, 128) * 0.1), nn.Parameter(torch.randn(8, 128, 64) * 0.1)

    def forward(self, x):
        best, index = self.gate(x).softmax(-1).topk(2, -1)
        share = torch.zeros(64, 8).scatter(1, index, best / best.sum(-1, keepdim=True))
        each = torch.bmm(functional.gelu(torch.bmm(x.expand(8, -1, -1), self.up), approximate="tanh"), self.down)
        return (each * share.t()[..., None]).sum(0)
