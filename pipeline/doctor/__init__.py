"""What `citeloom doctor` looks at before a run does: settings, disk, servers, models, and the way out of each problem.

Not here: anything that changes what it looks at. Each module has one topic; `checks` has the list.
"""
