"""Where the time of one cell's training goes, beside the plain baseline on the same data. Used by ``bench profile``."""
