"""Executions of suites: opening, running, their folders, and collecting results from the store."""
