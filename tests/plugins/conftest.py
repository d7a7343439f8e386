"""Puts this folder on the path, so that tests of all kinds of plugin can import ``learner_kit`` and ``encoder_kit``."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
