"""An honest project, its plan and its results, and stand-ins of what a pool of processes handles."""

from auditdp.record.results import AuditResult, Evidence, Verdict
from auditdp.runner.plan import Plan, PlanOptions, Task, make_plan
from auditdp.runner.pool import Workers

HONEST = """
from auditdp import Audit, PureDP, audit

@audit
def leaks():
    return Audit(lambda x, rng: x, PureDP(1.0), pairs=[(0, 1)])
"""


class Ended:
    """A process that has ended without an exit code."""

    exitcode = None

    def is_alive(self):
        return False

    def join(self, seconds):
        pass


def task(name: str, alpha: float = 0.01) -> Task:
    return Task(
        id=f"audits/audit_a.py::{name}",
        path="/a.py",
        name=name,
        root="/",
        overrides={},
        expect="holds",
        alpha=alpha,
        budget="quick",
        timeout=None,
        root_seed=1,
    )


def proved(name: str, **more) -> AuditResult:
    """A result that states a proof."""
    proof = Evidence("exact", Verdict.CERTIFIED, "")
    return AuditResult(name, Verdict.CERTIFIED, "", evidence=[proof], **more)


def planned(processes: Workers) -> Plan:
    """Return the plan of all audits below the working folder."""
    options = PlanOptions(root_seed=1, budget="quick")
    return make_plan(["audits"], options, collect=processes.collect)


def judged(processes: Workers) -> dict[str, AuditResult]:
    """Run all audits below the working folder; return their results by id."""
    tasks = planned(processes).tasks
    return {result.id: result for result in processes.run(tasks)}


def verdicts_of(found: dict[str, AuditResult]) -> dict[str, Verdict]:
    return {name: result.verdict for name, result in found.items()}
