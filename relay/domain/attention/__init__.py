"""Stars, watches, and inboxes, which a follower of the event log fills."""
