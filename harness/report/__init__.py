"""Reports of a run: aggregated tables with captions, statistics and published numbers, in every format. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.errors import UserError, did_you_mean
from harness.report.build import NONE, Located, ReportOptions, RunReport, make_report, to_json
from harness.report.csv_table import render_csv
from harness.report.latex import render_latex
from harness.report.markdown import render_markdown
from harness.report.plain import render_plain
from harness.safe_io import json_text

RENDERERS: Mapping[str, Callable[[RunReport], str]] = {
    "plain": render_plain,
    "markdown": render_markdown,
    "latex": render_latex,
    "csv": render_csv,
    "json": lambda report: json_text(to_json(report)),
}


def render(report: RunReport, style: str) -> str:
    """Render the report as text that ends with a line break; ``harness.report.terminal`` prints to a terminal.

    Raises:
        UserError: there is no such format.
    """
    if style not in RENDERERS:
        known = ", ".join(RENDERERS)
        raise UserError(f"no report format is called '{style}'{did_you_mean(style, RENDERERS)}; there are: {known}")
    return RENDERERS[style](report)
