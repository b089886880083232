"""What a report says of what nodes know."""

from cosmo import load
from cosmo.scenario.words import knowledge


def test_a_kind_world_is_said_to_be_kind():
    assert knowledge(load("paper")) == [
        "Nodes know the demand of each task; demands are exact.",
        "Nodes know the planned mean rate of tasks of an EN; all ENs are loaded equally.",
        "Nodes keep their speed and never fail.",
        "No other users load the SNs.",
    ]


def test_everything_that_surprises_is_said():
    assert knowledge(load("wild")) == [
        "Nodes know the declared demand of a task; true demands differ by a lognormal factor"
        " (sigma 0.5).",
        "Nodes know the planned mean rate of tasks of an EN; ENs have 0.8 to 1.6 times as many,"
        " and rates swing by 30 % in waves of 4 s.",
        "SNs change by themselves between 1 and 0.5 times their speed, for 4 s and 1 s on average.",
        "Each SN fails after 12 s on average, loses what it has, and is back after 1 s on average.",
        "Tenants that no EN sees send 10 to 150 tasks/s to an SN, in phases of 1 s on average.",
    ]


def test_unknown_demands_and_files_of_events():
    said = knowledge(load("undeclared"))
    assert said[0].startswith("Nodes know only the mean demand of a task;")
    said = knowledge(load("paper", ['workload.events="e.csv"']))
    assert said[-1].startswith("Changes of speed, outages and tenants' tasks are those of the file")
