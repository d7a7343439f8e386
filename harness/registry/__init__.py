"""Plugins: where they are found, the torch-free index of what they register, and digests of their code."""
