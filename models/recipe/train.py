#!/usr/bin/env python3
"""Trains the model on CPU cores: one single-threaded process a core, gradients summed through shared memory.

    train.py --data DATA --out RUN (--minutes 60 | --steps 3000) [options]

Writes RUN/log.jsonl as it goes and RUN/checkpoint.pt every few minutes and at the end. With --minutes the schedule follows
the clock, so the number of steps depends on the machine; the log tells how many there were. With --steps it does not.
"""
import argparse
import json
import os
import pathlib
import time

import numpy as np
import torch
import torch.multiprocessing as mp

import tsq_file
from model import GROUP, Config, Rotation, dequantize, loss_sum, rope_tables, ternary

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


class Tales:
    """Token windows of one epoch after another; every process draws the same ones and takes its share."""

    def __init__(self, folder, context, seed):
        stored = np.load(folder / "train.npz")
        ids, ends = stored["ids"], stored["ends"]
        parts = [ids[a:b] for a, b in zip([0, *ends], ends)]
        self.tales = [(str(k), parts[2 * i], parts[2 * i + 1]) for i, k in enumerate(stored["kinds"])]
        facts = json.loads((folder / "data.json").read_text())
        self.end = facts["end_of_text"]
        self.context, self.seed, self.epoch, self.windows = context, seed, 0, []

    def _start_epoch(self):
        random = np.random.default_rng([self.seed, self.epoch])
        # Chapters follow their tale; books are cut into tales and shuffled.
        works = []
        for kind, title, body in self.tales:
            if kind == "notes":
                continue
            works += [[]] if kind == "tale" or not works else []
            works[-1].append((kind, title, body))
        random.shuffle(works)
        stream = []
        for work in works:
            for kind, title, body in work:
                # A tale starts after <|endoftext|>, half of the time without its title; or as in the books, right after another.
                choice = random.random()
                if kind == "tale" and choice < 0.85:
                    stream += [np.array([self.end], np.uint16)] + ([title] if choice < 0.35 else []) + [body]
                else:
                    stream += [title, body]
        stream = np.concatenate(stream)
        size = self.context + 1
        offset = random.integers(self.context)
        count = (len(stream) - offset - 1) // self.context
        windows = np.stack([stream[offset + i * self.context :][:size] for i in range(count)]).astype(np.int64)
        windows[random.random(count) < 0.25, 0] = self.end  # perplexity tools put it before text cut anywhere
        random.shuffle(windows)
        self.windows, self.epoch = list(windows), self.epoch + 1

    def next(self, count):
        while len(self.windows) < count:
            self._start_epoch()
        taken, self.windows = self.windows[:count], self.windows[count:]
        return torch.from_numpy(np.stack(taken))


def orthogonalize(g, steps, dtype):
    """Newton-Schulz iteration of Muon: the nearest semi-orthogonal matrix, roughly."""
    x = g.to(dtype)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if tall else x).float()


class Optimizer:
    """Muon for the matrices of the layers (--muon), Adam for the rest; state of the names it owns only."""

    def __init__(self, args):
        self.args, self.state = args, {}
        self.dtype = DTYPES[args.dtype]

    def update(self, name, w, g, rate, step):
        a = self.args
        if a.muon and w.dim() == 2 and name != "token_embd":
            m = self.state.setdefault(name, torch.zeros_like(w))
            m.lerp_(g, 1 - a.momentum)
            u = orthogonalize(g.lerp(m, a.momentum), a.muon_steps, self.dtype) * (0.2 * max(w.shape) ** 0.5)
            rate = rate * a.muon_lr
        else:
            m, v = self.state.setdefault(name, (torch.zeros_like(w), torch.zeros_like(w)))
            m.lerp_(g, 1 - 0.9)
            v.lerp_(g * g, 1 - 0.95)
            u = (m / (1 - 0.9**step)) / ((v / (1 - 0.95**step)).sqrt() + 1e-12)
            rate = rate * a.lr
        if w.dim() == 2:
            w.mul_(1 - rate * a.weight_decay)
        w.sub_(u, alpha=rate)


def schedule(args, progress):
    """Returns (learning rate factor, share of the ternary weights in the mixture)."""
    rate = min(progress / args.warmup, (1 - progress) / (1 - args.decay_from), 1.0)
    if not args.ternary:
        return max(rate, 0.0), 0.0
    mix = (progress - args.dense) / args.ramp if args.ramp else float(progress >= args.dense)
    return max(rate, 0.0), min(max(mix, 0.0), 1.0)


