"""Compiled arithmetic and nothing else."""
