"""Shared memory, workers, teams, strategies: who may touch which weights when."""
