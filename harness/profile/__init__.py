"""``bench profile``: where the time of a cell goes, part by part of a training step."""
