"""Traces: one run of code on two neighbours, with the same noisy values.

A trace records the values that noise is added to, and the lines that add it.

A *draw* is one call of a sampler: U₁, U₂, … A **release** is a value at which noise
enters: R = v + c·U, an event 1[U < p], a choice by a table p, or the place of the
largest of noisy scores. *Record* runs the code on D and stores its draws and releases.
*Replay* runs it on D′ with the same draws, and gives every release its recorded result.
So the noise of the replay is U′ = (R − v′)/c′.

**Theorem.** Let the code draw releases R₁, …, R_k one after the other, R_i from a law
L_i(D, R₁ … R_{i−1}), and draws P besides, whose law does not depend on D. Suppose that
its output is f(R₁, …, R_k, P), the same f for D and D′, and that k does not depend on
the input. If for all r₁ … r_{i−1} the laws L_i(D, r₁ …) and L_i(D′, r₁ …) are (ε_i,
δ_i)-indistinguishable, or no easier to tell apart than N(0, 1) and N(μ_i, 1), then the
outputs on D and D′ are no easier to tell apart than the adaptive composition of these.
If R and P can moreover be recovered from the output, the output has the likelihood
ratio

    ∏_i L_i(D, r₁ …)(r_i) / L_i(D′, r₁ …)(r_i),

which no other test of D against D′ exceeds in power.

*Proof.* (R, P) is an adaptive composition: its joint law on D is that of P times ∏
L_i(D, r₁ …). The first statement about (R, P) is the theorem of adaptive composition of
the notion (Kairouz, Oh & Viswanath 2015, arXiv:1311.0776v4, Theorem 3.3, for
statements; Dong, Roth & Su 2022, arXiv:1905.02383v3, Theorem 3.2, for trade-off
functions), and the output is a function of (R, P), so that it is no easier to tell
apart (data processing). The law of P cancels in the likelihood ratio of (R, P), which
is the product above. A bijection f keeps likelihood ratios, and the lemma of Neyman and
Pearson is the last statement. ∎

**Assumptions**, which are observed on the traced pairs and runs, and never certified
for others:

- *f is the same on both*: with all releases equal the outputs are equal. If they are
  not, a difference reaches the output without noise.
- *k and the families are the same*: the draws are the same in number, family and order.
  If they are not, control flow depends on the data.
- *ε_i for all r*: the trace has v and v′ for the recorded r alone. If v does not depend
  on earlier noisy values, that is no restriction.
- *Draws are independent*, and all of them are observed: none in C code, other threads
  or other processes.
- Events and choices that do not depend on the data by themselves (randomised response)
  are decided in all ways on both inputs, and the law of the output is computed
  (`auditdp.tracing.outcomes`).

**Losses that are too large.** Code may only compare noisy values with each other (the
sparse vector technique, a maximum of scores with Laplace noise). Each of these values
is charged as a release, unless runs with other values in the same order give the same
output (`auditdp.tracing.order_statistics`). Amplification by sampling is not counted. A
pair that is proposed because of such a loss costs calls of a game.

Code that the trace does not understand is *opaque*, and every result lists its lines.
Statements about other code are tested by runs with other draws. A statement that these
runs do not confirm is called a suspicion (`auditdp.tracing.prediction`). A trace
proposes; evidence decides.

To read the room, begin with `draws`, `watched_run` and `trace`, which record and replay
runs. `noise` and the files of rules (`array_functions`, `tensor_functions`) follow
noise through the code. `losses`, `pair_record` and `pair` compare two runs. `findings`
states suspected faults. `sources` replaces the samplers of libraries.
"""

from auditdp.tracing.findings import Finding
from auditdp.tracing.outcomes import Outcomes
from auditdp.tracing.pair import PairTrace, checked, compare, in_full, replayed
from auditdp.tracing.trace import Trace
from auditdp.tracing.versions_compared import (
    VersionChange,
    VersionsTrace,
    compare_versions,
)
from auditdp.tracing.watched_run import TracedRun

__all__ = [
    "Finding",
    "Outcomes",
    "PairTrace",
    "Trace",
    "TracedRun",
    "VersionChange",
    "VersionsTrace",
    "checked",
    "compare",
    "compare_versions",
    "in_full",
    "replayed",
]
