"""What is learned: losses, schedules, models. Nothing here knows of processes."""
