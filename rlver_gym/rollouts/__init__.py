"""Policy x user: the runner, the measures over episodes, the store."""
