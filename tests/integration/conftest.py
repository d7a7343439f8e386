"""Fixtures of the integration tests."""

from integration_kit import index_cache, values, workshop

__all__ = ["index_cache", "values", "workshop"]
