"""Writes oracle.json: 200 tables with the figures that scipy and statsmodels compute for them.

Needs scipy, statsmodels and numpy: python3 oracle.py > oracle.json
"""

import json
import random

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

draw = random.Random(42)


def robust_variance(values, groups):
    """The variance of a mean under clustered sampling, with the factor G / (G - 1)."""
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    return float(fit.cov_params()[0, 0])


def one_share():
    clusters = []
    for _ in range(draw.randint(2, 30)):
        of = draw.randint(1, 12)
        chance = min(1, max(0, draw.gauss(0.4, 0.3)))
        clusters.append([sum(draw.random() < chance for _ in range(of)), of])
    values, groups = [], []
    for at, (hits, of) in enumerate(clusters):
        values += [1.0] * hits + [0.0] * (of - hits)
        groups += [at] * of
    n, share = len(values), sum(values) / len(values)
    effect = 1.0
    if 0 < share < 1:
        effect = robust_variance(np.array(values), groups) / (share * (1 - share) / n)
        effect = min(max(effect, 1.0), n / len(clusters))
    groups = len(clusters)
    if n > groups:
        effect *= (stats.t.ppf(0.975, groups - 1) / stats.norm.ppf(0.975)) ** 2
    low, high = proportion_confint(share * n / effect, n / effect, method="wilson")
    return {"clusters": clusters, "low": float(low), "high": float(high)}


def one_bound():
    of = draw.randint(1, 400)
    errors = draw.randint(0, min(of - 1, 20))
    return {"errors": errors, "of": of, "bound": float(stats.beta.ppf(0.95, errors + 1, of - errors))}


def one_difference(groups):
    lists = [[draw.choice([-1, 0, 0, 0, 1, 1]) for _ in range(draw.randint(1, 5))] for _ in range(groups)]
    values = [float(value) for rows in lists for value in rows]
    ids = [at for at, rows in enumerate(lists) for _ in rows]
    n = len(values)
    table = {"clusters": [[sum(rows), len(rows)] for rows in lists], "mean": sum(values) / n}
    if groups >= 20:
        error = (robust_variance(np.array(values), ids) + 0.5 / n**2) ** 0.5
        half = float(stats.t.ppf(0.975, groups - 1) * error)
        return table | {"low": table["mean"] - half, "high": table["mean"] + half}
    sums = np.array([sum(rows) for rows in lists], dtype=float)
    flips = stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf)
    return table | {"p": float(flips.pvalue)}


print(json.dumps({
    "shares": [one_share() for _ in range(100)],
    "bounds": [one_bound() for _ in range(40)],
    "differences": [one_difference(draw.randint(20, 40)) for _ in range(30)]
    + [one_difference(draw.randint(4, 12)) for _ in range(30)],
}))
