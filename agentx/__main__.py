"""`python -m agentx` is the command line."""

from agentx.cli.main import entry

if __name__ == "__main__":
    entry()
