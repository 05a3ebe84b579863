"""Grades of answers: correct claims, gold claims held, and gold passages shown."""
