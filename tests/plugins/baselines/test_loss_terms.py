"""What a learner's ``loss`` may return."""

import pytest
import torch
from learner_kit import graphs, make, train

from harness import Baseline


class Forgetful(Baseline):
    """Returns what it is told to."""

    name = "forgetful"
    returned = None

    def loss(self, batch):
        del batch
        return self.returned


@pytest.mark.parametrize("returned", [torch.tensor(1.0), {}, None])
def test_anything_but_named_terms_is_refused_with_what_is_wanted(returned):
    learner = make(Forgetful)
    learner.returned = returned
    with pytest.raises(TypeError, match=r'Forgetful\.loss returned \w+; .* \{"erm"'):
        train(learner, graphs(6))
