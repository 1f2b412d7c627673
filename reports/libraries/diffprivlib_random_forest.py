"""RandomForestClassifier: a row more moves others to other trees; a new label counts twice. Needs diffprivlib alone."""

import warnings
from collections import Counter

from diffprivlib.models import RandomForestClassifier

warnings.simplefilter("ignore")


def labels(y, trees, n=300):
    """Return how often each combination of the trees' labels at .5 is released at ε = 1."""
    seen = Counter()
    for _ in range(n):
        model = RandomForestClassifier(
            trees, epsilon=1, max_depth=1, bounds=(0, 1), classes=[0, 1]
        )
        model.fit([[0.5]] * len(y), y)
        seen[tuple(int(one.predict([[0.5]])[0]) for one in model.estimators_)] += 1 / n
    return seen


for trees, first, second in ((3, [0, 1, 0], [0, 1, 0, 1]), (1, [1], [0])):
    p, q = labels(first, trees), labels(second, trees)
    best = max(p, key=lambda found: p[found] / max(q[found], 1 / 300))
    print(
        f"{trees} trees, labels {first} and {second}: P(labels {best}) = {p[best]:.3f} and {q[best]:.3f}, a factor of "
        f"{p[best] / max(q[best], 1 / 300):.1f}; ε = 1 allows 2.718"
    )
