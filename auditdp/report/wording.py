"""The words and signs that every report shares: what each verdict means, and what a clean run means."""

from __future__ import annotations

from auditdp.record.results import Verdict
from auditdp.record.verdict import MISCALIBRATION, REMEDY

SIGNS: dict[Verdict, str] = {
    Verdict.VIOLATED: "✕",
    Verdict.MISCALIBRATED: "▲",
    Verdict.CERTIFIED: "■",
    Verdict.NOT_REFUTED: "○",
    Verdict.EQUIVALENT: "≈",
    Verdict.INCONCLUSIVE: "◇",
    Verdict.ERROR: "!",
    Verdict.SKIPPED: "–",
}

MEANINGS: dict[Verdict, str] = {
    Verdict.VIOLATED: (
        "The claim is false. There is a counterexample; where the evidence is statistical, "
        "a true claim would have been refuted with probability at most α."
    ),
    Verdict.MISCALIBRATED: MISCALIBRATION,
    Verdict.CERTIFIED: "The claim is proved for the stated model and scope. How the code samples is outside it.",
    Verdict.NOT_REFUTED: (
        "No violation was seen. This is not “private”: the report says how small a violation would have been seen."
    ),
    Verdict.EQUIVALENT: "An estimate is within the stated margin of what is promised, on the inputs that were tried.",
    Verdict.INCONCLUSIVE: (
        "Nothing is decided: a broken twin was not refuted, the code is not what its law says, or the claim was refuted and "
        "that was not confirmed."
    ),
    Verdict.ERROR: (
        "The audit could not be carried out: it crashed, ran out of time, or the mechanism cannot be tested as it is. "
        "Nothing was found out about the claim, and an error is never a finding."
    ),
    Verdict.SKIPPED: "The audit could not run here, for the reason given.",
}

UNCONFIRMED_REMEDY = (
    "Test it again with another seed and more calls (`auditdp confirm ID --budget 1000000`). Where the mechanism takes a "
    "size, look for code that depends on it, and draw fresh noise for each output."
)
"""What to do where a refutation was not confirmed."""
REMEDIES: dict[Verdict, str] = {
    Verdict.VIOLATED: (
        "Paste the pair and look at the line that is read off the code: noise is calibrated to less than one neighbour "
        "changes, or something gets round it. Mend that, or correct the claim; the command of the report shows the "
        "finding again. One that the project lives with is accepted in the baseline, with a reason."
    ),
    Verdict.MISCALIBRATED: REMEDY,
    Verdict.CERTIFIED: "Read what it rests on, on the audit's page of the HTML report; `auditdp run` also plays the code.",
    Verdict.NOT_REFUTED: (
        "Read how small a violation these calls would have found: `--find level:1.2` or `--budget thorough` find smaller "
        "ones, and an adjacency that generates pairs looks at others."
    ),
    Verdict.EQUIVALENT: "Give further inputs; nothing is known of those that were not tried.",
    Verdict.INCONCLUSIVE: (
        "Where a broken twin was not refuted, give the calls that find it (`--budget`, `--find`), pairs on which it "
        "differs, or a twin that breaks the claim by more. Where the code is not what its law says, mend either. Where a "
        f"refutation was not confirmed: {UNCONFIRMED_REMEDY}"
    ),
    Verdict.ERROR: "The message has the line; mend it there. A time limit is raised with `--timeout`.",
    Verdict.SKIPPED: "Install or provide what the reason names.",
}
"""What to do about each verdict."""

CLEAN_RUN = (
    "A clean run means that these audits found no violation beyond those that they declare, each within its stated "
    "scope, pairs and budget; it does not mean that the mechanisms are private."
)
