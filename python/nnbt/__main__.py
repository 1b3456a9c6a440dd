"""python -m nnbt."""

from nnbt.cli import main

if __name__ == "__main__":
    main()
