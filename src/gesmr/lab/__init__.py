"""Running the studies and showing what came of them: store, runner, statistics, tables, figures, report."""
