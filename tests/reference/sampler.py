"""Golden draws for the sampler: the chain and the generator again, from their definitions.

    sampler.py OUT.json

xoshiro256** seeded by splitmix64 (Blackman and Vigna); repeat penalty, top-k, top-p, min-p,
temperature, one draw by inverting the cumulative sum. Integers and float64; standard library only.
A draw closer than 1e-4 to a boundary is refused, so that float32 arithmetic cannot change it.
"""

import json
import math
import sys

MASK = (1 << 64) - 1


class Random:
    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = seed
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ (z >> 31))

    def uniform(self):
        rotl = lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
        s = self.s
        result = (rotl((s[1] * 5) & MASK, 7) * 9) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return (result >> 11) * 2.0 ** -53


def sample(logits, options, recent, random):
    logits = list(logits)
    for token in set(recent[-options["repeat_last_n"]:] if options["repeat_last_n"] else []):
        p = options["repeat_penalty"]
        logits[token] = logits[token] / p if logits[token] > 0 else logits[token] * p
    order = sorted(range(len(logits)), key=lambda t: (-logits[t], t))
    if options["temperature"] == 0:
        return order[0]
    if options["top_k"]:
        order = order[:options["top_k"]]
    weigh = lambda t: [math.exp((logits[i] - logits[order[0]]) / t) for i in order]
    if options["top_p"] < 1:
        weights, held = weigh(1), 0.0
        for n, w in enumerate(weights):
            held += w
            if held >= options["top_p"] * sum(weights):
                order = order[:n + 1]
                break
    order = [t for t, w in zip(order, weigh(1)) if w >= options["min_p"]]
    weights = weigh(options["temperature"])
    left = random.uniform() * sum(weights)
    for token, w in zip(order, weights):
        assert abs(left - w) > 1e-4 * sum(weights) or token == order[-1], "choose another seed"
        left -= w
        if left < 0:
            return token
    return order[-1]


def main():
    # 40 logits between -4 and 4, no two closer than 0.01.
    logits = [round(4 * math.sin(1.7 * i * i + 0.3), 2) + 0.0001 * i for i in range(40)]
    base = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.0, repeat_last_n=64)
    cases = [
        dict(base, seed=1), dict(base, seed=0xFFFFFFFFFFFFFFFF), dict(base, seed=2, temperature=0.3),
        dict(base, seed=3, top_k=5), dict(base, seed=4, top_p=0.7), dict(base, seed=5, min_p=0.3),
        dict(base, seed=6, repeat_penalty=1.5, repeat_last_n=3),
        dict(base, seed=7, temperature=0.8, top_k=20, top_p=0.95, min_p=0.05, repeat_penalty=1.1),
        dict(base, seed=8, temperature=0.0, repeat_penalty=2.0, repeat_last_n=2),
    ]
    for case in cases:
        random, recent = Random(case["seed"]), []
        for _ in range(24):
            recent.append(sample(logits, case, recent, random))
        case["seed"], case["tokens"] = str(case["seed"]), recent
    with open(sys.argv[1], "w") as out:
        rows = ",\n".join(json.dumps(case) for case in cases)
        out.write('{"made_by": "tests/reference/sampler.py", "logits": %s, "cases": [\n%s\n]}\n'
                  % (json.dumps(logits), rows))


if __name__ == "__main__":
    main()
