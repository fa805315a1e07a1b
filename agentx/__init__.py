"""agentx."""
