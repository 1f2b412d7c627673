"""DP-SGD trainers whose claim depends on their batches and their preprocessing.

The noised sum of every step is released, and nothing of the batches: what the accountants' claims are about, for a record
that is there or not. The losses are linear, so that the gradients of all examples are those of the worst case: all against
the canary's, so that the sum changes by twice the clipping norm where a batch has the canary in an example's place.
"""

import math
from dataclasses import replace

from auditdp import AccountedDP, Audit, GaussianDP, audit
from auditdp.accountants import PLDUpper
from auditdp.betting.forecasters.forecaster import Scored
from audits.trainers import ABADI, ensembles, forecasters


@audit(
    source=f"{ABADI}; its accountant: Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11"
)
def dp_sgd_batches(noise_multiplier=0.6, batch=8, batches=4):
    """The noised sums of an epoch of DP-SGD on Poisson batches have the accountant's curve; of other batches, they do not.

    The same noise and the same claim go with batches of fixed size, and with a shuffled epoch.
    """
    room, example, _ = ensembles()
    trainer = example.linear_trainer(
        noise_multiplier=noise_multiplier, batch=batch, rate=1 / batches, steps=batches
    )
    twins = room.batch_twins(trainer)
    return Audit(
        mechanism=room.SumsAlone(trainer),
        claim=AccountedDP(PLDUpper(noise_multiplier, 1 / batches, batches)),
        pairs=example.opposed_pair(batch * batches - 1, batches),
        controls=[
            room.SumsAlone(twins[name], label=name)
            for name in ("shuffled batches", "batches of fixed size")
        ],
        forecasters=[Scored()],
        calls=20_000,
        exhaustive=False,
    )


@audit(
    source="parallel composition; Dong, Roth & Su 2022, arXiv:1905.02383v3, Corollary 3.3"
)
def dp_sgd_in_order(noise_multiplier=1.0, batch=4, epochs=2):
    """The noised sums of DP-SGD on batches in a fixed order are √epochs/σ-Gaussian DP for a record at the end of the data.

    That record is alone in the last batch. The mean over that batch, with the noise of a whole one, has it batch-fold.
    """
    room, example, _ = ensembles()
    trainer = replace(
        example.linear_trainer(
            noise_multiplier=noise_multiplier, batch=batch, rate=0.5, steps=2 * epochs
        ),
        batches=room.in_order,
    )
    broken = room.SumsAlone(
        replace(trainer, finish=room.over_own_size),
        label="last batch over its own size",
    )
    return Audit(
        mechanism=room.SumsAlone(trainer),
        claim=GaussianDP(math.sqrt(epochs) / noise_multiplier),
        pairs=example.opposed_pair(batch, 2 * epochs),
        controls=[broken],
        forecasters=[Scored()],
        calls=20_000,
        exhaustive=False,
    )


@audit(source=f"{ABADI}; Dong, Roth & Su 2022, arXiv:1905.02383v3, Corollary 3.3")
def dp_sgd_features(mu=1.0, steps=2):
    """The noised sums of DP-SGD on all examples are μ-Gaussian DP for an outlier, unless it moves the others' features.

    Clipping bounds what a record's own gradient adds. Features that are standardised by the private data's own mean and
    deviation change for all records.
    """
    room, example, _ = ensembles()
    trainer = example.full_batch(mu, steps)
    broken = replace(trainer, prepare=room.standardised)
    return Audit(
        mechanism=room.NoisedSums(trainer),
        claim=GaussianDP(mu),
        pairs=example.outlier_pair(),
        controls=[room.NoisedSums(broken, label="standardised by the private data")],
        forecasters=forecasters(),
        calls=20_000,
        exhaustive=False,
    )
