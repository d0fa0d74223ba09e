"""The loops over brokers and steps, compiled."""
