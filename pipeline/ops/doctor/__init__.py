"""`citeloom doctor`: probes of settings, disk, servers and models, with the way out of each
problem.
"""
