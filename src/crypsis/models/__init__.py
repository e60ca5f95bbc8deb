"""Segmenters: what turns images into maps of where the object is, one file per kind."""
