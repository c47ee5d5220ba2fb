"""Loops: in which order rows come, on which copy of the weights, and when workers merge."""
