"""Running a benchmark: the plan, the engine, the run folder, and what is made from it."""
