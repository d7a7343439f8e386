"""Fixtures of the integration tests."""

from integration_kit import bench, copied, index_cache, made, values, workshop

__all__ = ["bench", "copied", "index_cache", "made", "values", "workshop"]
