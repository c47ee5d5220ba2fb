"""Steps: what one row adds to the numbers that are stored for its columns."""
