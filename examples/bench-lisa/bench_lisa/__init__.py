"""LISA for equad-bench."""
