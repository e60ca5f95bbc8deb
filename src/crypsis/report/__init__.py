"""What a person reads of a run: tables, charts, one HTML page, and a gallery of degradations."""
