"""Rules in compiled code: a large world is then played without a call from Python a decision.

The plain form of a rule, in `policy`, says what it is; what is here decides the same, task by task,
and tests hold it to that. Whatever has no compiled form is played by the plain loop.
"""
