#!/usr/bin/env python3
"""Tables and a plot of what the benches measured.

    report.py [--by-shape] [--plot PNG] JSON ...

JSON is what a bench wrote with --benchmark_out=FILE (--benchmark_out_format=json). Printed is
Markdown: the machine, the commands and the dates, then the kernels and the whole models. The plot
(needs matplotlib) shows each kernel's share of the limit that it comes nearest to.
"""
import argparse
import json
import re
import statistics
import sys

LEVELS = ("scalar", "avx2", "avxvnni", "avx512")
MODEL = "model "


class Run:
    """One benchmark: what its name says, and its counters."""

    def __init__(self, entry):
        fields = entry["name"].split("/")
        settings = dict(f.split(":", 1) for f in fields if ":" in f)
        words = [f for f in fields if ":" not in f and f not in ("manual_time", "real_time")]
        self.level = next((w for w in words if w in LEVELS), None)
        self.shape = next((w for w in words if re.fullmatch(r"\d+x\d+", w)), "")
        self.kernel = " ".join(w for w in words if w not in (self.level, self.shape))
        if "columns" in settings:
            self.kernel += f", {settings['columns']} columns"
        self.threads = int(settings.get("threads", 1))
        self.model = entry.get("label", "")
        self.counters = entry
        self.is_model = self.kernel.startswith(MODEL)
        self.is_known = self.level is not None and (
            "of_matrices" in entry if self.is_model else bool(self.shares())
        )

    def shares(self):
        """Of each limit that was measured: the share and that of the best round, if it is told."""
        names = ("of_read_bandwidth", "of_int8_peak")
        return [
            (self.counters[n], self.counters.get(n + "_best", self.counters[n]))
            for n in names
            if n in self.counters
        ]


def read(paths):
    """The contexts of the files, and the runs of all that report() understands."""
    contexts, runs = [], []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            try:
                content = json.load(file)
            except ValueError as error:
                raise ValueError(f"{path}: {error}, expected what a bench wrote") from None
        contexts.append(content["context"])
        for entry in content["benchmarks"]:
            if entry.get("run_type") == "aggregate":
                continue
            if entry.get("error_occurred"):
                raise ValueError(f"{path}: {entry['name']}: {entry.get('error_message')}")
            run = Run(entry)
            if run.is_known:
                runs.append(run)
            else:
                print(f"report.py: {path}: left out: {entry['name']}", file=sys.stderr)
    return contexts, runs


def size(bytes_):
    return f"{bytes_ >> 20} MiB" if bytes_ >= 1 << 20 else f"{bytes_ >> 10} KiB"


def machine(context):
    caches = [
        f"L{c['level']} {size(c['size'])}"
        for c in context.get("caches", [])
        if c["type"] != "Instruction"
    ]
    cores = context.get("cores", context["num_cpus"])
    return ", ".join([f"{context.get('cpu', 'an unnamed CPU')}, {cores} cores"] + caches)


def heading(contexts):
    """A line for each machine and day, with the commands that ran there and then."""
    commands = {}
    for context in contexts:
        where = (context["date"][:10], machine(context))
        command = context.get("command", context["executable"])
        of_day = commands.setdefault(where, [])
        if command not in of_day:
            of_day.append(command)
    return [
        f"Measured on {day} on {where}: " + ", ".join(f"`{c}`" for c in of_day) + "."
        for (day, where), of_day in commands.items()
    ]


