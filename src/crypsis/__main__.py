"""`python -m crypsis`."""

from .cli import main

if __name__ == "__main__":
    main()
