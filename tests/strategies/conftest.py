import pytest

import ranks


@pytest.fixture(scope="session", autouse=True)
def _end_of_ranks():
    yield
    ranks.end_all()
