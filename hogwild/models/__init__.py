"""Trained models, which predict, evaluate and recommend."""
