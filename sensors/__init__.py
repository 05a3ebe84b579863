"""When: the sensors and schedules that start runs and report failures."""
