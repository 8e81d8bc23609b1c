"""The command line: one file per command; each parses, validates, makes one call and renders.

Reached through `videoflow.cli.app:main`. Nothing else imports it.
"""
