"""What `citeloom doctor` looks at before a run does: settings, disk, servers, models, and the way out
of each problem.
"""
