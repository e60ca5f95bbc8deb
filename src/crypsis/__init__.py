"""Crypsis: how hard is an object to see, and does your model still see it?"""
