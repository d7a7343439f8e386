"""The numerics of training: base classes of trained components, the loop, metrics."""
