"""What accounts pay for. No payment provider is built in: every request is refused."""
