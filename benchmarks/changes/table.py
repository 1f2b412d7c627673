"""Changes of twenty packages, 78 of which make privacy worse and 35 do not: each a replacement of text in one module.

They were written before any of them was audited. Five that look worse are not, as was worked out later: a comment says why.
One was replaced, since what two numbers made of five noisy sums lose was not worked out.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.changes.more import HARMLESS, WORSE


@dataclass(frozen=True)
class Change:
    """A change of one package.

    Attributes:
        package: Its name.
        name: What somebody may call the change.
        before: The text that is replaced; it occurs once.
        after: What it becomes.
        worse: Whether less is private after it.
    """

    package: str
    name: str
    before: str
    after: str
    worse: bool = True


_NODES = "            noisy[start, length] = sum(days[start : start + length]) + rng.laplace(scale=levels / epsilon)\n"
_CHOICE = "return int(rng.choice(prices, p=weight / weight.sum()))"
_ARMS = """    a = purchases(users, "a") + rng.normal(scale=SIGMA_SUM)
    b = purchases(users, "b") + rng.normal(scale=SIGMA_SUM)
"""
_SHARE = """share = budget.spend(0.2 * epsilon)
        found["short"] = noisy(len([s for s in sessions if s < 1]), share, rng)"""
_SHORT = 'found["short"] = noisy(sum(s < 1 for s in sessions), budget.spend(0.2 * epsilon), rng)'

CHANGES = (
    Change(
        "payroll",
        "high salaries are kept",
        "min(max(salary, LOW), HIGH)",
        "max(salary, LOW)",
    ),
    Change(
        "payroll",
        "number without noise",
        "len(salaries) + rng.laplace(scale=2 / epsilon)",
        "len(salaries)",
    ),
    Change(
        "payroll",
        "half the noise of the total",
        "(HIGH - LOW) / epsilon",
        "(HIGH - LOW) / (2 * epsilon)",
    ),
    Change(
        "payroll", "exponent without its half", "epsilon * score / 2", "epsilon * score"
    ),
    Change(
        "payroll",
        "clipped by numpy",
        "clipped = [min(max(salary, LOW), HIGH) for salary in salaries]",
        "clipped = np.clip(salaries, LOW, HIGH).tolist()",
        worse=False,
    ),
    Change(
        "clinic",
        "counts without noise",
        "        noisy = count + rng.laplace(scale=4 / epsilon)\n",
        "        noisy = count\n",
    ),
    # A visit is in one week: at any threshold one of the weeks' factors changes, by e^(ε/4) at most.
    Change(
        "clinic",
        "threshold with less noise",
        "rng.laplace(scale=2 / epsilon)",
        "rng.laplace(scale=0.5 / epsilon)",
        worse=False,
    ),
    Change(
        "clinic",
        "the count is returned as well",
        "            return week\n",
        "            return week, round(noisy, 1)\n",
        worse=False,
    ),
    Change(
        "clinic",
        "empty buckets are left out",
        "for bucket in BUCKETS:",
        "for bucket in sorted(set(buckets)):",
    ),
    Change(
        "clinic",
        "more noise",
        "rng.laplace(scale=1 / epsilon)",
        "rng.laplace(scale=1.5 / epsilon)",
        worse=False,
    ),
    Change(
        "meters",
        "one level too few",
        "levels = math.log2(DAYS) + 1",
        "levels = math.log2(DAYS)",
    ),
    Change("meters", "levels forgotten", "scale=levels / epsilon", "scale=1 / epsilon"),
    Change(
        "meters",
        "the last total is exact",
        "for day in range(DAYS)]",
        "for day in range(DAYS - 1)] + [sum(days)]",
    ),
    Change(
        "meters", "numbers are not clipped", "min(max(day, 0.0), 1.0)", "max(day, 0.0)"
    ),
    Change(
        "meters",
        "one draw a level",
        f"        for start in range(0, DAYS, length):\n{_NODES}",
        "        noise = rng.laplace(scale=levels / epsilon, size=DAYS // length)\n"
        "        for k, start in enumerate(range(0, DAYS, length)):\n"
        "            noisy[start, length] = sum(days[start : start + length]) + noise[k]\n",
        worse=False,
    ),
    Change(
        "abtest",
        "purchases without a limit",
        'min(user["purchases"], MOST)',
        'user["purchases"]',
    ),
    Change(
        "abtest",
        "a variance for a deviation",
        "MOST / 0.8, 1 / 0.6",
        "(MOST / 0.8) ** 0.5, 1 / 0.6",
    ),
    Change(
        "abtest",
        "one noise for both arms",
        _ARMS,
        '    noise = rng.normal(scale=SIGMA_SUM)\n    a, b = purchases(users, "a") + noise, purchases(users, "b") + noise\n',
    ),
    Change(
        "abtest",
        "largest purchase released",
        '"users": number}',
        '"users": number, "largest": max((user["purchases"] for user in users), default=0)}',
    ),
    Change(
        "abtest",
        "rounded",
        'return {"a": a, "b": b,',
        'return {"a": round(a, 2), "b": round(b, 2),',
        worse=False,
    ),
    # A further bid lowers no revenue and raises it by HIGHEST at most: weights and their sum grow by e^(ε/2) at most.
    Change(
        "pricing",
        "exponent without its half",
        "/ (2 * HIGHEST)",
        "/ HIGHEST",
        worse=False,
    ),
    Change(
        "pricing",
        "prices that were bid",
        "prices = PRICES\n",
        "prices = sorted({1, *(bid for bid in bids if bid)})\n",
    ),
    Change(
        "pricing",
        "all of ε for the number",
        "math.exp(-epsilon / 2)",
        "math.exp(-epsilon)",
    ),
    Change(
        "pricing",
        "the best price where bids are many",
        f"    {_CHOICE}",
        f"    if len(bids) > 20:\n        return prices[int(score.argmax())]\n    {_CHOICE}",
    ),
    Change(
        "pricing",
        "chosen by Gumbel noise",
        f"    weight = np.exp(epsilon * (score - score.max()) / (2 * HIGHEST))\n    {_CHOICE}",
        "    return prices[int(np.argmax(epsilon * score / (2 * HIGHEST) + rng.gumbel(size=len(prices))))]",
        worse=False,
    ),
    # Nine points at y = -1, and a further one at 1: an intercept below -1.5 in 6.2 % and 1.5 % of runs, by simulation.
    Change(
        "regression", "ε is not split", "scale = 5 / epsilon", "scale = 1 / epsilon"
    ),
    Change(
        "regression", "heights are not clipped", "(unit(x), unit(y))", "(unit(x), y)"
    ),
    Change(
        "regression",
        "an exact intercept",
        "intercept = (y - slope * x) / n",
        "intercept = sum(y - slope * x for x, y in points) / max(len(points), 1)",
    ),
    Change(
        "regression",
        "other algebra",
        "slope = (n * xy - x * y) / max(n * xx - x * x, 1.0)",
        "slope = (xy - x * y / n) / max(xx - x * x / n, 1.0 / n)",
        worse=False,
    ),
    Change(
        "regression",
        "a noisy number as well",
        '"intercept": intercept}',
        '"intercept": intercept, "n": n}',
        worse=False,
    ),
    # A session is short, medium or long: the number and one of the counts move, which is 0.8 ε.
    Change(
        "sessions",
        "one count more, unchecked",
        "    return found\n",
        '    found["medium"] = noisy(sum(1 <= s <= LONG for s in sessions), 0.4 * epsilon, rng)\n    return found\n',
        worse=False,
    ),
    Change(
        "sessions",
        "a part is the whole",
        "        return part\n",
        "        return self.total\n",
    ),
    Change(
        "sessions",
        "decided by the exact number",
        'if found["sessions"] > 4:',
        "if len(sessions) > 4:",
    ),
    Change(
        "sessions",
        "seeded by the data",
        "    budget = Spending(epsilon)\n",
        "    import numpy as np\n\n    rng = np.random.default_rng(len(sessions))\n    budget = Spending(epsilon)\n",
    ),
    Change(
        "sessions",
        "a function of its own",
        _SHORT,
        _SHARE,
        worse=False,
    ),
    Change("covariance", "rows as they are", "row / max(math.hypot(*row), 1.0)", "row"),
    Change("covariance", "another logarithm", "math.log(1.25", "math.log10(1.25"),
    Change(
        "covariance",
        "uniform noise",
        "rng.normal(scale=sigma(epsilon, DELTA), size=3)",
        "rng.uniform(-4, 4, size=3)",
    ),
    Change("covariance", "more noise", "/ epsilon\n", "* 1.2 / epsilon\n", worse=False),
    Change(
        "covariance",
        "moments one by one",
        "    total = rows.T @ rows\n",
        "    x, y = rows[:, 0], rows[:, 1]\n    total = np.array([[x @ x, x @ y], [x @ y, y @ y]])\n",
        worse=False,
    ),
    *(Change(*each) for each in WORSE),
    *(Change(*each, worse=False) for each in HARMLESS),
)
