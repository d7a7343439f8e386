"""Puts this folder on the path, so that tests of all kinds of plugin can import ``learner_kit`` and ``encoder_kit``."""
