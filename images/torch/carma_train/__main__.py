"""python -m carma_train MODEL, see docs/containers.md."""

from .stop import flag

if __name__ == "__main__":
    flag.listen()  # before the import of PyTorch, which takes seconds

    import sys

    from .cli import main

    sys.exit(main())
