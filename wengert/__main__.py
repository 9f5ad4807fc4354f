"""``python -m wengert``."""

from wengert.cli import main

if __name__ == "__main__":
    main()