def worker(rank, args, config, shared, barrier):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    latent, weight, grads, sums = shared
    dtype = DTYPES[args.dtype]
    rotation = Rotation(config)
    cos, sin = rope_tables(config, config.context)
    tales = Tales(args.data, config.context, args.seed)
    valid = torch.from_numpy(np.load(args.data / "valid.npy").astype(np.int64))
    optimizer = Optimizer(args)

    # Names by cost, dealt out to the processes.
    order = sorted(latent, key=lambda n: -latent[n].numel())
    owned, load = [], [0] * args.processes
    for name in order:
        to = load.index(min(load))
        load[to] += latent[name].numel()
        owned += [name] if to == rank else []

    params = {n: w.requires_grad_() for n, w in weight.items()}
    loss_of = torch.compile(lambda x, y: loss_sum(params, config, x, y, cos, sin, dtype), dynamic=False)

    def materialize(name, mix):
        w = latent[name]
        if w.dim() == 2:
            if mix > 0:
                w = torch.lerp(w, dequantize(*ternary(w)), mix)
            w = rotation.unrotate(w)
        weight[name].data.copy_(w)

    def evaluate(windows):
        total = 0.0
        with torch.no_grad():
            for i in range(rank * args.batch, windows, args.processes * args.batch):
                x = torch.stack([valid[j * 512 : j * 512 + 513] for j in range(i, i + args.batch)])
                x[:, 0] = tales.end
                total += loss_of(x[:, :-1].contiguous(), x[:, 1:].contiguous()).item()
        sums[rank] = total
        barrier.wait()
        return sums.sum().item() / (windows * config.context)

    log = open(args.out / "log.jsonl", "a") if rank == 0 else None

    def say(**record):
        if rank == 0:
            log.write(json.dumps(record) + "\n")
            log.flush()
            print(*(f"{k} {v:.5g}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items()), flush=True)

    def save(step, elapsed):
        if rank == 0:
            state = {"config": vars(config), "latent": {n: w.clone() for n, w in latent.items()}, "step": step, "seconds": elapsed}
            torch.save(state, args.out / "checkpoint.tmp")
            os.replace(args.out / "checkpoint.tmp", args.out / "checkpoint.pt")

    for name in owned:
        materialize(name, 0.0)
    barrier.wait()
    x = tales.next(args.batch * args.processes)[rank :: args.processes]
    for turn in range(args.processes):  # compile before the clock starts; the second process finds the work done
        if rank == turn:
            loss_of(x[:, :-1].contiguous(), x[:, 1:].contiguous()).backward()
            with torch.no_grad():
                loss_of(x[:, :-1].contiguous(), x[:, 1:].contiguous())
        barrier.wait()

    begin = last_eval = last_save = time.monotonic()
    step, window_tokens, running, recent = 0, config.context * args.batch * args.processes, 0.0, 0
    clock = torch.zeros(1)
    while True:
        if rank == 0:
            elapsed = time.monotonic() - begin
            sums[-1] = elapsed
            sums[-2] = elapsed / (60 * args.minutes) if args.minutes else step / args.steps
            sums[-3] = float(elapsed - (last_eval - begin) > 60 * args.eval_minutes)
            sums[-4] = float(elapsed - (last_save - begin) > 300)
        barrier.wait()
        elapsed, progress, do_eval, do_save = (sums[-i].item() for i in (1, 2, 3, 4))
        rate, mix = schedule(args, min(progress, 1.0))
        # The weights in use are those of the last update, so finish on an update at the end of the schedule.
        if progress >= 1.0:
            break
        step += 1
        for p in params.values():
            p.grad = None
        x = tales.next(args.batch * args.processes)[rank :: args.processes]
        loss = loss_of(x[:, :-1].contiguous(), x[:, 1:].contiguous())
        loss.backward()
        for n, p in params.items():
            grads[rank][n].copy_(p.grad)
        sums[rank] = loss.item()
        barrier.wait()
        running += sums[: args.processes].sum().item() / window_tokens
        recent += 1
        for n in owned:
            g = sum(grads[r][n].float() for r in range(args.processes)) / window_tokens
            g = rotation.rotate(g) if g.dim() == 2 else g
            optimizer.update(n, latent[n], g, rate, step)
            materialize(n, mix)
        barrier.wait()
        if step % args.log_steps == 0:
            say(step=step, seconds=round(elapsed, 1), tokens=step * window_tokens, loss=running / recent, rate=rate, mix=mix)
            running, recent = 0.0, 0
        if do_eval:
            say(step=step, seconds=round(elapsed, 1), valid=evaluate(args.eval_windows), epoch=tales.epoch)
            last_eval = time.monotonic()
        if do_save:
            save(step, elapsed)
            last_save = time.monotonic()
    say(step=step, seconds=round(elapsed, 1), valid=evaluate(args.eval_windows), epoch=tales.epoch, tokens=step * window_tokens)
    save(step, elapsed)


def latent_from(path, config, random):
    """Latent weights whose ternary ones are those of the file.

    The latent values inside each bin of the rounding are lost; even spreads around the bin's value take their place, and
    the survivors of a group keep their mean.
    """
    tensors, signs = tsq_file.read(path)
    for width, expected in Rotation(config).signs.items():
        assert config.block == 1 or np.array_equal(signs[width], expected), f"{path}: other signs than seed {config.seed}"
    latent = {n: torch.from_numpy(tensors[n + ".weight"][0].copy()) for n in config.norms()}
    for n, shape in config.matrices().items():
        codes, scales = tensors[n + ".weight"]
        assert codes.shape == shape, f"{path}: {n} is {codes.shape}, expected {shape}"
        codes = codes.reshape(shape[0], -1, GROUP)
        size = random.uniform(0.5, 1.5, codes.shape) * (codes != 0)
        size *= ((codes != 0).sum(-1) / np.maximum(size.sum(-1), 1e-9))[..., None]
        w = np.where(codes == 0, random.uniform(-0.35, 0.35, codes.shape), codes * size) * scales[..., None]
        latent[n] = torch.from_numpy(w.reshape(shape).astype(np.float32))
    return latent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=pathlib.Path, required=True)
    add("--out", type=pathlib.Path, required=True)
    add("--init", type=pathlib.Path, help="a .tsq file to go on from")
    add("--minutes", type=float, default=0)
    add("--steps", type=int, default=0)
    add("--processes", type=int, default=2)
    add("--batch", type=int, default=4, help="windows a process and step")
    add("--dtype", choices=DTYPES, default="bfloat16", help="of the products; float32 on a CPU without bf16 instructions")
    add("--muon", action="store_true")
    add("--muon-lr", type=float, default=0.005)
    add("--muon-steps", type=int, default=4)
    add("--momentum", type=float, default=0.95)
    add("--lr", type=float, default=0.003)
    add("--weight-decay", type=float, default=0.1)
    add("--warmup", type=float, default=0.02, help="share of the run")
    add("--decay-from", type=float, default=0.1, help="share of the run after which the rate falls linearly to 0")
    add("--dense", type=float, default=0.0, help="share of the run before the weights become ternary")
    add("--ramp", type=float, default=0.0, help="share of the run over which they do")
    add("--no-ternary", dest="ternary", action="store_false")
    add("--seed", type=int, default=1)
    add("--log-steps", type=int, default=20)
    add("--eval-minutes", type=float, default=2)
    add("--eval-windows", type=int, default=64)
    for name in ("dim", "layers", "heads", "kv_heads", "head_dim", "ffn", "block"):
        add("--" + name.replace("_", "-"), type=int, default=getattr(Config, name))
    args = parser.parse_args()
    if not args.minutes and not args.steps:
        parser.error("--minutes or --steps")
    args.out.mkdir(parents=True, exist_ok=True)
    config = Config(
        vocab=json.loads((args.data / "data.json").read_text())["vocab"],
        seed=args.seed,
        **{k: getattr(args, k) for k in ("dim", "layers", "heads", "kv_heads", "head_dim", "ffn", "block")},
    )
    torch.manual_seed(args.seed)
    # Initialised in the rotated basis: an orthogonal change of basis leaves Gaussian weights Gaussian.
    latent = {n: torch.randn(s) * s[1] ** -0.5 for n, s in config.matrices().items()}
    for n in latent:
        if n.endswith(("attn_output", "ffn_down")):
            latent[n] /= (2 * config.layers) ** 0.5
    latent |= {n: torch.ones(s) for n, s in config.norms().items()}
    if args.init:
        latent = latent_from(args.init, config, np.random.default_rng(args.seed))
    weight = {n: w.to(DTYPES[args.dtype], copy=True) if w.dim() == 2 else w.clone() for n, w in latent.items()}
    grads = [{n: torch.zeros_like(w) for n, w in weight.items()} for _ in range(args.processes)]
    sums = torch.zeros(args.processes + 8, dtype=torch.float64)
    for t in [*latent.values(), *weight.values(), *(g for gs in grads for g in gs.values()), sums]:
        t.share_memory_()
    print(f"{config.parameters()} parameters, torch {torch.__version__}, {args}", flush=True)
    with open(args.out / "log.jsonl", "w") as log:
        log.write(json.dumps({"parameters": config.parameters(), "torch": torch.__version__, "args": {k: v for k, v in vars(args).items() if k not in ("data", "out", "init")}}) + "\n")
    mp.spawn(worker, (args, config, (latent, weight, grads, sums), mp.get_context("spawn").Barrier(args.processes)), args.processes)


if __name__ == "__main__":
    main()
