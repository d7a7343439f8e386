"""Statistics of a comparison over seeds and over datasets, on plain numbers. SciPy is imported where it is used.

Nothing here knows of runs, methods or reports. A result that cannot be had says why, and how many seeds or datasets
it would take; no function returns a p-value that could not have fallen below the level.
"""
