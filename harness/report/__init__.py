"""Reports of a run: aggregated tables with captions, statistics and published numbers, in every format. No torch."""

from harness.report.build import NONE, Located, Report, ReportOptions, Section, make_report, to_json
from harness.report.render import RENDERERS, render

__all__ = [
    "NONE",
    "RENDERERS",
    "Located",
    "Report",
    "ReportOptions",
    "Section",
    "make_report",
    "render",
    "to_json",
]
