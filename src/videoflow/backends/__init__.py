"""The contracts between a flow and the technologies below it; `backends.memory` holds the references."""
