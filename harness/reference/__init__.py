"""The reference, made from the code: what ``bench describe`` says, and the pages of the documentation site. No torch.

    python -m harness.reference docs/deviations.md

writes the rows of the files beside the components (``NAME.deviations.yaml``) below the marker line of the page; what
stands above it is written by hand and stays. The other pages (:mod:`harness.reference.pages`) are made when the site is
built and are in no repository, so that they cannot be stale.
"""

from harness.reference.differences import MARKER, as_markdown, as_text, deviations, headline, renewed

__all__ = ["MARKER", "as_markdown", "as_text", "deviations", "headline", "renewed"]
