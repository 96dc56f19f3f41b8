"""Parts that know what a secret looks like: names of variables, values in streams. Pure."""
