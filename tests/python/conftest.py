import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _end_of_ranks():
    yield
    if "ranks" in sys.modules:  # not every test here needs the package
        sys.modules["ranks"].end_all()
