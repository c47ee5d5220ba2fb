"""Data: rows, file formats, synthetic sets, statistics. Nothing here knows of training."""