def number(value):
    """Three digits."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def span(values, text):
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low}-{high}"


def percent(value):
    return f"{100 * value:.0f}"


def cell(groups, make):
    """One entry for each number of threads; groups are the runs of one each."""
    made = [make(runs) for runs in groups]
    return "-" if None in made else " / ".join(made)


def speed(counter):
    def make(runs):
        values = [r.counters[counter] for r in runs if counter in r.counters]
        return span(values, number) if values else None

    return make


def share(counter):
    """Lowest to highest median, the best round in brackets, a star where the machine was noisy."""

    def make(runs):
        values = [r.counters[counter] for r in runs if counter in r.counters]
        if not values:
            return None
        bests = [r.counters[counter + "_best"] for r in runs if counter + "_best" in r.counters]
        best = f" ({percent(max(bests))})" if bests else ""
        star = "\\*" if any(r.counters.get("noisy") for r in runs) else ""
        return f"{span(values, percent)}{best} %{star}"

    return make


def grouped(runs, key):
    groups = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def table(runs, key, titles, columns):
    """Rows of equal key, in the order of their first runs; the columns after the key's are cells
    with an entry for each number of threads."""
    yield "| " + " | ".join(titles + ["threads"] + [title for title, _ in columns]) + " |"
    yield "|" + "---|" * (len(titles) + 1 + len(columns))
    for name, of_row in grouped(runs, key).items():
        by_threads = dict(sorted(grouped(of_row, lambda r: r.threads).items()))
        cells = [cell(by_threads.values(), make) for _, make in columns]
        yield "| " + " | ".join([*name, " / ".join(map(str, by_threads)), *cells]) + " |"


def report(contexts, runs, by_shape=False):
    lines = heading(contexts)
    kernels = [r for r in runs if not r.is_model]
    models = [r for r in runs if r.is_model]
    if kernels:
        shape = ["shape"] if by_shape else []
        lines += ["", *table(
            kernels,
            lambda r: (r.kernel, r.level) + ((r.shape,) if by_shape else ()),
            ["kernel", "level"] + shape,
            [
                ("GB/s", speed("GB/s")),
                ("Gweights/s", speed("Gweights/s")),
                ("of the read bandwidth", share("of_read_bandwidth")),
                ("GOP/s", speed("GOP/s")),
                ("of the int8 peak", share("of_int8_peak")),
            ],
        )]
    if models:
        lines += ["", *table(
            models,
            lambda r: (r.model, r.kernel.removeprefix(MODEL), r.level),
            ["model", "", "level"],
            [
                ("tokens/s", speed("tokens/s")),
                ("its matrices alone", speed("matrices_tokens/s")),
                ("share of that", share("of_matrices")),
                ("of the read bandwidth", share("of_read_bandwidth")),
            ],
        )]
    if runs:
        lines += ["", "Shares are medians of paired ratios"
                  + ("" if by_shape else ", from the lowest of the shapes to the highest")
                  + ", the best round in brackets."]
    if any(r.counters.get("noisy") for r in runs):
        lines.append("\\* A ceiling moved by more than 10 % during the run.")
    return "\n".join(lines) + "\n"


def bars(runs):
    """{kernel: {(level, threads): (share, best)}} of the nearer limit, medians over the shapes."""
    result = {}
    for (kernel, level, threads), group in grouped(
        (r for r in runs if not r.is_model), lambda r: (r.kernel, r.level, r.threads)
    ).items():
        nearest = [max(r.shares()) for r in group]
        result.setdefault(kernel, {})[level, threads] = (
            statistics.median(s for s, _ in nearest),
            max(b for _, b in nearest),
        )
    return result


def plot(contexts, runs, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kernels = bars(runs)
    kinds = sorted(
        {kind for of_kernel in kernels.values() for kind in of_kernel},
        key=lambda kind: (LEVELS.index(kind[0]), kind[1]),
    )
    most = max(threads for _, threads in kinds)
    height = 0.8 / len(kinds)
    fig, ax = plt.subplots(figsize=(8, 1.2 + 0.16 * (len(kinds) + 1) * len(kernels)), dpi=110)
    for k, (level, threads) in enumerate(kinds):
        rows = [i for i, of_kernel in enumerate(kernels.values()) if (level, threads) in of_kernel]
        values = [of_kernel[level, threads] for of_kernel in kernels.values()
                  if (level, threads) in of_kernel]
        at = [i + (k - (len(kinds) - 1) / 2) * height for i in rows]
        ax.barh(at, [100 * v for v, _ in values], height,
                color=f"C{LEVELS.index(level)}", alpha=0.4 + 0.6 * threads / most,
                label=f"{level}, {threads} thread" + "s" * (threads > 1))
        ax.plot([100 * b for _, b in values], at, "k|", ms=5,
                label="best round" if k == len(kinds) - 1 else None)
    ax.set_yticks(range(len(kernels)), kernels)
    ax.invert_yaxis()
    ax.set(xlabel="share of the nearer limit, %: read bandwidth or int8 peak", xlim=(0, 100))
    ax.set_title(f"{machine(contexts[0])}, {contexts[0]['date'][:10]}", fontsize=9)
    ax.grid(axis="x", alpha=0.3)
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    fig.tight_layout()
    fig.savefig(path)


def main():
    parser = argparse.ArgumentParser(description="Tables and a plot of what the benches measured.")
    parser.add_argument("json", nargs="+", help="what --benchmark_out=FILE wrote")
    parser.add_argument("--by-shape", action="store_true", help="a row for each shape")
    parser.add_argument("--plot", metavar="PNG", help="draw each kernel's share of its limit")
    options = parser.parse_args()
    try:
        contexts, runs = read(options.json)
    except (OSError, ValueError) as error:
        sys.exit(f"report.py: {error}")
    print(report(contexts, runs, options.by_shape), end="")
    if options.plot:
        if all(r.is_model for r in runs):
            sys.exit("report.py: --plot: found no kernel with a share of a limit, expected one or more")
        plot(contexts, runs, options.plot)


if __name__ == "__main__":
    main()
