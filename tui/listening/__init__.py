"""What the app hears of servers and of the agent while it runs."""
