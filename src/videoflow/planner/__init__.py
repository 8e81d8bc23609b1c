"""The planner: a spec and the capabilities of backends become a plan, or a refusal by name; pure."""
