"""Labels, local model: randomised response on a label, alone and beside the encoded features of the same record."""

from itertools import product

import numpy as np

from auditdp import AnyValues, Audit, PureDP, audit
from mechanisms.features import MultiBit
from mechanisms.labels import FeaturesAndLabel, LabelRR

LPGNN = "Sajadmanesh & Gatica-Perez 2021, arXiv:2006.05535"
SAME_FEATURES = "both records have the same features, and what is sent of them does not depend on the label"


def labels(classes):
    """Return any two different labels."""
    return AnyValues(list(range(classes)), label="label LDP (any two labels)")


@audit(
    source=f"{LPGNN}, randomised response on labels",
    row="label RR",
    reading="as stated and as deployed",
)
def label_rr(epsilon=1.0, classes=4):
    """The true label with probability E/(E+c−1), each other with 1/(E+c−1), provides ε-label LDP."""
    return Audit(
        mechanism=LabelRR(epsilon, classes),
        claim=PureDP(epsilon),
        pairs=labels(classes),
        controls=[LabelRR(1.5 * epsilon, classes)],
        calls=60_000,
    )


@audit(source=LPGNN, row="label RR", reading="with the features of the same record")
def features_and_label(epsilon_features=1.0, epsilon_label=1.0, dimension=1, classes=3):
    """Encoded features and a noisy label together provide (ε_x + ε_y)-LDP for the record of both.

    Features are 0 or 1 here, as words in a document; these are the ends at which the encoder loses all of ε_x. With one
    feature, and only then, noise that label and feature share is seen in a batch of runs.
    """
    records = [
        np.array([*x, y], np.float64)
        for x in product((0, 1), repeat=dimension)
        for y in range(classes)
    ]
    mechanism = FeaturesAndLabel(
        MultiBit(epsilon_features, dimension), LabelRR(epsilon_label, classes)
    )
    return Audit(
        mechanism=mechanism,
        claim=PureDP(epsilon_features + epsilon_label),
        pairs=AnyValues(
            records,
            finite=True,
            label=f"value LDP (any two records of {dimension} words and a label)",
        ),
        controls=[
            FeaturesAndLabel(
                MultiBit(2 * epsilon_features, dimension),
                LabelRR(epsilon_label, classes),
            ),
            FeaturesAndLabel(
                MultiBit(epsilon_features, dimension),
                LabelRR(2 * epsilon_label, classes),
            ),
        ],
        calls=60_000,
    )


@audit(source=LPGNN, row="label RR", reading="the label alone, given the features")
def label_beside_features(
    epsilon_features=1.0, epsilon_label=1.0, dimension=1, classes=3
):
    """For the label alone, of a record whose features are the same, the same release provides ε_y."""
    records = [np.array([*np.ones(dimension), y]) for y in range(classes)]
    features, response = (
        MultiBit(epsilon_features, dimension),
        LabelRR(epsilon_label, classes),
    )
    return Audit(
        mechanism=FeaturesAndLabel(features, response),
        claim=PureDP(epsilon_label),
        pairs=AnyValues(
            records,
            finite=True,
            label="label LDP (any two labels of the same features)",
        ),
        controls=[FeaturesAndLabel(features, LabelRR(1.5 * epsilon_label, classes))],
        calls=20_000,
        equivalent_mutants={"*called by MultiBit.perturb": SAME_FEATURES},
    )
