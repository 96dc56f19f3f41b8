"""The project's own tests are run by the evals, as commands; pytest is not to collect them."""

collect_ignore = ["project"]
