"""Stages on other machines, by Dask; everything here is imported when it is used, as Dask is an extra.

``engine`` hands stages to a scheduler, ``connection`` finds or starts that scheduler and its workers, and ``plugin`` is
what runs inside a Dask worker and starts the processes that run the stages.
"""
