"""Parts that wrap a launch: what changed, facts, environment; later sandbox, trace, preview."""
