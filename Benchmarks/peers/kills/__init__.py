"""The same kills against Operon, Celery and HyperQueue; `scripts/kill-peers` runs them.

    schedule.py   the graphs and the kills, drawn from a seed
    step.py       what an operation does: a line in the ledger when it starts, and one when it ends
    checker.py    what the ledger says about what a system acknowledged and reported
    run.py        runs one system under one schedule, and writes a line of JSON
    report.py     the tables
    processes.py  processes that are killed and started again
    operon.py, celery.py, hyperqueue.py   the systems; `run.py` says what each has to do
"""
