"""``bench validate``."""

from __future__ import annotations

import typer

from harness.cli import code, options


def validate(
    suite: options.Suite,
    chosen: options.SuiteOptions,
    folders: options.Folders,
    json: options.Json = False,
) -> None:
    """Check a suite and the data it needs; every fault is reported with its place. Runs nothing."""
    from harness.cli.output import counted
    from harness.errors import Problem, SuiteError, UserError
    from harness.results.rows import dumps
    from harness.run.session import open_session

    try:
        session = open_session(suite, folders.session(chosen, tell=code.tell))
    except UserError as error:
        if not json:
            raise
        found = error.problems if isinstance(error, SuiteError) else (Problem("", str(error)),)
        problems = [vars(problem) for problem in found]
        print(dumps({"valid": False, "problems": problems}), end="")
        raise typer.Exit(2) from None
    opened = session.suite
    code.tell_withheld(session.catalog)
    sizes = {
        "dataset": len(opened.datasets),
        "method": len(opened.methods),
        "seed": len(opened.seeds),
        "cell": len(session.plan.cells),
    }
    if json:
        counts = {f"{noun}s": number for noun, number in sizes.items()}
        print(
            dumps(
                {
                    "valid": True,
                    "suite": str(opened.path),
                    **counts,
                    "plugins": code.as_json(opened.plugins),
                    "problems": [],
                }
            ),
            end="",
        )
        return
    print(f"{opened.path}: valid; {', '.join(counted(number, noun) for noun, number in sizes.items())}")
