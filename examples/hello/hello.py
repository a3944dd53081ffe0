"""Say hello."""

import sys


def greeting() -> str:
    return "Hello, world"


def main() -> None:
    print(greeting())


if __name__ == "__main__":
    sys.exit(main())
