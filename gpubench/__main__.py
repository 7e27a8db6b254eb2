"""`python -m gpubench` is the command."""

from gpubench.cli import main

if __name__ == "__main__":
    main()
