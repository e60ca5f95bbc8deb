"""Training of RobustCODLite."""
