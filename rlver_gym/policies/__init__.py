"""Who replies: scripted yardsticks, a chat model on any backend, a person."""
