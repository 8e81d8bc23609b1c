"""What a user writes, and the document it compiles to."""
