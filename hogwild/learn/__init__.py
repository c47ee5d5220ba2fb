"""What is learned, and how: losses, penalties, targets, solvers. Nothing knows of processes."""
