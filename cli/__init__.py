"""The `weightgym` command: one thin module per subcommand."""
