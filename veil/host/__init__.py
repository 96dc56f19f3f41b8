"""Floor 1: the only rooms that talk to the operating system. psutil and filelock live only here."""
