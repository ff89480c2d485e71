import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))

import pytest

import ranks


@pytest.fixture(scope="session", autouse=True)
def _end_of_ranks():
    yield
    ranks.end_all()
