"""What each check family draws: a module named after it with `plans(...)`, or with `cases(...)` to steer all of it."""
