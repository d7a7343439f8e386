"""Stages on other machines, by Dask; everything here is imported when it is used, as Dask is an extra.

``engine`` hands stages to a scheduler, ``connection`` finds or starts that scheduler and its workers, ``plugin`` is
what runs inside a Dask worker, and ``agent`` the process beside it in which our own process engine runs the stages.
"""
