"""Floor 0: the words of the house. Frozen data that imports only the standard library, never prints, never renders."""
