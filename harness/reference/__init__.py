"""Reference texts of components and of the suite language, for ``bench describe`` and the documentation site. No torch.

``python -m harness.reference docs/deviations.md`` writes the rows of the files ``NAME.deviations.yaml`` beside the
components below the marker line of the page. The other pages are made when the site is built.
"""

from harness.reference.components import (
    MARKER,
    PLURALS,
    Deviation,
    as_markdown,
    as_text,
    deviations,
    headline,
    renewed,
    traits,
)

__all__ = ["MARKER", "PLURALS", "Deviation", "as_markdown", "as_text", "deviations", "headline", "renewed", "traits"]
