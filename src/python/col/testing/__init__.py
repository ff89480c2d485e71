"""Tests on ranks: the plug-in pytest_col, and `%%ranks` for notebooks. docs/testing.md teaches both.

    the tests' session      controller   starts ranks, sends them the tests, reports
                            merge        makes one report of those of all ranks
    a session of each rank  session      collects, runs what it is told to, and answers
    a notebook              notebook     `%%ranks`
    a rank of it            cells        runs cells, and says how their values look
"""
