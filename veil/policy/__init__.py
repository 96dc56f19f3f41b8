"""The policy of a governed boundary: which argv may run. Pure; files are looked at by whoever asks."""
