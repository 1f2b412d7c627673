"""Cases from end to end: trainers, trainings in a batch, and continued runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from flint import arb

import auditdp
from auditdp import (
    AccountedDP,
    ApproxDP,
    Audit,
    GaussianDP,
    PureDP,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
)
from auditdp.accountants import GaussianCurve
from auditdp.mechanism.laws import precision
from auditdp.training import audit_training
from benchmarks.verdicts.case import Case, Rng, claim_near
from benchmarks.verdicts.truth import BITS, GaussianPair, LaplacePair

WORLDS = (np.array([1.0, 0.2]), np.array([0.2]))
CURVES = (GaussianDP, ZeroConcentratedDP, RenyiDP, AccountedDP, ApproxDP)
CONTINUED = """
from auditdp import *
from auditdp.testing import *

@audit()
def played():
    return Audit({mechanism}({noise!r}), {claim!r}, AnyValues((0, 1)), evidence=["game"], calls=100)
"""


def trainer(case: Case) -> None:
    """Audit a trainer of some steps with Gaussian noise, or with Laplace noise against a curve of another family."""
    steps, laplace = int(case.pick((1, 3))), bool(case.rng.random() < 0.4)
    apart = float(case.rng.uniform(0.3, 3))
    noise = (1.0 if laplace else steps**0.5) / apart
    with precision(BITS):
        code: Any = (
            LaplacePair(1 / arb(noise))
            if laplace
            else GaussianPair(arb(steps).sqrt() / arb(noise))
        )

    def train(data: Any, rng: Rng) -> Any:
        total = np.clip(data, -1, 1).sum()
        for _ in range(1 if laplace else steps):
            yield [total + noise * (rng.laplace() if laplace else rng.normal())]

    if case.rng.random() < 0.4:
        sigma = noise * float(case.pick((0.5, 1.0, 2.0)))
        claim: Any = AccountedDP(
            GaussianCurve(sigma),
            quoted=float(case.pick((1e-5, 1e-2))),
            family=lambda f: GaussianCurve(sigma * f),
        )
    else:
        claim = claim_near(case, code, (PureDP,) if laplace else CURVES)
    if claim is None:
        return
    trainings = (
        int(case.pick((40, 120, 400))) if isinstance(claim, PureDP | GaussianDP) else 60
    )
    case.told = (
        f"{trainings} trainings of {1 if laplace else steps} steps with {'Laplace' if laplace else 'Gaussian'} noise "
        f"{noise!r}: {claim}{', a family of Gaussian curves' if getattr(claim, 'family', None) else ''}, α = {case.alpha:g}"
    )
    about = type(claim).__name__
    found = case.attempt(
        "trainer",
        about,
        lambda: audit_training(
            train, claim, WORLDS, calls=trainings, alpha=case.alpha, seed=case.number
        ),
    )
    if found is not None:
        case.judge(found, claim, code, None)


def ensemble(case: Case) -> None:
    """Audit DP-SGD of a linear classifier, many trainings at once, with a gradient canary for which its claim is tight."""
    if find_spec("torch") is None:
        return
    from gnn.ensembles import FinalModel, NoisedSums
    from gnn.ensembles.example import canary_pair, full_batch

    mu, steps, final = (
        float(case.rng.uniform(0.5, 2)),
        int(case.pick((1, 4))),
        bool(case.rng.random() < 0.5),
    )
    made, pair = full_batch(mu, steps), canary_pair(steps, alternating=not final)
    with precision(BITS):
        code = GaussianPair(arb(mu) * (1 + arb(1e-9)))
    claim: Any = GaussianDP(mu * float(case.pick((1 + 2e-9, 1.01, 0.5))))
    case.told = (
        f"{'final model' if final else 'noised sums'} of {steps} steps, μ = {mu!r}"
    )
    case.audit(
        lambda: Audit(
            (FinalModel if final else NoisedSums)(made),
            claim,
            [pair],
            evidence=["game"],
        ),
        claim,
        code,
        calls=100,
    )


def continued(case: Case) -> None:
    """Run an audit by the command line and go on with its game, twice."""
    laplace = bool(case.rng.random() < 0.5)
    noise = float(case.rng.uniform(0.4, 2))
    with precision(BITS):
        # Randomised response that keeps a bit with probability e^ε/(1 + e^ε) is ε-DP, up to rounding.
        code: Any = (
            LaplacePair(1 / arb(noise))
            if laplace
            else _Response(arb(noise) * (1 + arb(1e-12)))
        )
        claim = claim_near(case, code, (PureDP,))
    text = CONTINUED.format(
        mechanism="LaplaceMechanism" if laplace else "Response",
        noise=noise,
        claim=claim,
    )
    case.told = f"{'Laplace noise' if laplace else 'randomised response'} {noise!r}, {claim}, run and continued twice"
    result = case.attempt("run --continue", "PureDP", lambda: _ran(text, case))
    if result is None:
        return
    verdict, lower = result["verdict"], result["epsilon_lower"]
    wrong = []
    with precision(BITS):
        truth = code.epsilon(arb(0))[1]
        if verdict == Verdict.VIOLATED and bool(truth <= arb(claim.level)):  # type: ignore[union-attr]
            wrong.append("VIOLATED of a true claim")
        if lower is not None and bool(arb(float(lower)) > truth):
            wrong.append(f"lower bound {lower} above {truth}")
    case.says("run --continue", "PureDP", verdict, "; ".join(wrong), by_chance=True)


class _Response(LaplacePair):
    """The pure ε of randomised response."""


def _ran(text: str, case: Case) -> dict[str, Any]:
    """Return the result of an audit that was run, and went on twice."""
    root = str(Path(auditdp.__file__).parents[1])
    with TemporaryDirectory() as folder:
        (Path(folder) / "audits").mkdir()
        (Path(folder) / "audits" / "audit_it.py").write_text(text, encoding="utf-8")
        for arguments in (
            ("run", "--seed", str(case.number), "--alpha", f"{case.alpha:g}"),
            ("run", "--continue", "played", "--calls", "300"),
            ("run", "--continue", "played", "--calls", "600"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "auditdp", *arguments, "--format", "json"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": root},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode not in (0, 1):
                raise RuntimeError(
                    f"auditdp {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-300:]}"
                )
        (found,) = json.loads(done.stdout)["results"]
        return dict(found)
