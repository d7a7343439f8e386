"""Reference texts of components and of the suite language, for ``bench describe`` and the documentation site. No torch.

    python -m harness.reference docs/deviations.md

writes the rows of the files ``NAME.deviations.yaml`` beside the components below the marker line of the page. The pages
of components and suite keys are made when the site is built, so that they cannot be stale.
"""

from harness.reference.differences import MARKER, as_markdown, as_text, deviations, headline, renewed

__all__ = ["MARKER", "as_markdown", "as_text", "deviations", "headline", "renewed"]
