"""The work of one worker: a blank English spaCy pipeline, tok2vec and ner, trained on the corpus."""

from __future__ import annotations

import random
from typing import Any, Iterable

import numpy as np
import spacy
from spacy.training import Example

import corpus
from layout import Layout, State

PIPELINE = ["tok2vec", "ner"]
NER = {
    "model": {
        "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner", "extra_state_tokens": False,
        "hidden_width": 64, "maxout_pieces": 2, "use_upper": True,
        "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"},
    }
}  # fmt: skip
TRAINING, TESTING, DROPOUT = 2000, 200, 0.1


class SpacyTask:
    """Has the shapes and the first values of all parameters by key, which is the place of the parameter in the pipeline:
    the same in all processes, unlike the numbers that thinc gives its layers."""

    def __init__(self, rank: int, size: int, texts: int) -> None:
        self.rank, self.size, self.texts = rank, size, texts
        random.seed(0)
        np.random.seed(0)  # spaCy draws first weights from it: the same on all workers
        self.nlp = spacy.blank("en")
        self.nlp.add_pipe("tok2vec")
        self.nlp.add_pipe("ner", config=NER)
        self.examples = self._examples(TRAINING, seed=1)
        self.nlp.initialize(lambda: self.examples)

        self.initial: dict[int, Any] = {}
        self.key_of: dict[tuple[int, str], int] = {}
        for _, pipe in self.nlp.pipeline:
            for node in pipe.model.walk():
                for name in node.param_names:
                    if node.has_param(name) and (node.id, name) not in self.key_of:
                        key = self.key_of[node.id, name] = len(self.key_of)
                        self.initial[key] = node.get_param(name)
                node._params.proxy = self  # thinc's own hook for parameters that live elsewhere
        self.shapes = {key: value.shape for key, value in self.initial.items()}

    def _examples(self, count: int, seed: int) -> list[Example]:
        return [
            Example.from_dict(self.nlp.make_doc(text), {"entities": entities})
            for text, entities in corpus.make_texts(count, seed)
        ]

    def new_state(self, layout: Layout) -> State:
        state = State(layout, self.initial)
        state.optimizer = self.nlp.create_optimizer()
        return state

    def compute(self, state: State) -> float:
        """Computes the gradients of the next texts of this worker. Returns the loss. What is random depends on the rank and
        the step alone, so that two ways to train can be compared."""
        self.state = state
        state.gradients.fill(0)
        seed = state.step * self.size + self.rank
        random.seed(seed)
        np.random.seed(seed)
        state.step += 1
        losses: dict[str, float] = {}
        self.nlp.update(random.sample(self.examples, self.texts), drop=DROPOUT, losses=losses, sgd=None)
        return losses["ner"] / self.texts

    def apply(self, state: State, keys: Iterable[int]) -> None:
        """Moves these parameters by their gradients, which are sums over all workers. thinc's Adam works in place."""
        for key in keys:
            state.optimizer(key, state.parameter[key], state.gradient[key])

    def score(self, state: State) -> float:
        """The F-score of the entities found in texts that are not for training: 0 to 1."""
        self.state = state
        return float(self.nlp.evaluate(self._examples(TESTING, seed=2))["ents_f"])

    # What thinc calls

    def get_param(self, node: int, name: str) -> Any:
        return self.state.parameter[self.key_of[node, name]]

    def inc_grad(self, node: int, name: str, value: Any) -> None:
        gradient = self.state.gradient[self.key_of[node, name]]
        gradient += value.reshape(gradient.shape)
