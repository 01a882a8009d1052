"""`python -m rlver_gym`."""

from rlver_gym.cli import main

if __name__ == "__main__":
    main()
