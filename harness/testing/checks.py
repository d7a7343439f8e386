"""The checks of each kind of component, and their outcomes."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.component import Component
from harness.engine.failures import of_plugin
from harness.engine.process_state import switches_kept
from harness.errors import bounded
from harness.testing import analyses, backbones, datasets, encoders, environments, learners, quantifiers, trackers
from harness.testing.learner_rig import LearnerRig
from harness.testing.report import CheckFunction, Outcome, Report, Skip
from harness.testing.rig import Rig, scrambled

_KIT = Path(__file__).parent
_KINDS: dict[str, tuple[type[Rig[Any, Any]], tuple[CheckFunction, ...]]] = {
    "baseline": (LearnerRig, learners.CHECKS),
    "decorrelator": (LearnerRig, learners.CHECKS),
    "encoder": (encoders.EncoderRig, encoders.CHECKS),
    "quantifier": (quantifiers.QuantifierRig, quantifiers.CHECKS),
    "environment": (environments.EnvironmentRig, environments.CHECKS),
    "dataset": (datasets.DatasetRig, datasets.CHECKS),
    "backbone": (backbones.BackboneRig, backbones.CHECKS),
    "analysis": (analyses.AnalysisRig, analyses.CHECKS),
    "tracker": (trackers.TrackerRig, trackers.CHECKS),
}


def checks_of(kind: str) -> tuple[CheckFunction, ...]:
    """Return the checks that components of a kind must pass."""
    return _KINDS[kind][1]


def rig_of(cls: type[Component], data_dir: Path | None = None) -> Rig[Any, Any]:
    """Return the rig that all checks of a component share."""
    return _KINDS[cls.kind][0](cls, data_dir)


def about(check: CheckFunction) -> str:
    """Return the contract that a check tests: the first paragraph of its docstring."""
    return " ".join((inspect.getdoc(check) or "").partition("\n\n")[0].split())


def left_changed(switch: str) -> str:
    """Say that a component changed a switch of its process."""
    return f"changes {switch} and leaves it so"


def run_check(check: CheckFunction, rig: Rig[Any, Any]) -> Outcome:
    """Run one check; an exception, or an attempt to end the process, is a problem."""
    name, problems, lines = check.__name__, list[str](), list[str]()
    try:
        with scrambled(name), switches_kept() as changed:
            problems.extend(check(rig))
        problems += map(left_changed, changed)
    except Skip as reason:
        return Outcome(name, about(check), "skipped", (str(reason),))
    except (Exception, SystemExit) as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        problems.append(bounded(f"raised {type(error).__name__}: {error}{notes}"))
        lines = _traceback(error)
    return Outcome(name, about(check), "failed" if problems else "ok", tuple(problems), tuple(lines))


def _traceback(error: BaseException) -> list[str]:
    """Return the lines of the traceback from the component's first frame on; without one, from the kit's last."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [place for place, frame in enumerate(frames) if of_plugin(frame.filename)]
    kit = [place for place, frame in enumerate(frames) if Path(frame.filename).parent == _KIT]
    first = own[0] if own else kit[-1] + 1
    return "".join(traceback.format_list(frames[first:])).splitlines()


def check_component(
    cls: type[Component],
    data_dir: Path | None = None,
    tell: Callable[[tuple[str, str] | Outcome], object] = lambda _: None,
) -> Report:
    """Run every check on a component.

    Args:
        cls: a component's class; it need not be registered.
        data_dir: the folder of data files, for datasets that read some.
        tell: receives name and contract of each check that begins, and its outcome.
    """
    started = time.perf_counter()
    rig = rig_of(cls, data_dir)
    outcomes = []
    for check in checks_of(cls.kind):
        tell((check.__name__, about(check)))
        outcomes.append(run_check(check, rig))
        tell(outcomes[-1])
    return Report(cls.kind, cls.name, tuple(outcomes), time.perf_counter() - started)
