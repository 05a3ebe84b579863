"""`citeloom doctor`: probes of settings, disk, servers and models, each with a way out."""
