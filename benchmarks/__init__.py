"""One script per claim, each against what a user would pick instead, interleaved in one run. No
tests here.
"""
